"""Records published for later: not before their instant for any group, now or later; kept over restarts; moved and
cancelled."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator

import pytest
from tests.broker.groups_world import START, World, settled
from tests.broker.stretches import longest

from acklog.broker.api import Refused
from acklog.broker.catalog.config_changes import change_topic
from acklog.broker.operations import Selection, Target
from acklog.broker.scheduled import scheduled
from acklog.core.instants import Instants
from acklog.errors import Failed
from acklog.log.seam import Durability, LogConfig
from acklog.wire.record_batch import build

SECOND = 1000
HOUR = 3_600_000
ENABLE = 'acklog.deliver.at.enable'
HEADER = 'acklog-deliver-at'
AT_ONE_GO = 20_000  # calls: a few milliseconds


@pytest.fixture(params=[0, 2])
async def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(World, 'delay', request.param)
    world = await World.open({ENABLE: 'true', 'log.roll.ms': '1'})
    await world.catalog.alter_group_configs('g', lambda _: {'share.auto.offset.reset': 'earliest'})
    yield world
    await World.close_all()


def batch(world: World, *after: int | bytes | None, compression: str = 'none') -> bytearray:
    """One with a record for each: due so long after START (ms), or with this in its header, or without the header."""
    values = [after if after is None or isinstance(after, bytes) else str(START + after).encode() for after in after]
    records = [(None, b'v', [] if value is None else [('x', b'y'), (HEADER, value)]) for value in values]
    return build(records, timestamp=world.now, compression=compression)


async def publish(world: World, topic: bytes, *after: int | bytes | None, compression: str = 'none') -> None:
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    await partition.append(batch(world, *after, compression=compression), world.now, Durability.WRITTEN)


async def come(world: World, topic: bytes, member: str = 'a', epoch: int = 0, count: int = 100) -> list[int]:
    """The offsets that a new session of the group's member gets now, all accepted."""
    got: list[int] = []
    while offsets := await world.take(member, epoch, (topic, 0), count=count):
        assert isinstance(offsets, list), offsets
        assert (await world.sign_off(member, epoch + 1, topic, *offsets))[0] == 0
        got += offsets
        epoch = 0
    return got


async def test_a_record_comes_at_its_instant_and_holds_up_nothing(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, None, 10 * SECOND, None)
    await publish(world, topic, 5 * SECOND)
    await publish(world, topic, None)
    assert await come(world, topic) == [0, 2, 4]
    assert world.fate(topic, 1) == 'waiting'
    world.pass_time(5 * SECOND - 1)
    assert await come(world, topic) == []
    world.pass_time(1)
    assert await come(world, topic) == [3]
    world.pass_time(5 * SECOND)
    assert await come(world, topic) == [1]


async def test_who_waits_gets_it_at_once(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, SECOND, SECOND + 1)
    poll = asyncio.ensure_future(world.take('a', 0, (topic, 0), wait=10 * SECOND, count=10))
    await settled()
    world.pass_time(SECOND - 1)
    await settled()
    assert not poll.done()
    world.pass_time(1)
    assert await poll == [0]


@pytest.mark.parametrize('compression', ['none', 'gzip', 'zstd', 'lz4', 'snappy'])
async def test_it_is_found_in_compressed_batches(world: World, compression: str) -> None:
    topic = await world.topic('t')
    await publish(world, topic, SECOND, None, compression=compression)
    assert await come(world, topic) == [1]
    world.pass_time(SECOND)
    assert await come(world, topic) == [0]


async def test_instants_of_iso_8601(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, b'2023-11-14T22:13:21Z', b'2023-11-14T23:13:21.0005+01:00')  # START is 22:13:20
    assert await come(world, topic) == []
    world.pass_time(SECOND)
    assert await come(world, topic) == [0]
    world.pass_time(1)
    assert await come(world, topic) == [1]


@pytest.mark.parametrize('value', [b'', b'soon', b'-1', b'1.5', b'2023-11-14T22:13:21', b'9' * 19, b'9' * 20, b'\xff'])
async def test_a_header_that_names_no_instant_is_refused(world: World, value: bytes) -> None:
    topic = await world.topic('t')
    with pytest.raises(Refused, match=HEADER) as refused:
        await publish(world, topic, None, value)
    assert refused.value.code == 87  # INVALID_RECORD
    assert await come(world, topic) == []


