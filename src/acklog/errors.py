"""The exception tree: by whose fault, and so by what follows.

    AcklogError
    ├── ProtocolError        the peer sent bytes that are no message: its connection is closed
    ├── ConfigError          a setting is wrong: names it, its value and what is allowed
    ├── InvalidRecordState   somebody acknowledges what it does not hold; nothing has changed
    ├── MembershipError      a member of a group is out of step with it, or there is no room for one
    │   ├── UnknownMember        no member of that id: it joins anew
    │   ├── FencedMember         its epoch is none of its own: it joins anew
    │   ├── GroupFull            the group has as many members as it may have
    │   └── BadHeartbeat         a heartbeat that makes no sense
    ├── ShareSessionError    a request does not fit its share session (KIP-932)
    │   ├── SessionNotFound      there is none
    │   ├── SessionEpoch         not the epoch that comes next
    │   └── SessionLimit         there are as many as there may be
    ├── BatchError           a record batch is refused on the way in
    │   ├── CorruptBatch         CRC or lengths do not fit
    │   ├── InvalidBatch         what it says of itself cannot be
    │   ├── UnsupportedFormat    a message format older than v2
    │   ├── TooManyBatches       more than may come together
    │   └── BatchTooLarge        above max.message.bytes
    ├── ProducerError        an idempotent producer is out of step
    │   ├── OutOfOrderSequence   a gap in its sequence
    │   └── StaleProducerEpoch   a newer instance of the same producer exists
    └── LogError             a log cannot do what was asked
        ├── OutOfRange           below the log's start or above its end; carries both
        ├── Full                 no space left; reads go on, and writes when there is space again
        ├── Failed               a write or sync failed; nothing of it counts as done
        ├── Fenced               written with an epoch that is no longer the owner's
        ├── OutcomeUnknown       it may or may not have been written
        ├── Damaged              a stored batch is broken; carries file and offset
        └── Closed               the log was closed or deleted meanwhile

Anything else that is raised is a bug and propagates.
"""

from __future__ import annotations


class AcklogError(Exception):
    """Everything that acklog raises on purpose."""


class ProtocolError(AcklogError):
    """The peer sent bytes that are no message of the protocol."""


class ConfigError(AcklogError):
    """A setting cannot be used.

    `name`: the setting; `value`: what was given; `allowed`: what would be accepted, in words.
    """

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(f'{name}={value!r} is not allowed: {allowed}')
        self.name, self.value, self.allowed = name, value, allowed


class InvalidRecordState(AcklogError):
    """An acknowledgement names what its member does not hold; nothing has changed (KIP-932)."""


class MembershipError(AcklogError):
    """A member of a group is out of step with it, or there is no room for one (KIP-932)."""


class UnknownMember(MembershipError):
    """The group has no member of that id."""


class FencedMember(MembershipError):
    """The member's epoch is neither its current nor its previous one."""


class GroupFull(MembershipError):
    """The group has as many members, or its members subscribe to as much, as may be."""


class BadHeartbeat(MembershipError):
    """A heartbeat that makes no sense."""


class ShareSessionError(AcklogError):
    """A request does not fit its share session (KIP-932)."""


class SessionNotFound(ShareSessionError):
    """The member has no share session."""


class SessionEpoch(ShareSessionError):
    """Not the epoch that comes next in its share session."""


class SessionLimit(ShareSessionError):
    """There are as many share sessions, or partitions in them, as there may be."""


class BatchError(AcklogError):
    """A record batch is refused before it is stored."""


class CorruptBatch(BatchError):
    """Its CRC or lengths do not fit, or it cannot be unpacked."""


class InvalidBatch(BatchError):
    """It arrived as it was sent, and says of itself what cannot be, or is not a producer's to say."""


class UnsupportedFormat(BatchError):
    """Its message format is older than v2 (magic below 2)."""


class TooManyBatches(BatchError):
    """There are more of them than may come together."""


class BatchTooLarge(BatchError):
    """It is larger than max.message.bytes."""


class ProducerError(AcklogError):
    """An idempotent producer is out of step with the log."""


class OutOfOrderSequence(ProducerError):
    """Its sequence leaves a gap."""


class StaleProducerEpoch(ProducerError):
    """Its epoch is older than one already seen."""


class LogError(AcklogError):
    """A log cannot do what was asked."""


class OutOfRange(LogError):
    """The offset is not in the log; `start` and `end` say what is."""

    def __init__(self, offset: int, start: int, end: int) -> None:
        what = f'holds {start} to {end - 1}' if start < end else f'is empty and goes on at {end}'
        super().__init__(f'offset {offset} is not in the log, which {what}')
        self.offset, self.start, self.end = offset, start, end


class Full(LogError):
    """There is no space left; reads go on, writes do again when there is space."""


class Failed(LogError):
    """A write or a sync failed; nothing of it counts as done."""


class Fenced(LogError):
    """Written with an epoch that is no longer the owner's."""


class OutcomeUnknown(LogError):
    """It may or may not have been written."""


class Damaged(LogError):
    """A stored batch is broken; the message names file and offset."""


class Closed(LogError):
    """The log was closed or deleted meanwhile."""
