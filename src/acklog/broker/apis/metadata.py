"""Metadata (3), v0-v13: the node, and topics by name or id.

A topic that is asked for by name and does not exist is created when `auto.create.topics.enable` and the request allow
it (KIP-204), and is in the same answer. No list asks for all topics; in v0 an empty one does.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.apis.create_topics import MOST_AT_ONCE, TOO_MANY
from acklog.broker.apis.described_topics import NOT_ASKED, authorized_operations, may, partitions
from acklog.broker.catalog.catalog import NewTopic, Topic
from acklog.broker.catalog.topics import create_topics
from acklog.broker.eager import Pace
from acklog.broker.lazily import Lazily
from acklog.broker.refusals import check_new_topic_name, check_topic_name
from acklog.wire.error_code import ErrorCode
from acklog.wire.error_words import INTERNAL

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

Answers = Lazily[Any, dict[str, Any]]


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    operations = bool(getattr(request, 'include_topic_authorized_operations', False))
    answers: Answers
    if request.topics is None or (version == 0 and not request.topics):
        wanted = [
            topic for topic in broker.catalog.topics.values() if may(broker, caller, 'DESCRIBE', 'TOPIC', topic.name)
        ]
        answers = Lazily(lambda topic: _describe(broker, caller, topic, operations), wanted)
    else:
        create = getattr(request, 'allow_auto_topic_creation', True)
        answers = await _asked_for(broker, caller, request.topics, operations=operations, create=create)
    node = broker.node
    cluster_operations = NOT_ASKED
    if getattr(request, 'include_cluster_authorized_operations', False):
        cluster_operations = authorized_operations(broker, caller, 'CLUSTER', '')
    return {
        'brokers': [{'node_id': node.id, 'host': node.host, 'port': node.port, 'rack': None}],
        'cluster_id': node.cluster_id,
        'controller_id': node.id,
        'topics': answers,
        'cluster_authorized_operations': cluster_operations,
        'error_code': ErrorCode.NONE,
    }


async def _asked_for(broker: Broker, caller: Caller, asked: Any, *, operations: bool, create: bool) -> Answers:
    """Answers for topics asked for by name or id, each once."""
    ids: dict[uuid.UUID, None] = {}
    names: dict[str, None] = {}
    pace = Pace()
    for entry in asked:
        await pace.keep()
        topic_id = getattr(entry, 'topic_id', None)
        if topic_id is not None and entry.name is None:
            ids[topic_id] = None
        else:
            names[entry.name or ''] = None
    refused = await _create_missing(broker, caller, names) if create else {}

    def describe(key: str | uuid.UUID) -> dict[str, Any]:
        if isinstance(key, uuid.UUID):
            return _by_id(broker, caller, key, operations)
        return _by_name(broker, caller, key, refused.get(key), operations)

    return Lazily(describe, [*ids, *names])


async def _create_missing(broker: Broker, caller: Caller, names: Iterable[str]) -> dict[str, tuple[ErrorCode, str]]:
    """Create those that do not exist; (code, words) for each that cannot be created."""
    if not broker.settings.flag('auto.create.topics.enable'):
        return {}
    refused: dict[str, tuple[ErrorCode, str]] = {}
    missing: list[NewTopic] = []
    count = broker.settings.integer('num.partitions')
    pace = Pace()
    for name in names:
        await pace.keep()
        if name in broker.catalog.topics:
            continue
        try:
            check_new_topic_name(name)
            broker.authorize(caller, 'CREATE', 'TOPIC', name)
            if (len(missing) + 1) * count > MOST_AT_ONCE:
                raise Refused(ErrorCode.POLICY_VIOLATION, TOO_MANY)
        except Refused as error:
            refused[name] = answer_to(error)
        else:
            missing.append(NewTopic(name, count))
    if missing:
        refused |= await _create(broker, missing)
    return refused


async def _create(broker: Broker, missing: list[NewTopic]) -> dict[str, tuple[ErrorCode, str]]:
    refused: dict[str, tuple[ErrorCode, str]] = {}
    for new, answer in zip(missing, await create_topics(broker, missing), strict=True):
        if isinstance(answer, Exception):
            code, message = answer_to(answer)
            if code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                refused[new.name] = code, message
    return refused


def _by_id(broker: Broker, caller: Caller, topic_id: uuid.UUID, operations: bool) -> dict[str, Any]:
    topic = broker.catalog.topics_by_id.get(topic_id.bytes)
    if topic is None or not may(broker, caller, 'DESCRIBE', 'TOPIC', topic.name):
        return _nothing(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
    return _describe(broker, caller, topic, operations)


def _by_name(
    broker: Broker, caller: Caller, name: str, refused: tuple[ErrorCode, str] | None, operations: bool
) -> dict[str, Any]:
    topic = broker.catalog.topics.get(name)
    allowed = _operations(broker, caller, name, operations)
    try:
        check_topic_name(name)
        broker.authorize(caller, 'DESCRIBE', 'TOPIC', name)
    except Refused as error:
        return _nothing(error.code, name) | allowed
    if topic is not None:
        return _describe(broker, caller, topic, operations)
    return _nothing(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if refused is None else refused[0], name) | allowed


def _nothing(code: ErrorCode, name: str | None, topic_id: uuid.UUID | None = None) -> dict[str, Any]:
    return {'error_code': code, 'name': name, 'topic_id': topic_id, 'partitions': []}


def _describe(broker: Broker, caller: Caller, topic: Topic, operations: bool) -> dict[str, Any]:
    return {
        'error_code': ErrorCode.NONE,
        'name': topic.name,
        'topic_id': topic.id,
        'is_internal': topic.name.startswith(INTERNAL),
        'partitions': partitions(broker, topic),
        **_operations(broker, caller, topic.name, operations),
    }


def _operations(broker: Broker, caller: Caller, name: str, asked: bool) -> dict[str, int]:
    bits = authorized_operations(broker, caller, 'TOPIC', name) if asked else NOT_ASKED
    return {'topic_authorized_operations': bits}


API = Api(3, 'Metadata', (0, 13), handle)