async def test_a_batch_that_unpacks_to_too_much_is_refused(world: World) -> None:
    topic = await world.topic('t')
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    bomb = build([(None, bytes(20 << 20))], timestamp=world.now, compression='gzip')
    with pytest.raises(Refused, match='unpacks to more'):
        await partition.append(bomb, world.now, Durability.WRITTEN)


@pytest.mark.parametrize('due', [10 * SECOND, None])
async def test_many_records_in_one_batch_give_others_their_turn(world: World, due: int | None) -> None:
    topic = await world.topic('t')
    many = [None] * 10_000 + [due] * 10_000 + [10 * SECOND]
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    made = batch(world, *many, compression='gzip')
    _, most = await longest(partition.append(made, world.now, Durability.WRITTEN))
    assert most < AT_ONE_GO


@pytest.mark.parametrize('switch', [None, 'true', 'false'])
async def test_appends_keep_their_order_though_some_take_turns(world: World, switch: str | None) -> None:
    """Also where the topic's config is switched meanwhile; and a start finds of them what was known before."""
    topic = await world.topic('t')
    if switch == 'true':
        await change_topic(world.broker, 't', lambda _: {ENABLE: 'false'}, only=False)
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    many = [None] * 20_000 + [10 * SECOND]
    batches = [batch(world, *many, compression='zstd'), batch(world, 10 * SECOND), batch(world, None, 10 * SECOND)]
    appends = [asyncio.ensure_future(partition.append(each, world.now, Durability.WRITTEN)) for each in batches]
    await asyncio.sleep(0)
    if switch is not None:
        await change_topic(world.broker, 't', lambda _: {ENABLE: str(switch)}, only=False)
    assert [(await append).first for append in appends] == [0, 20_001, 20_002]
    known = scheduled_offsets(world, topic)
    if switch is None:
        assert known == [20_000, 20_001, 20_003]
    await world.restart()
    assert scheduled_offsets(world, topic) == known


def scheduled_offsets(world: World, topic: bytes) -> list[int]:
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    if partition.later is None:
        return []
    return [offset for offset, _ in partition.later.schedule.instants.coming(0, 1 << 40, world.now)]


async def test_without_the_config_the_header_is_a_header_like_any_other(world: World) -> None:
    topic = await world.topic('t')
    await change_topic(world.broker, 't', lambda _: {ENABLE: 'false'}, only=False)
    await publish(world, topic, HOUR, b'soon')
    assert await come(world, topic) == [0, 1]
    await change_topic(world.broker, 't', lambda _: {ENABLE: 'true'}, only=False)
    await publish(world, topic, HOUR)
    await change_topic(world.broker, 't', lambda _: {ENABLE: 'false'}, only=False)
    await publish(world, topic, HOUR)
    await world.restart()
    assert await come(world, topic, 'b') == [3]
    world.pass_time(HOUR)
    assert await come(world, topic, 'b') == [2]


@pytest.mark.parametrize('clean', [True, False])
@pytest.mark.parametrize('pause', [0, 10 * SECOND])
async def test_it_survives_a_restart(world: World, clean: bool, pause: int) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, None, 2 * HOUR)
    world.pass_time(pause)
    await settled()
    await publish(world, topic, None, HOUR)
    await (world.stop_and_start() if clean else world.restart())
    await publish(world, topic, HOUR, None)
    assert await come(world, topic) == [1, 3, 6]
    await (world.stop_and_start() if clean else world.restart())
    world.pass_time(HOUR - pause - 1)
    assert await come(world, topic, 'b') == []
    world.pass_time(1)
    assert await come(world, topic, 'b') == [0, 4, 5]


async def test_a_group_made_later_sees_the_same_instant(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, None, 2 * HOUR)
    world.pass_time(HOUR)
    assert await come(world, topic) == [0, 1]


async def test_an_append_that_fails_leaves_nothing_behind(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, None)
    world.directory.fail_next(Failed, world.catalog.topics['t'].log_name(0))
    with pytest.raises(Failed):
        await publish(world, topic, HOUR)
    await publish(world, topic, None)
    assert await come(world, topic) == [0, 1]


