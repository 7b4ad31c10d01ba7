"""Topics: list, create, look at, give more partitions, delete."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from msgspec import Meta, Struct

from acklog.broker.api import Refused
from acklog.broker.catalog.catalog import NewTopic, Topic
from acklog.broker.catalog.config_changes import refused_config
from acklog.broker.catalog.topics import add_partitions, create_topics, delete_topic
from acklog.broker.configs import TOPIC
from acklog.broker.refusals import check_new_topic_name, no_topic, not_more_partitions, topic_exists
from acklog.errors import ConfigError
from acklog.server.http.endpoint import Call, endpoint
from acklog.server.http.values import DryRun, Limit, Next, Paging, TopicName
from acklog.wire.error_code import ErrorCode
from acklog.wire.error_words import INTERNAL

if TYPE_CHECKING:
    pass

MOST_PARTITIONS = 10_000  # made by one request, as over Kafka's protocol

Count = Annotated[int, Meta(ge=1, le=MOST_PARTITIONS, description='How many partitions.', examples=[4])]
Texts = Annotated[
    dict[str, str],
    Meta(
        description='Configs of its own, all as text; the others have the defaults of the server.',
        extra_json_schema={'propertyNames': {'enum': sorted(TOPIC)}},
    ),
]


class TopicToCreate(Struct, forbid_unknown_fields=True):
    """A topic that does not exist yet."""

    name: Annotated[TopicName, Meta(description=f'Not beginning with {INTERNAL!r}, which is kept for the server.')]
    partitions: Count | None = None
    configs: Texts = {}
    dry_run: DryRun = False


class MorePartitions(Struct, forbid_unknown_fields=True):
    """How many partitions a topic shall have; more than it has."""

    partitions: Count
    dry_run: DryRun = False


class TopicSummary(Struct):
    """A topic. `configs`: its own ones."""

    name: str
    id: Annotated[str, Meta(description="As Kafka's tools show it. A topic made anew under the same name has another.")]
    partitions: int
    configs: dict[str, str]


class TopicPage(Struct):
    """Topics by name."""

    items: list[TopicSummary]
    next: Next = None


class PartitionView(Struct):
    """A partition: it holds the offsets from `start` up to, not including, `end`, in `size` bytes."""

    partition: int
    start: int
    end: int
    size: int


class TopicView(Struct):
    """A topic with its partitions."""

    name: str
    id: str
    configs: dict[str, str]
    partitions: list[PartitionView]


SUMMARY_EXAMPLE = {
    'name': 'orders',
    'id': 'pWsxOl3SQ8mDh1tF0c4p2Q',
    'partitions': 4,
    'configs': {'retention.ms': '604800000'},
}
VIEW_EXAMPLE = SUMMARY_EXAMPLE | {'partitions': [{'partition': 0, 'start': 0, 'end': 1042, 'size': 88_213}]}


def find_topic(call: Call, operation: str, name: str) -> Topic:
    """The topic. Raises Refused."""
    call.broker.authorize(call.caller, operation, 'TOPIC', name)
    topic = call.broker.catalog.topics.get(name)
    if topic is None:
        raise no_topic(name)
    return topic


def page_of_names(names: list[str], cursor: str | None, limit: Limit) -> tuple[list[str], str | None]:
    """Those behind `cursor`, at most `limit`, and the next cursor. `names`: sorted."""
    first = 0 if cursor is None else bisect_right(names, cursor)
    page = names[first : first + limit]
    return page, page[-1] if first + limit < len(names) else None


@endpoint('GET', '/v1/topics', tag='topics', examples=(None, {'items': [SUMMARY_EXAMPLE], 'next': None}))
async def list_topics(call: Call, query: Paging) -> TopicPage:
    """List topics, by name."""
    names = [name for name in sorted(call.broker.catalog.topics) if _may_see(call, name)]
    page, following = page_of_names(names, query.cursor, query.limit)
    topics = call.broker.catalog.topics
    return TopicPage([_summary(topics[name]) for name in page], following)


def _may_see(call: Call, name: str) -> bool:
    try:
        call.broker.authorize(call.caller, 'DESCRIBE', 'TOPIC', name)
    except Refused:
        return False
    return True


@endpoint(
    'POST',
    '/v1/topics',
    tag='topics',
    status=201,
    refuses=(409, 422),
    examples=({'name': 'orders', 'partitions': 4, 'configs': {'retention.ms': '604800000'}}, SUMMARY_EXAMPLE),
)
async def create_topic(call: Call, body: TopicToCreate) -> TopicSummary:
    """Create a topic.

    Without `partitions` it has as many as the server's `num.partitions`. With `dry_run` nothing is made, and the answer
    is what would be."""
    broker = call.broker
    check_new_topic_name(body.name)
    broker.authorize(call.caller, 'CREATE', 'TOPIC', body.name)
    try:
        configs = TOPIC.normalized(body.configs)
    except ConfigError as error:
        raise refused_config(TOPIC, error) from None
    count = body.partitions or broker.settings.integer('num.partitions')
    if body.dry_run:
        if body.name in broker.catalog.topics:
            raise topic_exists(body.name)
        broker.catalog.check_room(count)
        return TopicSummary(body.name, '', count, configs)
    [created] = await create_topics(broker, [NewTopic(body.name, count, configs)])
    if isinstance(created, Exception):
        raise created
    call.location = f'/v1/topics/{quote(created.name, safe="")}'
    return _summary(created)


@endpoint('GET', '/v1/topics/{topic}', tag='topics', refuses=(404,), examples=(None, VIEW_EXAMPLE))
async def show_topic(call: Call, topic: TopicName) -> TopicView:
    """Show a topic and its partitions."""
    found = find_topic(call, 'DESCRIBE', topic)
    partitions = []
    for index in range(found.partitions):
        partition = call.broker.partition(found.id_bytes, index)
        if partition is not None:
            log = partition.log
            partitions.append(PartitionView(index, log.start, log.visible_end, log.size))
    return TopicView(found.name, found.id_text, found.configs, partitions)


@endpoint(
    'PATCH',
    '/v1/topics/{topic}',
    tag='topics',
    refuses=(404, 422),
    examples=({'partitions': 8}, SUMMARY_EXAMPLE | {'partitions': 8}),
)
async def add_topic_partitions(call: Call, topic: TopicName, body: MorePartitions) -> TopicSummary:
    """Give a topic more partitions.

    Records of a key that were published before stay where they are; later ones may go to another partition."""
    found = find_topic(call, 'ALTER', topic)
    if body.partitions <= found.partitions:
        raise not_more_partitions(found, body.partitions)
    if body.dry_run:
        call.broker.catalog.check_room(body.partitions - found.partitions)
    elif not await add_partitions(call.broker, found, body.partitions):
        raise no_topic(topic)
    summary = _summary(found)
    summary.partitions = body.partitions
    return summary


@endpoint('DELETE', '/v1/topics/{topic}', tag='topics', refuses=(403, 404))
async def remove_topic(call: Call, topic: TopicName) -> None:
    """Delete a topic with all its records, and what groups know of them."""
    found = find_topic(call, 'DELETE', topic)
    if not call.broker.settings.flag('delete.topic.enable'):
        raise Refused(ErrorCode.TOPIC_DELETION_DISABLED, 'Topic deletion is disabled (delete.topic.enable).')
    if not await delete_topic(call.broker, found):
        raise no_topic(topic)


def _summary(topic: Topic) -> TopicSummary:
    return TopicSummary(topic.name, topic.id_text, topic.partitions, topic.configs)


TOPICS = (list_topics, create_topic, show_topic, add_topic_partitions, remove_topic)
