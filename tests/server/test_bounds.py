"""What clients can make the server hold, one by one and together; and that those who do it are the only ones to feel
it."""

from __future__ import annotations

import asyncio
import struct

import pytest
from tests.server.conftest import Serve, address_of
from tests.server.raw import (
    API_VERSIONS,
    CREATE_TOPICS,
    FETCH,
    METADATA,
    PRODUCE,
    SHARE_FETCH,
    SHARE_HEARTBEAT,
    Closed,
    Raw,
)
from tests.server.traffic import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    batch,
    create,
    fetch,
    join,
    produce,
    publish,
    share_fetch,
)

from acklog.server.server import Server
from acklog.wire.error_code import ErrorCode

ALTER_CONFIGS = 44
MB = 1 << 20


async def stocked(server: Server, megabytes: int) -> Raw:
    """A connection to a server with so much in topic t, in batches of 0.5 MB."""
    raw = await Raw.connect(address_of(server))
    await create(raw, 't')
    for _ in range(2 * megabytes):
        assert await publish(raw, 't', batch(MB // 2)) == 0
    return raw


async def quick(raw: Raw, seconds: float = 0.5) -> bool:
    """Whether it answers in that time."""
    begun = asyncio.get_running_loop().time()
    await raw.call(API_VERSIONS, 0, {})
    return asyncio.get_running_loop().time() - begun < seconds


# -- answers -----------------------------------------------------------------------------------------------------------


async def test_answers_that_a_client_does_not_take_are_bounded(serve: Serve) -> None:
    server = await serve({'acklog.connection.queued.bytes': 4 * MB})
    raw = await stocked(server, 3)
    slow = await Raw.connect(address_of(server), receive_buffer=65536)
    count = 100
    await slow.send(b''.join(slow.frame(FETCH, FETCH_VERSION, fetch('t')) for _ in range(count)))
    for _ in range(10):
        assert await quick(raw)
        assert server.listener.unsent.total < 8 * MB
        await asyncio.sleep(0.02)
    for _ in range(count):  # and when it reads, all are there
        assert len(await slow.answer_frame()) > 2 * MB
    assert server.listener.unsent.total == 0


async def test_answers_that_wait_behind_another_are_bounded(serve: Serve) -> None:
    """A long poll first, then fetches whose answers have to wait for it."""
    server = await serve({'acklog.connection.queued.bytes': 4 * MB})
    await stocked(server, 3)
    slow = await Raw.connect(address_of(server))
    await slow.send(slow.frame(FETCH, FETCH_VERSION, fetch('t', 6, wait=400)))
    count = 50
    await slow.send(b''.join(slow.frame(FETCH, FETCH_VERSION, fetch('t')) for _ in range(count)))
    await asyncio.sleep(0.1)
    assert 3 * MB < server.listener.unsent.total < 8 * MB
    assert len(await slow.answer_frame()) < 200
    for _ in range(count):
        await slow.answer_frame()


async def test_polls_that_end_together_do_not_answer_with_more_than_there_is_room_for(serve: Serve) -> None:
    server = await serve({'acklog.connection.queued.bytes': 2 * MB})
    raw = await stocked(server, 1)
    slow = await Raw.connect(address_of(server), receive_buffer=65536)
    count = 100
    polls = [slow.frame(FETCH, FETCH_VERSION, fetch('t', wait=30_000, min_bytes=1300_000)) for _ in range(count)]
    await slow.send(b''.join(polls))
    [partition] = server.broker.partitions.values()
    while len(partition.waiters) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert await publish(raw, 't', batch(MB // 2)) == 0  # now all of them have enough
    await asyncio.sleep(0.1)
    assert server.listener.unsent.total < 5 * MB
    sizes = [len(await slow.answer_frame()) for _ in range(count)]
    assert sizes[0] > MB
    assert min(sizes) < 200  # no room, no records: it asks again


async def test_all_slow_readers_together_are_bounded_and_the_slowest_goes(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server = await serve({'acklog.queued.max.answer.bytes': 8 * MB})
    raw = await stocked(server, 3)
    slow = [await Raw.connect(address_of(server), receive_buffer=65536) for _ in range(20)]
    for each in slow:
        await each.send(b''.join(each.frame(FETCH, FETCH_VERSION, fetch('t')) for _ in range(50)))
    begun = asyncio.get_running_loop().time()
    most = 0
    while server.listener.unsent.total > 8 * MB or most == 0:
        assert asyncio.get_running_loop().time() - begun < 10
        await raw.send(raw.frame(FETCH, FETCH_VERSION, fetch('t')))
        assert len(await raw.answer_frame()) > MB // 2  # who reads has at least a batch each time
        assert await quick(raw)
        most = max(most, server.listener.unsent.total)
        await asyncio.sleep(0.05)
    assert most < 8 * MB + 20 * MB
    gone = [each for each in slow if await each.closed(0.05)]
    assert 0 < len(gone) < 20
    assert 'takes its answers too slowly' in caplog.text


# -- requests ----------------------------------------------------------------------------------------------------------


async def half(raw: Raw, size: int) -> bytes:
    """Send nearly all of a large publish; what is left comes back."""
    frame = raw.frame(PRODUCE, PRODUCE_VERSION, produce('t', batch(size)))
    sending = asyncio.create_task(raw.send(frame[:-100]))
    done, _ = await asyncio.wait([sending], timeout=0.2)
    if not done:
        sending.cancel()
    return frame[-100:] if done else b''


async def test_requests_being_received_are_bounded_and_all_get_through(serve: Serve) -> None:
    server = await serve(queued_max_request_bytes=4 * MB, message_max_bytes=4 * MB)
    raw = await Raw.connect(address_of(server))
    await create(raw, 't')
    raws = [await Raw.connect(address_of(server)) for _ in range(12)]
    frames = [each.frame(PRODUCE, PRODUCE_VERSION, produce('t', batch(2 * MB))) for each in raws]
    sending = asyncio.gather(*(each.send(frame) for each, frame in zip(raws, frames, strict=True)))
    answering = asyncio.gather(*(each.answer(PRODUCE, PRODUCE_VERSION) for each in raws))
    most = 0
    while not answering.done():
        most = max(most, server.listener.budget.taken)
        assert await quick(raw)
        await asyncio.sleep(0)
    await sending
    assert {a['responses'][0]['partition_responses'][0]['error_code'] for a in await answering} == {0}
    assert most < 9 * MB


async def test_who_stalls_above_the_limit_is_closed_so_that_the_others_get_through(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr('acklog.server.incoming.TURN_S', 0.3)
    server = await serve(queued_max_request_bytes=4 * MB, message_max_bytes=4 * MB)
    raw = await Raw.connect(address_of(server))
    await create(raw, 't')
    stalling = [await Raw.connect(address_of(server)) for _ in range(6)]
    for each in stalling:
        await half(each, 2 * MB)
    assert server.listener.budget.taken < 9 * MB
    assert await quick(raw)  # what is small goes through
    assert await publish(raw, 't', batch(100)) == 0
    assert await publish(raw, 't', batch(2 * MB)) == 0  # and what is not waits until somebody stalled for too long
    assert 'did not arrive in' in caplog.text


async def test_requests_under_way_are_bounded(serve: Serve) -> None:
    """Polls that wait hold memory too: who sends more of them than there is room for is not read."""
    server = await serve(queued_max_request_bytes=1 * MB)
    raw = await stocked(server, 1)
    many = await Raw.connect(address_of(server))
    polls = b''.join(many.frame(FETCH, FETCH_VERSION, fetch('t', 2, wait=1000)) for _ in range(3000))
    await many.send(polls)
    await asyncio.sleep(0.1)
    assert server.listener.budget.taken < 2 * MB
    assert await quick(raw)
    other = await Raw.connect(address_of(server))
    assert await quick(other)
    await other.send(other.frame(FETCH, FETCH_VERSION, fetch('t', 2, wait=60_000)))
    await asyncio.sleep(0.05)
    assert await publish(raw, 't', batch(10)) == 0
    assert len(await other.answer_frame()) > 60
    for _ in range(3000):
        await many.answer_frame()
    assert server.listener.budget.taken == 0


async def test_a_request_larger_than_all_that_is_allowed_together_has_its_turn(serve: Serve) -> None:
    server = await serve(queued_max_request_bytes=1 * MB, message_max_bytes=8 * MB)
    raw = await Raw.connect(address_of(server))
    await create(raw, 't')
    assert await publish(raw, 't', batch(6 * MB)) == 0


async def test_a_request_above_its_limit_is_refused_before_it_comes(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server = await serve(socket_request_max_bytes=10_000)
    raw = await Raw.connect(address_of(server))
    await create(raw, 't')
    assert await publish(raw, 't', batch(9_000)) == 0
    with pytest.raises(Closed):
        await publish(raw, 't', batch(11_000))
    assert 'at most 10000 are accepted' in caplog.text


async def test_fetch_sessions_are_bounded(serve: Serve) -> None:
    """One that grows beyond its share is ended, and its client told to begin anew; then it goes without."""
    server = await serve()
    raw = await Raw.connect(address_of(server))
    first = await raw.call(FETCH, FETCH_VERSION, fetch('t') | {'session_epoch': 0})
    assert first['session_id'] > 0
    many = [{'partition': index, 'fetch_offset': 0, 'partition_max_bytes': 1} for index in range(600)]
    grown = fetch('t') | {'session_id': first['session_id'], 'topics': [{'topic': 't', 'partitions': many}]}
    assert (await raw.call(FETCH, FETCH_VERSION, grown | {'session_epoch': 1}))['error_code'] == 70
    again = await raw.call(FETCH, FETCH_VERSION, grown | {'session_id': 0, 'session_epoch': 0})
    assert (again['error_code'], again['session_id']) == (0, 0)
    assert not server.broker.fetch_sessions._sessions


# -- idle --------------------------------------------------------------------------------------------------------------


async def test_who_does_nothing_is_closed(serve: Serve) -> None:
    server = await serve(connections_max_idle_ms=300)
    raw = await stocked(server, 6)
    polling, half_way, silent, deaf, active = [
        await Raw.connect(address_of(server), receive_buffer=65536) for _ in range(5)
    ]
    await polling.send(polling.frame(FETCH, FETCH_VERSION, fetch('t', 12, wait=30_000)))
    await half_way.send(struct.pack('>i', 1000) + b'\0' * 10)
    await deaf.send(b''.join(deaf.frame(FETCH, FETCH_VERSION, fetch('t')) for _ in range(9)))
    await raw.call(METADATA, 12, {'topics': []})
    begun = asyncio.get_running_loop().time()
    closing = [asyncio.create_task(each.closed(3)) for each in (half_way, silent)]
    while asyncio.get_running_loop().time() - begun < 0.8:
        await asyncio.sleep(0.05)
        assert await quick(active)
    assert await asyncio.gather(*closing) == [True, True]
    assert asyncio.get_running_loop().time() - begun < 1.5
    await active.send(active.frame(PRODUCE, PRODUCE_VERSION, produce('t', batch(10))))
    assert await active.answer(PRODUCE, PRODUCE_VERSION)
    assert len(await polling.answer_frame()) > 60  # it waited, and was not forgotten
    await asyncio.sleep(0)
    assert server.listener.unsent.total > 0


async def test_who_takes_nothing_of_its_answers_is_closed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('acklog.server.connection.LAST_WORDS_S', 0.2)
    server = await serve(connections_max_idle_ms=300)
    await stocked(server, 6)
    deaf = await Raw.connect(address_of(server), receive_buffer=65536)
    await deaf.send(b''.join(deaf.frame(FETCH, FETCH_VERSION, fetch('t')) for _ in range(9)))
    await asyncio.sleep(0.1)
    assert server.listener.unsent.total > MB
    await asyncio.sleep(1.5)
    assert server.listener.unsent.total == 0
    assert not server.listener.slow_readers


async def test_idle_connections_may_stay_for_ever(serve: Serve) -> None:
    server = await serve(connections_max_idle_ms=-1)
    raw = await Raw.connect(address_of(server))
    assert not await raw.closed(0.5)


# -- changes while running ---------------------------------------------------------------------------------------------


async def test_bounds_change_while_running(serve: Serve) -> None:
    server = await serve()
    catalog, listener = server.broker.catalog, server.listener
    raw = await stocked(server, 3)
    changed = {
        'queued.max.request.bytes': str(2 * MB),
        'acklog.connection.queued.bytes': str(3 * MB),
        'acklog.queued.max.answer.bytes': str(4 * MB),
        'max.connections': '5',
        'max.connections.per.ip': '4',
        'fetch.max.bytes': str(MB),
    }
    await catalog.alter_broker_configs('', lambda _: changed)
    limits = listener.limits
    assert (limits.total_bytes, listener.budget.limit) == (2 * MB, 2 * MB)
    assert (limits.answer_bytes, limits.total_answer_bytes, listener.unsent.limit) == (3 * MB, 4 * MB, 4 * MB)
    assert (limits.connections, limits.connections_per_ip) == (5, 4)
    await raw.send(raw.frame(FETCH, FETCH_VERSION, fetch('t')))
    assert len(await raw.answer_frame()) < 1.1 * MB
    others = [await Raw.connect(address_of(server)) for _ in range(4)]
    assert [await each.closed(0.2) for each in others] == [False, False, False, True]
    await catalog.alter_broker_configs('', lambda _: {})
    await raw.send(raw.frame(FETCH, FETCH_VERSION, fetch('t')))
    assert len(await raw.answer_frame()) > 2.9 * MB


async def test_who_waits_for_room_goes_on_when_the_limit_is_raised(serve: Serve) -> None:
    server = await serve(queued_max_request_bytes=4 * MB, message_max_bytes=4 * MB)
    raw = await Raw.connect(address_of(server))
    await create(raw, 't')
    for _ in range(6):
        await half(await Raw.connect(address_of(server)), 2 * MB)
    publishing = asyncio.create_task(publish(raw, 't', batch(2 * MB)))
    await asyncio.sleep(0.2)
    assert not publishing.done()
    await server.broker.catalog.alter_broker_configs('', lambda _: {'queued.max.request.bytes': str(64 * MB)})
    assert await publishing == 0


async def configured(raw: Raw, name: str, value: str) -> None:
    """Change a config of the server, as an admin client does."""
    configs = [{'name': name, 'config_operation': 0, 'value': value}]
    fields = {'resources': [{'resource_type': 4, 'resource_name': '', 'configs': configs}], 'validate_only': False}
    assert (await raw.call(ALTER_CONFIGS, 1, fields))['responses'][0]['error_code'] == 0


async def test_other_settings_change_while_running(serve: Serve) -> None:
    server = await serve()
    raw = await Raw.connect(address_of(server))
    topic = await create(raw, 't')
    await join(raw, 'g', 'm', 't')
    assert await publish(raw, 't', batch(5000)) == 0
    await configured(raw, 'message.max.bytes', '1000')
    assert await publish(raw, 't', batch(5000)) == ErrorCode.MESSAGE_TOO_LARGE
    await configured(raw, 'log.message.timestamp.before.max.ms', '60000')
    assert await publish(raw, 't', batch(100)) == ErrorCode.INVALID_TIMESTAMP
    await configured(raw, 'auto.create.topics.enable', 'false')
    auto = {'topics': [{'name': 'new'}], 'allow_auto_topic_creation': True}
    assert (await raw.call(METADATA, 12, auto))['topics'][0]['error_code'] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await configured(raw, 'acklog.max.partitions', '1')
    more = {'topics': [{'name': 'u', 'num_partitions': 1, 'replication_factor': -1}], 'timeout': 1000}
    assert (await raw.call(CREATE_TOPICS, 7, more))['topics'][0]['error_code'] == ErrorCode.POLICY_VIOLATION
    await configured(raw, 'group.share.max.size', '1')
    other = {'group_id': 'g', 'member_id': 'other', 'member_epoch': 0, 'subscribed_topic_names': ['t']}
    answer = await raw.call(SHARE_HEARTBEAT, 1, other)
    assert answer['error_code'] == ErrorCode.GROUP_MAX_SIZE_REACHED
    await configured(raw, 'group.share.record.lock.duration.ms', '16000')
    assert (await raw.call(SHARE_FETCH, 2, share_fetch('g', 'm', 0, topic)))['acquisition_lock_timeout'] == 16_000
    await configured(raw, 'group.share.heartbeat.interval.ms', '6000')
    beat = {'group_id': 'g', 'member_id': 'm', 'member_epoch': 1, 'subscribed_topic_names': None}
    assert (await raw.call(SHARE_HEARTBEAT, 1, beat))['heartbeat_interval'] == 6000


# -- large requests ----------------------------------------------------------------------------------------------------


async def test_a_request_for_very_many_partitions_sees_what_comes_while_it_looks_at_them(serve: Serve) -> None:
    server = await serve()
    raw, other = await Raw.connect(address_of(server)), await Raw.connect(address_of(server))
    await create(raw, 't', 3000)
    partitions = [{'partition': index, 'fetch_offset': 0, 'partition_max_bytes': 1000} for index in range(3000)]
    fields = fetch('t', wait=60_000) | {'topics': [{'topic': 't', 'partitions': partitions}]}
    await raw.send(raw.frame(FETCH, FETCH_VERSION, fields))
    for _ in range(3):
        await other.call(API_VERSIONS, 0, {})
    assert await publish(other, 't', batch(100), index=0) == 0  # however long ago it was looked at
    answer = await raw.answer(FETCH, FETCH_VERSION)
    found = [each for each in answer['responses'][0]['partitions'] if each['records']]
    assert [each['partition_index'] for each in found] == [0]
