"""Who hangs up between taking records and getting them all has not taken them: they go back at once, not counted as
failed. Clients are real sockets that say just what they want."""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.conftest import StartServer
from tests.server.http.test_publish import publish
from tests.server.http.test_subscribing import Group

from acklog.testing.process import ServerProcess

pytestmark = pytest.mark.system

LARGE = 'x' * 400_000


class Client:
    """A member that takes over one connection of its own."""

    def __init__(self, api: httpx.Client, group: Group) -> None:
        self.group, self.host = group, api.base_url.host
        self.socket = socket.create_connection((self.host, api.base_url.port or 80))
        self.socket.settimeout(10)

    def ask(self, count: int = 10, wait_ms: int = 0) -> None:
        wanted = {'member': 'gone', 'topics': [self.group.topic], 'count': count, 'wait_ms': wait_ms}
        body = json.dumps(wanted | {'max_bytes': 16 << 20}).encode()
        head = f'POST {self.group.path}/acquire HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n'
        self.socket.sendall(f'{head}Content-Length: {len(body)}\r\n\r\n'.encode() + body)

    def take_a_little(self, count: int) -> bytes:
        """The beginning of an answer that is large."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.ask(count)
        return self.socket.recv(4096)

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.socket.close()

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)


HangUp = Callable[[Client], None]
ways = pytest.mark.parametrize('hang_up', [Client.close, Client.reset, Client.half_close])


@pytest.fixture(autouse=True)
def nobody_complains(http_process: ServerProcess) -> Iterator[None]:
    """A client that goes is nothing that the server's log has to tell."""
    before = http_process.stderr().count(' ERROR ')
    yield
    assert http_process.stderr().count(' ERROR ') == before, http_process.last_words()


@pytest.fixture
def group(api: httpx.Client, name: str) -> Group:
    assert api.post('/v1/topics', json={'name': name, 'partitions': 1}).status_code == 201
    return Group(api, f'{name} group', name)


@pytest.fixture
def client(api: httpx.Client, group: Group) -> Iterator[Client]:
    made = Client(api, group)
    yield made
    made.close()


def come_back(group: Group, number: int) -> list[dict[str, Any]]:
    """All of them, long before a lock runs out, as if nobody had tried."""
    begun = time.monotonic()
    records = group.take(number, 'another')
    assert time.monotonic() - begun < 10
    assert {record['attempts'] for record in records} == {0}
    assert [code for _, code in group.settle('accept', *records)] == ['ok'] * number
    return records


def publish_large(api: httpx.Client, topic: str) -> None:
    """30 records, far more bytes than the buffers of two sockets hold."""
    for _ in range(15):
        publish(api, topic, {'value': LARGE}, {'value': LARGE})


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@ways
def test_before_the_request_was_looked_at(api: httpx.Client, group: Group, client: Client, hang_up: HangUp) -> None:
    publish(api, group.topic, *({'value': str(index)} for index in range(10)))
    client.ask()
    hang_up(client)
    come_back(group, 10)


@ways
def test_before_the_answer_was_sent(api: httpx.Client, group: Group, client: Client, hang_up: HangUp) -> None:
    """The server is busy with others meanwhile, or the client has sent its next request, behind which nothing is read:
    so its going is seen nowhere but at the socket."""
    group.acquire()
    client.ask(wait_ms=20_000)
    client.ask(wait_ms=20_000)
    time.sleep(0.3)
    hang_up(client)
    time.sleep(0.1)
    publish(api, group.topic, *({'value': str(index)} for index in range(10)))
    come_back(group, 10)


@ways
def test_in_the_middle_of_the_answer(api: httpx.Client, group: Group, client: Client, hang_up: HangUp) -> None:
    """More than socket buffers hold, of which the client reads nothing, or a little."""
    publish_large(api, group.topic)
    client.take_a_little(30)
    assert group.get('status')['partitions'][0]['acquired'] >= 10
    hang_up(client)
    if hang_up is Client.half_close:
        client.close()
    come_back(group, 30)


def test_not_what_has_gone_out(api: httpx.Client, group: Group, client: Client) -> None:
    """The client may have it: its locks run out, or it settles them over another connection."""
    publish(api, group.topic, *({'value': str(index)} for index in range(10)))
    client.ask()
    answer = b''
    while not answer.endswith(b'}]}'):
        answer += client.socket.recv(65_536)
    head, _, body = answer.partition(b'\r\n\r\n')
    assert head.startswith(b'HTTP/1.1 200')
    client.reset()
    time.sleep(0.3)
    assert group.acquire('another') == []
    records = json.loads(body)['records']
    assert [code for _, code in group.settle('accept', *records)] == ['ok'] * 10


def test_not_what_was_settled_meanwhile(api: httpx.Client, group: Group, client: Client) -> None:
    """A part of the answer may have been enough to settle some of it."""
    publish_large(api, group.topic)
    got = client.take_a_little(30)
    while b'"lock":"' not in got.partition(b'"lock_until_ms"')[0] or b'lock_until_ms' not in got:
        got += client.socket.recv(65_536)
    first = json.loads(got.partition(b'"records":[')[2].partition(b'},{')[0] + b'}')
    assert group.settle('accept', first) == [(True, 'ok')]
    client.reset()
    offsets = {record['offset'] for record in come_back(group, 29)}
    assert first['offset'] not in offsets


def test_records_that_nobody_ever_gets_die(api: httpx.Client, group: Group) -> None:
    """Uncounted, but not for ever: one of them may be what kills its clients."""
    api.patch(f'{group.path}/configs', json={'configs': {'share.delivery.count.limit': '1'}})
    publish_large(api, group.topic)
    for dead in (0, 30):
        client = Client(api, group)
        client.take_a_little(30)
        client.reset()
        wait_until(lambda: group.get('status')['partitions'][0]['acquired'] == 0)
        assert len(group.get('dead')['items']) == dead


def test_what_came_back_is_so_after_a_restart(start_server: StartServer, name: str) -> None:
    server: ServerProcess = start_server(http='127.0.0.1:0')
    with httpx.Client(base_url=server.http, timeout=30) as api:
        assert api.post('/v1/topics', json={'name': name, 'partitions': 1}).status_code == 201
        group = Group(api, name, name)
        publish_large(api, name)
        client = Client(api, group)
        client.take_a_little(30)
        client.reset()
        wait_until(lambda: group.get('status')['partitions'][0]['available'] == 30)
        group.post('renew', locks=['of nothing'])  # answered when all that was decided before is in the journal
        server.kill()
    server.start()
    with httpx.Client(base_url=server.http, timeout=30) as api:
        come_back(Group(api, name, name), 30)
