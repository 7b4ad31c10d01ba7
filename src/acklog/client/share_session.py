"""A share session with one server: its epochs, its partitions, and the acknowledgements that go with it (KIP-932).

No I/O and no clock: it makes requests and takes answers in. ShareFetch and ShareAcknowledge share one epoch: 0 opens
the session with all partitions, then 1, 2, ..., -1 closes it. The epoch goes on with every answer but a session
error, after which a new session is opened; what was held in the old one is no longer held.

A request whose answer never came may have been carried out. Its acknowledgements are sent once more in the next one,
so that they are not lost when it was not; the server passes over those that it knows. Whether the server's epoch went
on with it is not known either: if it does not take the same epoch again, it is asked with the next one.

A server takes all acknowledgements that a request has for a partition, or none. So when it refuses them because a lock
had run out, those from other fetches are told again, each fetch's on their own: only what has run out is lost.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from acklog.client.errors import AcknowledgementFailure, error_code
from acklog.client.unsettled import Decision, Told, Unsettled
from acklog.wire import share_acknowledge, share_fetch
from acklog.wire.acknowledgements import GAP, RELEASE, RENEW, Acknowledgement
from acklog.wire.error_code import ErrorCode

Key = tuple[uuid.UUID, int]  # topic id, partition

OPEN, CLOSE = 0, -1
_HIGHEST_EPOCH = (1 << 31) - 1
_RENEW = bytes([RENEW])

SESSION_ERRORS = frozenset(
    {
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)


class Limits(NamedTuple):
    """What one fetch may bring."""

    max_wait_ms: int
    max_bytes: int
    max_records: int
    strict: bool  # not a record more than max_records, where the server can (v2)


class ShareSession:
    """The session of one member with one node. `names`: topic names by id, for messages."""

    def __init__(self, group: str, member: str, names: Mapping[uuid.UUID, str]) -> None:
        self.group, self.member, self._names = group, member, names
        self.epoch = OPEN
        self.grace_ms: int | None = None  # asked for with every fetch
        self._uncertain = False  # whether the server's epoch may be one further
        self.partitions: frozenset[Key] = frozenset()
        self.failures: list[AcknowledgementFailure] = []
        self._unsettled: dict[Key, Unsettled] = {}
        self._sent: dict[Key, list[Told]] = {}
        self._apart: dict[Key, list[list[Told]]] = {}  # refused together: to be told one after the other
        self.fetches = 0  # how many have brought something

    # --- what is held

    def of(self, key: Key) -> Unsettled:
        """What is held of a partition."""
        unsettled = self._unsettled.get(key)
        if unsettled is None:
            unsettled = self._unsettled[key] = Unsettled()
        return unsettled

    @property
    def held(self) -> int:
        """Number of records handed out about which nothing has been said yet."""
        return sum(len(unsettled.open) for unsettled in self._unsettled.values())

    @property
    def has_decisions(self) -> bool:
        """Whether there is something to tell the server."""
        held = self._unsettled.values()
        return bool(self._apart) or any(unsettled.decided or unsettled.gaps for unsettled in held)

    def taken(
        self,
        key: Key,
        offsets: Iterable[int],
        gaps: Iterable[tuple[int, int]],
        unreadable: Iterable[tuple[int, int]],
    ) -> None:
        """A fetch has brought these records of a partition. Gaps are told as such, what cannot be read is released."""
        self.fetches += 1
        unsettled = self.of(key)
        unsettled.open.update(dict.fromkeys(offsets, self.fetches))
        unsettled.gaps += [(first, last, self.fetches) for first, last in gaps]
        for first, last in unreadable:
            unsettled.decided.update(dict.fromkeys(range(first, last + 1), Decision(RELEASE, None, self.fetches)))

    def ran_out(self, key: Key, taken: int) -> None:
        """The lock of what is open of that fetch has run out: it is no longer held."""
        unsettled = self.of(key)
        for offset in [offset for offset, number in unsettled.open.items() if number == taken]:
            del unsettled.open[offset]

    # --- requests

    def fetch(self, wanted: Collection[Key], limits: Limits) -> share_fetch.Request:
        """The next ShareFetch: the partitions wanted from now on, and all acknowledgements that can go with it.

        The request that opens a session can carry none; there are none then."""
        wanted = frozenset(wanted)
        acks = self._take_acks()
        added = wanted - self.partitions
        removed = (self.partitions | acks.keys()) - wanted  # acknowledging alone would bring one into the session
        self.partitions = wanted
        return share_fetch.Request(
            group_id=self.group,
            member_id=self.member,
            session_epoch=self.epoch,
            max_wait_ms=limits.max_wait_ms,
            min_bytes=1,
            max_bytes=limits.max_bytes,
            max_records=limits.max_records,
            batch_size=limits.max_records,
            acquire_mode=share_fetch.RECORD_LIMIT if limits.strict else share_fetch.BATCH_OPTIMIZED,
            is_renew=False,
            topics=_topics({key: acks.get(key, ()) for key in added | acks.keys()}),
            forgotten=[
                share_fetch.Forgotten(topic.topic_id, [partition.index for partition in topic.partitions])
                for topic in _topics(dict.fromkeys(removed, ()))
            ],
            grace_ms=self.grace_ms,
        )

    def acknowledge(self, *, close: bool = False) -> share_acknowledge.Request:
        """A ShareAcknowledge with all that is to be told; `close`: and the end of the session."""
        topics = _topics(self._take_acks())
        return share_acknowledge.Request(self.group, self.member, CLOSE if close else self.epoch, False, topics)

    def open_ranges(self) -> dict[Key, list[Acknowledgement]]:
        """Renewals of all that is open."""
        renewals: dict[Key, list[Acknowledgement]] = {}
        for key, unsettled in self._unsettled.items():
            if unsettled.open:
                renewals[key] = [(first, last, _RENEW, None) for first, last in unsettled.ranges()]
        return renewals

    def renew(self, ranges: Mapping[Key, Sequence[Acknowledgement]]) -> share_acknowledge.Request:
        """A ShareAcknowledge that renews locks and nothing else (KIP-1222)."""
        self._sent = {}
        return share_acknowledge.Request(self.group, self.member, self.epoch, True, _topics(ranges))

    def _take_acks(self) -> dict[Key, list[Acknowledgement]]:
        self._sent = {}
        for key, groups in list(self._apart.items()):
            self._sent[key] = groups.pop()
            if not groups:
                del self._apart[key]
        for key, unsettled in list(self._unsettled.items()):
            if key not in self._sent and (told := unsettled.take()):
                self._sent[key] = told
            if not unsettled.open and not unsettled.decided:
                del self._unsettled[key]
        return {key: [each.ack for each in told] for key, told in self._sent.items()}

    # --- answers

    def advanced(self, error: int, message: str | None) -> bool:
        """An answer came, with this error for the request as a whole; False if it was not carried out: the session is
        gone, or the next request has another epoch."""
        code = error_code(error)
        uncertain, self._uncertain = self._uncertain, False
        if uncertain and code is ErrorCode.INVALID_SHARE_SESSION_EPOCH:
            self._put_back()
            self.epoch = _next(self.epoch)
            return False
        if code in SESSION_ERRORS:
            for key, told in self._sent.items():
                self._refused(key, told, code, message)
            self.lost(code)
            return False
        self.epoch = _next(self.epoch)
        if code is not ErrorCode.NONE:
            self._put_back()
        return True

    def settled(self, key: Key, error: int, message: str | None) -> None:
        """What the server said to the acknowledgements of a partition."""
        sent = self._sent.pop(key, None)
        if not error or not sent:
            return
        code = error_code(error)
        by_fetch: dict[int, list[Told]] = {}
        for told in sent:
            by_fetch.setdefault(told.taken, []).append(told)
        if code is ErrorCode.INVALID_RECORD_STATE and len(by_fetch) > 1:
            self._apart.setdefault(key, []).extend(by_fetch.values())
        else:
            self._refused(key, sent, code, message)

    def unanswered(self) -> None:
        """The request was not, or may not have been, carried out: tell the acknowledgements again with the next one,
        and all partitions."""
        self._uncertain = self.epoch != OPEN
        self._put_back()

    def _put_back(self) -> None:
        for key, told in self._sent.items():
            self.of(key).put_back(told)
        self._sent = {}
        self.partitions = frozenset()

    def lost(self, code: ErrorCode) -> None:
        """The session is gone, and with it all that was held; the next request opens another one."""
        for key, unsettled in self._unsettled.items():
            self._refused(key, unsettled.take(), code, None)
        for key, groups in self._apart.items():
            for told in groups:
                self._refused(key, told, code, None)
        self._unsettled.clear()
        self._apart.clear()
        self._sent = {}
        self.partitions = frozenset()
        self.epoch = OPEN

    def _refused(self, key: Key, told: Iterable[Told], code: ErrorCode, message: str | None) -> None:
        topic = self._names.get(key[0], str(key[0]))
        for batch, _ in told:
            first, last, types = batch[:3]
            if types[0] != GAP:
                self.failures.append(AcknowledgementFailure(topic, key[1], first, last, code, message or ''))


def _next(epoch: int) -> int:
    return 1 if epoch == _HIGHEST_EPOCH else epoch + 1


def _topics(partitions: Mapping[Key, Sequence[Acknowledgement]]) -> list[share_fetch.Topic]:
    by_topic: dict[uuid.UUID, list[share_fetch.Partition]] = {}
    for (topic_id, index), acks in sorted(partitions.items(), key=lambda item: item[0]):
        by_topic.setdefault(topic_id, []).append(share_fetch.Partition(index, acks))
    return [share_fetch.Topic(topic_id.bytes, parts) for topic_id, parts in by_topic.items()]