async def test_retention_keeps_what_is_published_for_later(world: World) -> None:
    topic = await world.topic('t')
    partition = world.broker.partition(topic, 0)
    assert partition is not None
    await change_topic(world.broker, 't', lambda own: {**own, 'retention.ms': str(HOUR)}, only=False)
    for after in (None, 5 * HOUR, None):
        await publish(world, topic, after)
        world.pass_time(1)
        await world.broker.retention.apply(partition)
    world.pass_time(2 * HOUR)
    await world.broker.retention.apply(partition)
    assert partition.log.start == 1
    world.pass_time(3 * HOUR - SECOND)
    assert await come(world, topic) == [2]
    world.pass_time(SECOND)
    assert await come(world, topic) == [1]


async def test_a_million_cost_less_than_forty_megabytes() -> None:
    instants = Instants()
    tracemalloc.start()
    for at in range(0, 100_000, 500):
        offsets = range(at, at + 500)
        instants.add(offsets, [START + HOUR + offset * 7919 % 1_000_003 for offset in offsets], START)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(instants) == 100_000
    assert size < 4_000_000


# -- moving and cancelling ---------------------------------------------------------------------------------------------


async def listed(world: World, group: str | None = None, **more: int | str) -> list[tuple[int, int]]:
    """(offset, how long after START) of what is still to come."""
    page = await world.broker.operations.scheduled(world.caller('o'), 't', group=group, **more)  # type: ignore[arg-type]
    return [(record.offset, record.due_ms - START) for record in page.items]


async def cancel(world: World, first: int, last: int, group: str | None = None) -> int:
    selection = Selection('t', 0, first, last)
    return (await world.broker.operations.scheduled_cancel(world.caller('o'), selection, group)).records


async def move(world: World, first: int, last: int, after: int, group: str | None = None) -> int:
    selection = Selection('t', 0, first, last)
    return (await world.broker.operations.scheduled_move(world.caller('o'), selection, START + after, group)).records


async def test_a_list_in_pages(world: World) -> None:
    topic = await world.topic('t', 2)
    await publish(world, topic, HOUR, None, 2 * HOUR, 3 * HOUR)
    partition = world.broker.partition(topic, 1)
    assert partition is not None
    await partition.append(batch(world, HOUR), world.now, Durability.WRITTEN)
    pages, after = [], None
    while True:
        page = await world.broker.operations.scheduled(world.caller('o'), 't', after=after, limit=2)
        pages.append([(record.partition, record.offset) for record in page.items])
        if (after := page.next) is None:
            break
    assert pages == [[(0, 0), (0, 2)], [(0, 3), (1, 0)], []]
    assert await listed(world, partition=1) == [(0, HOUR)]
    world.pass_time(HOUR)
    assert await listed(world) == [(2, 2 * HOUR), (3, 3 * HOUR)]


@pytest.mark.parametrize('passed', [True, False])
@pytest.mark.parametrize('restart', [True, False])
async def test_cancelled_on_the_topic(world: World, passed: bool, restart: bool) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, None, HOUR, HOUR)
    assert await come(world, topic) == [1] if passed else True
    assert await cancel(world, 0, 2) == 2
    assert await cancel(world, 0, 2) == 0
    if restart:
        await world.restart()
    assert await listed(world) == [(3, HOUR)]
    world.pass_time(HOUR)
    assert await come(world, topic, 'b') == ([3] if passed else [1, 3])
    assert await cancel(world, 0, 9) == 0


@pytest.mark.parametrize('passed', [True, False])
@pytest.mark.parametrize('restart', [True, False])
async def test_moved_on_the_topic(world: World, passed: bool, restart: bool) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, HOUR, HOUR, None)
    assert await come(world, topic) == [3] if passed else True
    assert await move(world, 0, 0, 0) == 1
    assert await move(world, 1, 1, 2 * HOUR) == 1
    if restart:
        await world.restart()
    assert await listed(world) == [(1, 2 * HOUR), (2, HOUR)]
    assert await come(world, topic, 'b') == ([0] if passed else [0, 3])
    world.pass_time(HOUR)
    assert await come(world, topic, 'c') == [2]
    world.pass_time(HOUR)
    assert await come(world, topic, 'd') == [1]


