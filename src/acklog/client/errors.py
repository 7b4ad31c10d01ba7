"""What the client raises.

AcklogError
└── ClientError
    ├── Unreachable                no server answers at any of the addresses
    ├── Disconnected               the connection was lost while an answer was awaited: the outcome is unknown
    ├── TimedOut                   no answer in the time allowed: the outcome is unknown
    ├── Unsupported                this server does not offer what was asked
    ├── Refused                    the server answered with an error code
    │   ├── NotFound                   the topic, partition or group does not exist
    │   └── AlreadyExists              ... exists already
    ├── AcknowledgementsRefused    some records were no longer this member's to sign off
    ├── TooManyUnsettled           too many records were taken and not signed off
    └── ClientClosed               the client, producer or subscription was closed, or is not open yet
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from acklog.errors import AcklogError
from acklog.wire import error_words
from acklog.wire.error_code import ErrorCode


class ClientError(AcklogError):
    """Everything that the client raises on purpose."""


class Unreachable(ClientError):
    """No server answers at the address, or at none of them."""


class Disconnected(ClientError):
    """The connection was lost while an answer was awaited: it may or may not have been done."""


class TimedOut(ClientError):
    """No answer came in the time allowed: it may or may not have been done."""


PASSING = (Disconnected, TimedOut, Unreachable)  # a server may be back later, or another one in its place


class Unsupported(ClientError):
    """This server does not offer what was asked (an API, a version of it, or what only acklog has)."""


class Refused(ClientError):
    """The server answered with an error, or is known to: `code` is Kafka's, `subject` names what was asked about,
    `message` is in the server's own words ('' if it sent none)."""

    def __init__(self, code: ErrorCode, subject: str, message: str = '') -> None:
        words = message or _WORDS.get(code, 'the server refused').format(subject=subject)
        named = subject.lower() in words.lower()
        super().__init__(f'{words if named else f"{subject}: {words}"} ({code.name})')
        self.code, self.subject, self.message = code, subject, message


class NotFound(Refused):
    """The topic, partition, group or other resource does not exist."""


class AlreadyExists(Refused):
    """There is a topic of that name already."""


class AcknowledgementFailure(NamedTuple):
    """A range of offsets whose acknowledgement the server refused; both ends included."""

    topic: str
    partition: int
    first: int
    last: int
    code: ErrorCode
    message: str


class AcknowledgementsRefused(ClientError):
    """Some records were no longer this member's to sign off, mostly because their locks had run out: they are delivered
    again. `failures` says which; all other acknowledgements of the same call were applied."""

    def __init__(self, failures: Sequence[AcknowledgementFailure]) -> None:
        first = failures[0]
        more = f' (and {len(failures) - 1} more ranges)' if len(failures) > 1 else ''
        offsets = f'{first.first}-{first.last}' if first.first < first.last else str(first.first)
        super().__init__(
            f'{first.topic}/{first.partition}/{offsets}{more} could not be signed off: '
            f'{first.message or first.code.name}'
        )
        self.failures = tuple(failures)


class TooManyUnsettled(ClientError):
    """More records are taken and not signed off than the subscription allows; sign some off before taking more."""


class ClientClosed(ClientError):
    """The client, producer or subscription was closed; or the subscription is not open yet."""


_NOT_FOUND = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.RESOURCE_NOT_FOUND,
    }
)

_WORDS = {  # where the server sent none
    **dict.fromkeys(_NOT_FOUND, error_words.no_such('{subject}')),
    ErrorCode.TOPIC_ALREADY_EXISTS: error_words.exists('{subject}'),
    ErrorCode.INVALID_TOPIC_EXCEPTION: error_words.TOPIC_RULE,
    ErrorCode.INVALID_GROUP_ID: error_words.GROUP_RULE,
    ErrorCode.INVALID_PARTITIONS: 'this number of partitions is not allowed',
    ErrorCode.INVALID_REPLICATION_FACTOR: 'this replication factor is not allowed',
    ErrorCode.INVALID_CONFIG: 'a config has a value that is not allowed',
    ErrorCode.NON_EMPTY_GROUP: error_words.has_members('{subject}'),
    ErrorCode.MESSAGE_TOO_LARGE: 'a record or batch is larger than max.message.bytes',
    ErrorCode.RECORD_LIST_TOO_LARGE: 'a batch is larger than a segment',
    ErrorCode.CORRUPT_MESSAGE: 'the records arrived damaged',
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: 'not allowed on this topic',
    ErrorCode.GROUP_AUTHORIZATION_FAILED: 'not allowed on this group',
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 'not allowed on this server',
    ErrorCode.KAFKA_STORAGE_ERROR: 'the server cannot write to its disk; its log says why',
    ErrorCode.INVALID_RECORD_STATE: 'held by another member, by an older lock, or by nobody',
    ErrorCode.GROUP_MAX_SIZE_REACHED: 'the group has as many members as it may have',
    ErrorCode.SHARE_SESSION_LIMIT_REACHED: 'the server has as many share sessions as it may have',
    ErrorCode.NOT_ENOUGH_REPLICAS: 'too few replicas are in sync',
    ErrorCode.UNSUPPORTED_VERSION: 'the server does not offer that',
    ErrorCode.INVALID_REQUEST: 'the server calls the request invalid',
    ErrorCode.UNKNOWN_SERVER_ERROR: 'the server failed; its log says why',
}

RETRIABLE = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""Codes after which the same request may well succeed a moment later."""


def error_code(number: int) -> ErrorCode:
    """The code of that number; one that is newer than this client counts as UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def refusal(number: int, subject: str, message: str | None = None) -> Refused:
    """The exception for an error code in an answer; `subject` names what was asked about."""
    code = error_code(number)
    if code in _NOT_FOUND:
        return NotFound(code, subject, message or '')
    if code is ErrorCode.TOPIC_ALREADY_EXISTS:
        return AlreadyExists(code, subject, message or '')
    return Refused(code, subject, message or '')


def check(number: int, subject: str, message: str | None = None) -> None:
    """Raise what the error code says, nothing for 0."""
    if number:
        raise refusal(number, subject, message)
