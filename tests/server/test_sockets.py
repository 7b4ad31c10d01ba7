"""Where the server listens: IPv4, IPv6, both, names, port 0; and what it tells clients."""

from __future__ import annotations

import socket
from unittest.mock import ANY

import pytest
from tests.server.conftest import Serve
from tests.server.raw import METADATA, Raw

from acklog.server import sockets
from acklog.server.sockets import CannotListen

needs_ipv6 = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason='no IPv6 here')


async def told(address: str) -> tuple[str, int]:
    """What a server at this address tells a client to connect to."""
    raw = await Raw.connect(address)
    [broker] = (await raw.call(METADATA, 12, {'topics': []}))['brokers']
    return broker['host'], broker['port']


async def test_ipv4(serve: Serve) -> None:
    server = await serve(listen='127.0.0.1:0')
    port = server.broker.node.port
    assert await told(f'127.0.0.1:{port}') == ('127.0.0.1', port)


@needs_ipv6
async def test_ipv6(serve: Serve) -> None:
    server = await serve(listen='[::1]:0')
    port = server.broker.node.port
    assert await told(f'[::1]:{port}') == ('::1', port)
    with pytest.raises(ConnectionRefusedError):
        await told(f'127.0.0.1:{port}')


@needs_ipv6
@pytest.mark.parametrize('listen', ['[::]:0', ':0'])
async def test_a_wildcard_is_both(listen: str, serve: Serve) -> None:
    server = await serve(listen=listen, advertise='broker.example:0')
    port = server.broker.node.port
    assert await told(f'[::1]:{port}') == ('broker.example', port)
    assert await told(f'127.0.0.1:{port}') == ('broker.example', port)
    hosts = {connection.ip for connection in server.listener._connections}
    assert hosts == {'::1', '127.0.0.1'}  # not ::ffff:127.0.0.1, or limits for each address would count twice


async def test_the_ipv4_wildcard_is_ipv4(serve: Serve) -> None:
    server = await serve(listen='0.0.0.0:0', advertise='127.0.0.1:19092')
    [bound] = [each for part in server.listener._servers for each in part.sockets]
    assert await told(f'127.0.0.1:{bound.getsockname()[1]}') == ('127.0.0.1', 19092)


async def test_localhost_is_all_its_addresses_and_clients_are_told_the_ipv4_one(serve: Serve) -> None:
    server = await serve(listen='localhost:0')
    port = server.broker.node.port
    for address in {info[4][0] for info in socket.getaddrinfo('localhost', None)}:
        assert await told(f'[{address}]:{port}' if ':' in str(address) else f'{address}:{port}') == ('127.0.0.1', port)


async def test_a_name_is_told_as_it_is(serve: Serve) -> None:
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        pytest.skip('this machine does not know its own name')
    server = await serve(listen=f'{name}:0')
    port = server.broker.node.port
    address = server.listener._servers[0].sockets[0].getsockname()[0]
    assert await told(f'[{address}]:{port}' if ':' in address else f'{address}:{port}') == (name, port)


def test_a_port_is_free_at_once_for_the_next() -> None:
    [one] = sockets.bind('127.0.0.1', 0)
    one.listen()
    port = one.getsockname()[1]
    client = socket.create_connection(('127.0.0.1', port))
    accepted = one.accept()[0]
    accepted.close()  # the server's side closes first, and its port is in TIME_WAIT
    client.close()
    one.close()
    [two] = sockets.bind('127.0.0.1', port)
    two.close()


def test_what_is_bound_in_part_is_let_go() -> None:
    with socket.create_server(('127.0.0.1', 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CannotListen, match=f'cannot listen on localhost:{port}: Address already in use'):
            sockets.bind('localhost', port)
    for each in sockets.bind('localhost', port):
        assert each.getsockname() == (ANY, port, *each.getsockname()[2:])
        each.close()