@pytest.mark.parametrize('passed', [True, False])
@pytest.mark.parametrize('restart', [True, False])
async def test_for_one_group_only(world: World, passed: bool, restart: bool) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, HOUR, HOUR, None, HOUR)
    if passed:
        assert await come(world, topic) == [3]
    else:
        await world.beat('a', 0, 't')
    assert await cancel(world, 0, 0, 'g') == 1
    assert await move(world, 1, 1, SECOND, 'g') == 1
    assert await move(world, 2, 2, 2 * HOUR, 'g') == 1
    assert await cancel(world, 4, 4) == 1
    if restart:
        await world.restart()
    assert await listed(world, 'g') == [(1, SECOND), (2, 2 * HOUR)]
    assert await listed(world) == [(0, HOUR), (1, HOUR), (2, HOUR)]
    world.pass_time(SECOND)
    assert await come(world, topic, 'b') == ([1] if passed else [1, 3])
    world.pass_time(2 * HOUR)
    assert await come(world, topic, 'c') == [2]


async def test_a_move_on_the_topic_holds_for_a_group_that_had_its_own(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, HOUR)
    assert await come(world, topic) == []
    assert await move(world, 0, 0, 3 * HOUR, 'g') == 1
    assert await cancel(world, 1, 1, 'g') == 1
    assert await move(world, 0, 1, 2 * HOUR) == 2
    assert await listed(world, 'g') == [(0, 2 * HOUR)]
    world.pass_time(2 * HOUR)
    assert await come(world, topic, 'b') == [0]


async def test_what_waits_because_it_was_released_is_left_alone(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR)
    assert await come(world, topic) == []
    assert await move(world, 0, 0, 0, 'g') == 1
    assert await world.take('a', 0, (topic, 0)) == [0]
    assert await cancel(world, 0, 0, 'g') == 0
    assert await listed(world, 'g') == []
    assert await cancel(world, 0, 0) == 1  # for groups to come
    assert world.fate(topic, 0) == 'acquired a'


async def test_a_seek_and_a_replay_do_not_bring_back_what_was_cancelled(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, None, HOUR, HOUR)
    assert await come(world, topic) == [1]
    assert await cancel(world, 0, 0) == 1
    assert await cancel(world, 2, 2, 'g') == 1
    world.pass_time(HOUR)
    assert await come(world, topic, 'b') == [3]
    operations, caller = world.broker.operations, world.caller('o')
    assert (await operations.replay(caller, 'g', 't', 0, 0, 3)).records == 2
    assert await come(world, topic, 'c') == [1, 3]
    await operations.seek(caller, 'g', Target('earliest'))
    assert await come(world, topic, 'd') == [1, 3]


async def states(world: World, count: int) -> list[str]:
    """What the first records are to the group."""
    views = [await world.broker.operations.record(world.caller('o'), 't', 0, offset) for offset in range(count)]
    return [each.state for view in views for each in view.groups if each.group == 'g']


@pytest.mark.parametrize('restart', [True, False])
async def test_what_was_cancelled_is_called_so_in_each_group(world: World, restart: bool) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, HOUR, HOUR, None)
    assert await come(world, topic) == [3]
    assert await cancel(world, 0, 0) == 1  # for all
    assert await cancel(world, 1, 1, 'g') == 1
    await publish(world, topic, HOUR, HOUR)
    assert await cancel(world, 4, 4) == 1  # which the group has not come to
    if restart:
        await world.restart()
    assert await states(world, 6) == ['cancelled', 'cancelled', 'waiting', 'done', 'cancelled', 'not taken']
    world.pass_time(HOUR)
    assert await come(world, topic, 'b') == [2, 5]
    assert await states(world, 6) == ['cancelled', 'cancelled', 'done', 'done', 'cancelled', 'done']


