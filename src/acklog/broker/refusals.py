"""The refusals that many requests have in common, over the Kafka protocol and over HTTP: one cause, one code, one text.

Kafka says some of these in words of its own, another for each API, that often do not name what was asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acklog.broker.api import Refused
from acklog.errors import OutOfRange
from acklog.wire import error_words
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.catalog.catalog import Topic
    from acklog.broker.partition import Partition


# -- names -------------------------------------------------------------------------------------------------------------


def check_topic_name(name: str) -> None:
    """Raises Refused (INVALID_TOPIC_EXCEPTION) when no topic can have this name."""
    if fault := error_words.topic_fault(name):
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)


def check_new_topic_name(name: str) -> None:
    """Raises Refused (INVALID_TOPIC_EXCEPTION) when no topic of this name can be created."""
    if fault := error_words.new_topic_fault(name):
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)


def check_member_name(name: str) -> None:
    """Raises Refused (INVALID_REQUEST) when no member of a group can have this name."""
    if not 0 < len(name) <= error_words.LONGEST_MEMBER:
        raise Refused(ErrorCode.INVALID_REQUEST, error_words.MEMBER_RULE)


def check_group_name(name: str, code: ErrorCode = ErrorCode.INVALID_GROUP_ID) -> None:
    """Raises Refused when no group can have this name."""
    if fault := error_words.group_fault(name):
        raise Refused(code, fault)


# -- what is not there -------------------------------------------------------------------------------------------------


def no_topic(name: str) -> Refused:
    """There is no topic of that name."""
    return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, error_words.no_such(f'topic {name!r}'))


def no_topic_id() -> Refused:
    """There is no topic with the id that was given."""
    return Refused(ErrorCode.UNKNOWN_TOPIC_ID, error_words.no_such('topic with that id'))


def no_partition(topic: Topic, index: int) -> Refused:
    """The topic has no such partition."""
    words = error_words.no_partition(topic.name, topic.partitions, index)
    return Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)


def no_group(name: str) -> Refused:
    """There is no group of that name."""
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, error_words.no_such(f'group {name!r}'))


def no_member(group: str, member: str) -> Refused:
    """The group has no such member, or not any more."""
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f'group {group!r} has no member {member!r} (any more)')


def no_record(partition: Partition, offset: int) -> Refused:
    """There is no record at that offset: it is not in the log, or a gap of it."""
    log, place = partition.log, _place(partition)
    if log.start <= offset < log.visible_end:
        return Refused(ErrorCode.OFFSET_OUT_OF_RANGE, error_words.no_such(f'record {place}/{offset}'))
    words = str(OutOfRange(offset, log.start, log.visible_end)).replace('the log', place, 1)
    return Refused(ErrorCode.OFFSET_OUT_OF_RANGE, words)


def past_end(partition: Partition, offset: int) -> Refused:
    """Of those who may name the offset of the next record, but none above it."""
    log, place = partition.log, _place(partition)
    words = f'offset {offset} is past the end of {place}: {log.start} to {log.visible_end} can be named'
    return Refused(ErrorCode.OFFSET_OUT_OF_RANGE, words)


def _place(partition: Partition) -> str:
    return f'{partition.topic_name}/{partition.index}'


# -- what does not fit -------------------------------------------------------------------------------------------------


def topic_exists(name: str) -> Refused:
    """There is one of that name."""
    return Refused(ErrorCode.TOPIC_ALREADY_EXISTS, error_words.exists(f'topic {name!r}'))


def has_members(group: str) -> Refused:
    """What is asked for is for groups without members."""
    return Refused(ErrorCode.NON_EMPTY_GROUP, error_words.has_members(f'group {group!r}'))


def check_leader_epoch(partition: Partition, known: int) -> None:
    """Raises Refused when a client knows another leader epoch of the partition (KIP-320). `known` -1: it knows none."""
    epoch = partition.log.epoch
    if known > epoch:
        raise Refused(
            ErrorCode.UNKNOWN_LEADER_EPOCH, f'{_place(partition)} is at leader epoch {epoch}, not at {known} yet'
        )
    if 0 <= known < epoch:
        raise Refused(ErrorCode.FENCED_LEADER_EPOCH, f'{_place(partition)} is at leader epoch {epoch}, not at {known}')


def not_more_partitions(topic: Topic, count: int) -> Refused:
    """A topic can only get more than it has."""
    words = f'topic {topic.name!r} has {topic.partitions} partitions: {count} would not be more'
    return Refused(ErrorCode.INVALID_PARTITIONS, words)


def too_many_partitions(there: int, more: int, limit: int) -> Refused:
    """`there`: of all topics."""
    words = f'there are {there} partitions; {more} more are above the limit of {limit} (acklog.max.partitions)'
    return Refused(ErrorCode.POLICY_VIOLATION, words)


def no_instant(ms: int) -> Refused:
    """It is before 1970, or later than all times."""
    return Refused(ErrorCode.INVALID_REQUEST, f'{ms} ms since 1970 is no instant')
