"""What a program gets wrong is said at the call, and says which argument it was; nothing of it is sent."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.client.conftest import MakeTopic
from tests.client.taking import publish, take

import acklog
from acklog.client import Client, ClientClosed

if TYPE_CHECKING:
    from tests.conftest import Shared

    from acklog.client import Received, Subscription

ELSEWHERE = '127.0.0.1:1'  # nobody is asked
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# what makes something with one wrong argument, that argument, and what is said
MADE: list[tuple[Callable[..., Any], dict[str, Any], type[Exception], str]] = [
    (acklog.connect, {'bootstrap': None}, TypeError, 'bootstrap is a str, not None'),
    (acklog.connect_sync, {'bootstrap': 9092}, TypeError, 'bootstrap is a str, not 9092'),
    (acklog.connect, {'timeout': 0}, ValueError, 'timeout has to be above 0 seconds, not 0'),
    (acklog.connect, {'timeout': math.nan}, ValueError, 'timeout has to be above 0 seconds, not nan'),
    (acklog.connect, {'timeout': '5'}, TypeError, "timeout is a number of seconds, not '5'"),
    (acklog.connect, {'client_id': 5}, TypeError, 'client_id is a str, not 5'),
    (
        acklog.connect,
        {'client_id': 'ä' * 16_384},
        ValueError,
        'the length of client_id has to be 32767 or less, not 32768',
    ),
]
OPTIONS: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ('producer', {'linger': -1}, ValueError, 'linger has to be 0 or more seconds, not -1'),
    ('producer', {'linger': 'x'}, TypeError, "linger is a number of seconds, not 'x'"),
    ('producer', {'patience': math.nan}, ValueError, 'patience has to be 0 or more seconds, not nan'),
    ('producer', {'batch_bytes': 0}, ValueError, 'batch_bytes has to be 1 or more, not 0'),
    ('producer', {'buffer_bytes': 1.5}, TypeError, 'buffer_bytes is a whole number, not 1.5'),
    ('subscribe', {'max_records': 1.5}, TypeError, 'max_records is a whole number, not 1.5'),
    ('subscribe', {'max_bytes': 1 << 31}, ValueError, 'max_bytes has to be 2147483647 or less, not 2147483648'),
    ('subscribe', {'max_unsettled': 0}, ValueError, 'max_unsettled has to be 1 or more, not 0'),
    ('subscribe', {'tell_after': -0.1}, ValueError, 'tell_after has to be 0 or more seconds, not -0.1'),
    ('subscribe', {'grace': math.nan}, ValueError, 'grace has to be 0 or more seconds, not nan'),
    ('subscribe', {'begin': 5}, TypeError, 'begin is a str, not 5'),
    ('subscribe', {'begin': 'first'}, ValueError, "begin is 'earliest' or 'latest', not 'first'"),
    ('worker', {'concurrency': 0}, ValueError, 'concurrency has to be 1 or more, not 0'),
    ('worker', {'concurrency': '5'}, TypeError, "concurrency is a whole number, not '5'"),
    ('worker', {'drain': -1}, ValueError, 'drain has to be 0 or more seconds, not -1'),
    ('worker', {'begin': 'first'}, ValueError, "begin is 'earliest' or 'latest', not 'first'"),
]


@pytest.mark.parametrize(('make', 'options', 'kind', 'words'), MADE, ids=range(len(MADE)))
def test_a_client(make: Callable[..., Any], options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as said:
        make(**options)
    assert str(said.value) == words


@pytest.mark.parametrize(('what', 'options', 'kind', 'words'), OPTIONS, ids=range(len(OPTIONS)))
async def test_options(what: str, options: dict[str, Any], kind: type[Exception], words: str) -> None:
    client = Client(ELSEWHERE)
    make: dict[str, Callable[[], Any]] = {
        'producer': lambda: client.producer(**options),
        'subscribe': lambda: client.subscribe('g', 't', **options),
        'worker': lambda: acklog.worker('g', 't', **options)(print),
    }
    with pytest.raises(kind) as said:
        make[what]()
    assert str(said.value) == words


def test_a_worker_of_what_is_no_function() -> None:
    with pytest.raises(TypeError, match='a worker is made of a function, not 5'):
        acklog.worker('g', 't')(5)  # type: ignore[arg-type]


CALLS: list[tuple[Callable[[Any], Awaitable[Any]], type[Exception], str]] = [
    (lambda c: c.publish(None, b'x'), TypeError, 'the name of a topic is a str, not None'),
    (lambda c: c.publish_all(b't', [b'x']), TypeError, "the name of a topic is a str, not b't'"),
    (
        lambda c: c.publish_all('t', b'abc'),
        TypeError,
        "many records are wanted, each a value of bytes or a NewRecord, not b'abc'",
    ),
    (lambda c: c.publish('t', b'x', deliver_at='soon'), TypeError, "'soon' is neither a datetime nor ms since 1970"),
    (lambda c: c.topic_exists(5), TypeError, 'the name of a topic is a str, not 5'),
    (lambda c: c.admin.create_topic(5), TypeError, 'the name of a topic is a str, not 5'),
    (lambda c: c.admin.create_topic('t', partitions='4'), TypeError, "partitions is a whole number, not '4'"),
    (lambda c: c.admin.create_topic('t', partitions=0), ValueError, 'partitions has to be 1 or more, not 0'),
    (
        lambda c: c.admin.create_topic('t', partitions=1 << 40),
        ValueError,
        'partitions has to be 2147483647 or less, not 1099511627776',
    ),
    (
        lambda c: c.admin.create_topic('t', configs={'retention.ms': 5}),
        TypeError,
        'the value of retention.ms is a str, not 5',
    ),
    (
        lambda c: c.admin.create_topic('t', configs=['retention.ms']),
        TypeError,
        "configs are a mapping of names to values, not ['retention.ms']",
    ),
    (lambda c: c.admin.delete_topic(None), TypeError, 'the name of a topic is a str, not None'),
    (lambda c: c.admin.describe_topic(b't'), TypeError, "the name of a topic is a str, not b't'"),
    (lambda c: c.admin.topic_configs(5), TypeError, 'the name of a topic is a str, not 5'),
    (lambda c: c.admin.offsets('t', EPOCH), TypeError, f'timestamp is a whole number, not {EPOCH!r}'),
    (
        lambda c: c.admin.alter_topic_configs('t', {'retention.ms': 5}),
        TypeError,
        'the value of retention.ms is a str, not 5',
    ),
    (lambda c: c.admin.alter_group_configs('g', {5: 'x'}), TypeError, 'the name of a config is a str, not 5'),
    (lambda c: c.admin.group_configs(None), TypeError, 'the name of a group is a str, not None'),
    (lambda c: c.admin.describe_group(None), TypeError, 'the name of a group is a str, not None'),
    (lambda c: c.admin.group_exists(5), TypeError, 'the name of a group is a str, not 5'),
    (lambda c: c.admin.delete_group(5), TypeError, 'the name of a group is a str, not 5'),
    (lambda c: c.admin.lag(b'g'), TypeError, "the name of a group is a str, not b'g'"),
]


@pytest.mark.parametrize(('call', 'kind', 'words'), CALLS, ids=range(len(CALLS)))
async def test_calls(call: Callable[[Any], Awaitable[Any]], kind: type[Exception], words: str) -> None:
    async with Client(ELSEWHERE) as client:
        with pytest.raises(kind) as said:
            await call(client)
    assert str(said.value) == words


@pytest.mark.system
@pytest.mark.parametrize(
    ('options', 'kind', 'words'),
    [
        ({'partition': '0'}, TypeError, "partition is a whole number, not '0'"),
        ({'timestamp': 1 << 64}, ValueError, f'the timestamp of a record is ms since 1970, which {1 << 64} is not'),
    ],
)
async def test_a_record(
    client: Client, topic: MakeTopic, options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    name = await topic()
    with pytest.raises(kind) as said:
        await client.publish(name, b'x', **options)
    assert str(said.value) == words
    assert (await client.publish(name, b'x')).offset == 0


@pytest.mark.system
async def test_kinds_of_groups_may_be_one_name(client: Client, topic: MakeTopic, name: str) -> None:
    async with client.subscribe(name, await topic()):
        assert name in {group.id for group in await client.admin.list_groups(kinds='share')}
        assert await client.admin.list_groups(kinds='classic') == []


TAKEN: list[tuple[Callable[[Any, Any], Any], type[Exception], str]] = [
    (lambda s, _: s.poll(None), TypeError, 'wait is a number of seconds, not None'),
    (lambda s, _: s.poll(math.nan), ValueError, 'wait has to be a number of seconds, not nan'),
    (lambda s, _: s.poll(max_records=0), ValueError, 'max_records has to be 1 or more, not 0'),
    (lambda s, _: s.poll(max_records=-1), ValueError, 'max_records has to be 1 or more, not -1'),
    (lambda s, _: s.renew([5]), TypeError, 'a record that the subscription gave is wanted, not 5'),
    (lambda s, _: s.holds(5), TypeError, 'a record that the subscription gave is wanted, not 5'),
    (lambda s, _: s.release(5), TypeError, 'a record that the subscription gave is wanted, not 5'),
    (lambda s, _: s.reject(5), TypeError, 'a record that the subscription gave is wanted, not 5'),
    (lambda _, r: r.release(reason=b'x'), TypeError, "a reason is a str, not b'x'"),
    (lambda _, r: r.reject(reason=None), TypeError, 'a reason is a str, not None'),
    (lambda _, r: r.release(after='1h'), TypeError, "'1h' is neither a number of seconds nor a timedelta"),
]


@pytest.mark.system
async def test_what_a_subscription_is_told(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a')
    async with client.subscribe(name, name) as subscription:
        (record,) = await take(subscription, 1)
        for call, kind, words in TAKEN:
            with pytest.raises(kind) as said:
                await call(subscription, record)
            assert str(said.value) == words
        for wrong in (5, [5], None, [record, 5]):
            with pytest.raises(TypeError, match='records that the subscription gave are wanted, not'):
                subscription.accept(wrong)  # type: ignore[arg-type]
        assert await subscription.poll(0) == []  # it goes on


@pytest.mark.system
def test_what_a_blocking_subscription_is_told(shared: Shared, name: str) -> None:
    with acklog.connect_sync(shared.address) as client:
        client.publish(name, b'a')
        with client.subscribe(name, name, begin='earliest') as subscription:
            (record,) = subscription.poll(10)
            for wrong in ([5], [record, 5]):
                with pytest.raises(TypeError, match='a record that the subscription gave is wanted, not 5'):
                    subscription.accept(wrong)  # type: ignore[arg-type, list-item]
            assert subscription.holds(record)
            record.accept()
            subscription.flush()


# --- too early, too late


async def test_before_it_is_open() -> None:
    subscription = Client(ELSEWHERE).subscribe('g', 't')
    for call in (subscription.poll(0.1), subscription.flush(), anext(aiter(subscription))):
        with pytest.raises(ClientClosed, match='the subscription was not opened yet: async with, or start'):
            await call
    await subscription.close()


@pytest.mark.system
async def test_after_it_was_closed(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a')
    async with client.subscribe(name, name) as subscription:
        (record,) = await take(subscription, 1)
        await subscription.start()  # it has
    members = (await client.admin.describe_group(name)).members
    late: list[Callable[[Subscription, Received], Any]] = [
        lambda s, _: s.start(),
        lambda s, _: s.__aenter__(),
        lambda s, _: s.poll(0.1),
        lambda s, _: s.flush(),
        lambda s, r: s.renew(r),
        lambda _, r: r.renew(),
        lambda _, r: r.accept(),
        lambda _, r: r.release(),
        lambda _, r: r.reject(),
    ]
    for call in late:
        with pytest.raises(ClientClosed, match='the subscription was closed'):
            await call(subscription, record)
    assert members == (await client.admin.describe_group(name)).members == []


@pytest.mark.system
def test_after_the_client_was_closed(shared: Shared, name: str) -> None:
    client = acklog.connect_sync(shared.address)
    client.publish(name, b'a')
    subscription = client.subscribe(name, name, begin='earliest')
    subscription.start()
    (record,) = subscription.poll(10)
    client.close()
    late: list[Callable[[], Any]] = [
        lambda: client.publish(name, b'b'),
        lambda: client.publish_all(name, [b'b']),
        lambda: client.admin.list_topics(),
        lambda: client.subscribe(name, name),
        lambda: subscription.poll(0.1),
        lambda: record.accept(),
        lambda: record.reject(),
    ]
    for call in late:
        with pytest.raises(ClientClosed, match='the client was closed'):
            call()


@pytest.mark.system
async def test_what_a_closed_client_says_is_its_own(client: Client, topic: MakeTopic) -> None:
    name = await topic()
    await publish(client, name, b'a')
    await client.close()
    with pytest.raises(ClientClosed, match='the client was closed'):
        await client.publish(name, b'b')