async def test_what_a_group_has_had_before_it_was_cancelled_is_its_own(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, HOUR)
    assert await come(world, topic) == []
    assert await move(world, 0, 1, 0, 'g') == 2
    assert await world.take('a', 0, (topic, 0), count=1) == [0]
    assert (await world.sign_off('a', 1, topic, 0))[0] == 0
    assert await cancel(world, 0, 1) == 2  # for groups to come
    assert await states(world, 2) == ['done', 'available']


async def test_why_nothing_comes_of_what_was_cancelled(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR, None, HOUR)
    assert await come(world, topic) == [1]
    assert await cancel(world, 0, 0) == 1
    assert await cancel(world, 2, 2, 'g') == 1
    await publish(world, topic, HOUR)
    assert await cancel(world, 3, 3) == 1  # which the group has not come to
    (why,) = await world.broker.operations.why(world.caller('o'), 'g')
    assert (why.reason, why.detail) == (
        'nothing new',
        "all up to the log's end is settled, 3 of it cancelled before its time",
    )


async def test_thousands_are_cancelled_and_moved(world: World) -> None:
    topic = await world.topic('t')
    for _ in range(20):
        await publish(world, topic, *[HOUR] * 500)
    assert await come(world, topic) == []
    assert await cancel(world, 0, 4999) == 5000
    assert await move(world, 0, 1 << 62, 0) == 5000
    await world.restart()
    assert await come(world, topic, 'b', count=10_000) == list(range(5000, 10_000))


async def test_a_dry_run_changes_nothing(world: World) -> None:
    topic = await world.topic('t')
    await publish(world, topic, HOUR)
    changed = await world.broker.operations.scheduled_cancel(world.caller('o'), Selection('t'), dry_run=True)
    assert (changed.records, changed.dry_run, await listed(world)) == (1, True, [(0, HOUR)])


@pytest.mark.parametrize('selection', [Selection(), Selection('t', None, 0, 1), Selection('t', 0, 0, 1, [0])])
async def test_selections_that_are_none(world: World, selection: Selection) -> None:
    await world.topic('t')
    with pytest.raises(Refused):
        await world.broker.operations.scheduled_cancel(world.caller('o'), selection)


async def test_the_journal_stays_short(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduled, 'SLACK_BYTES', 4000)
    monkeypatch.setattr(scheduled, 'CONFIG', LogConfig(segment_bytes=1000, retention_ms=-1, segment_ms=1 << 62))
    topic = await world.topic('t')
    await publish(world, topic, *[HOUR] * 100)
    for turn in range(200):
        assert await move(world, turn % 50, turn % 50, HOUR + turn) == 1
    await settled()
    log = world.broker.scheduled._log
    assert log is not None
    assert log.size < 20_000
    before = await listed(world)
    await world.restart()
    assert await listed(world) == before


@pytest.mark.parametrize('slack', [-1, 1_000_000], ids=['at every write', 'never'])
async def test_the_beginning_of_looking_outlives_that_the_journal_is_written_anew(
    world: World, monkeypatch: pytest.MonkeyPatch, slack: int
) -> None:
    """Also where what says it is what makes the journal too long, and where two partitions say it at the same time."""
    monkeypatch.setattr(scheduled, 'SLACK_BYTES', slack)
    topic = await world.topic('t', 2)
    partitions = [world.broker.partition(topic, index) for index in (0, 1)]
    await asyncio.gather(*(p.append(batch(world, HOUR), world.now, Durability.WRITTEN) for p in partitions if p))
    await settled()
    await world.restart()
    assert await listed(world) == [(0, HOUR), (0, HOUR)]
    assert await come(world, topic) == []


async def test_a_start_does_not_shorten_before_it_has_looked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One partition came back shorter, which is noted; of another one not all has been looked into by then."""
    monkeypatch.setattr(scheduled, 'SLACK_BYTES', 0)
    lost, topic = await world.topic('lost'), await world.topic('t')
    await publish(world, lost, HOUR)
    await publish(world, topic, HOUR)
    world.pass_time(scheduled.CHECKPOINT_MS)
    await settled()
    await publish(world, topic, HOUR)
    name = world.catalog.topics['lost'].log_name(0)
    world.directory = world.directory.restarted(power_loss=True, names=[name])
    await world.restart()
    assert await come(world, topic) == []
