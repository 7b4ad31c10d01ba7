"""CreateTopics (19), v2-v7: topics with a number of partitions, or assigned by hand to the one node there is.

Each topic is judged by itself; those that are right are created, many with one write. `validate_only` judges only.
From v5 on the answer carries id, numbers and configs (KIP-525). The timeout is not looked at: the answer comes when it
is done.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.apis.assignments import check_brokers
from acklog.broker.apis.config_answers import created_entries
from acklog.broker.apis.described_topics import may
from acklog.broker.catalog.catalog import NewTopic, Topic, new_id
from acklog.broker.catalog.config_changes import refused_config
from acklog.broker.catalog.topics import create_topics
from acklog.broker.configs import TOPIC
from acklog.broker.eager import Pace
from acklog.broker.lazily import Lazily
from acklog.broker.refusals import check_new_topic_name, topic_exists
from acklog.errors import ConfigError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

MOST_AT_ONCE = 10_000  # partitions in one request, as Kafka
TOO_MANY = f'Excessively large number of partitions per request: {MOST_AT_ONCE} are allowed.'


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    accepted, refused = await _judged(broker, caller, request)
    created: dict[str, Topic] = {}
    if accepted and not request.validate_only:
        for name, outcome in zip(accepted, await create_topics(broker, list(accepted.values())), strict=True):
            if isinstance(outcome, Topic):
                created[name] = outcome
            else:
                refused[name] = answer_to(outcome)

    def answer(name: str) -> dict[str, Any]:
        if name in refused:
            return _refused(name, refused[name])
        return _created(broker, caller, accepted[name], created.get(name))

    return {'topics': Lazily(answer, dict.fromkeys([entry.name for entry in request.topics]))}


async def _judged(
    broker: Broker, caller: Caller, request: Any
) -> tuple[dict[str, NewTopic], dict[str, tuple[ErrorCode, str]]]:
    """The topics that are right, and what is wrong with the others."""
    accepted: dict[str, NewTopic] = {}
    refused: dict[str, tuple[ErrorCode, str]] = {}
    times = Counter([entry.name for entry in request.topics])
    room, pace = MOST_AT_ONCE, Pace()
    for entry in request.topics:
        await pace.keep()
        try:
            if times[entry.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, 'Duplicate topic name.')
            topic = _judge(broker, caller, entry)
            if topic.partitions > room:
                raise Refused(ErrorCode.POLICY_VIOLATION, TOO_MANY)
            if request.validate_only:
                broker.catalog.check_room(topic.partitions)
            room -= topic.partitions
        except Refused as error:
            refused[entry.name] = answer_to(error)
        else:
            accepted[entry.name] = topic
    return accepted, refused


def _judge(broker: Broker, caller: Caller, entry: Any) -> NewTopic:
    """The topic that is asked for. Raises Refused."""
    check_new_topic_name(entry.name)
    broker.authorize(caller, 'CREATE', 'TOPIC', entry.name)
    if entry.name in broker.catalog.topics:
        raise topic_exists(entry.name)
    configs = {}
    for config in entry.configs:
        if config.value is None:
            message = f'Null value not supported for topic configs: {config.name}'
            raise Refused(ErrorCode.INVALID_CONFIG, message)
        configs[config.name] = config.value
    try:
        configs = TOPIC.normalized(configs)
    except ConfigError as error:
        raise refused_config(TOPIC, error) from None
    return NewTopic(entry.name, _count(broker, entry), configs)


def _count(broker: Broker, entry: Any) -> int:
    """How many partitions. Raises Refused."""
    replicas, count = entry.replication_factor, entry.num_partitions
    if entry.assignments:
        return _assigned(broker, entry)
    if replicas < -1 or replicas == 0:
        message = 'Replication factor must be larger than 0, or -1 to use the default value.'
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if count < -1 or count == 0:
        raise Refused(ErrorCode.INVALID_PARTITIONS, 'Number of partitions was set to an invalid non-positive value.')
    if replicas > 1:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f'Unable to replicate the partition {replicas} time(s): The target replication factor of {replicas} '
            'cannot be reached because only 1 broker(s) are registered.',
        )
    return int(count) if count != -1 else broker.settings.integer('num.partitions')


def _assigned(broker: Broker, entry: Any) -> int:
    by_hand = 'A manual partition assignment was specified, but'
    if entry.replication_factor != -1:
        raise Refused(ErrorCode.INVALID_REQUEST, f'{by_hand} replication factor was not set to -1.')
    if entry.num_partitions != -1:
        raise Refused(ErrorCode.INVALID_REQUEST, f'{by_hand} numPartitions was not set to -1.')
    indexes = set()
    for assignment in entry.assignments:
        index = assignment.partition_index
        if index in indexes:
            message = f'Found multiple manual partition assignments for partition {index}'
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        check_brokers(broker, assignment.broker_ids)
        indexes.add(index)
    if indexes != set(range(len(indexes))):
        message = 'partitions should be a consecutive 0-based integer sequence'
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return len(indexes)


def _refused(name: str, answer: tuple[ErrorCode, str]) -> dict[str, Any]:
    return {'name': name, 'error_code': answer[0], 'error_message': answer[1], 'configs': []}


def _created(broker: Broker, caller: Caller, new: NewTopic, topic: Topic | None) -> dict[str, Any]:
    """Success. Without a topic: how it would be (validate_only)."""
    if topic is None:
        topic = Topic(new.name, new_id(), new.partitions, new.configs, broker.settings)
    answer = {'name': new.name, 'topic_id': topic.id, 'error_code': ErrorCode.NONE, 'error_message': None}
    if not may(broker, caller, 'DESCRIBE_CONFIGS', 'TOPIC', new.name):
        return answer | {'topic_config_error_code': ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    return answer | {
        'num_partitions': topic.partitions,
        'replication_factor': 1,
        'configs': created_entries(topic, TOPIC),
    }


API = Api(19, 'CreateTopics', (2, 7), handle)
