"""Fetch sessions (KIP-227): a consumer says once what it reads, then only what changed, and is answered only what
did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acklog.broker.api import Refused
from acklog.wire import fetch
from acklog.wire.error_code import ErrorCode

NONE = 0  # session id of no session
INITIAL_EPOCH, SESSIONLESS_EPOCH = 0, -1
LAST_EPOCH = 2**31 - 1
PARTITIONS_OF_ALL = 500_000

TopicKey = tuple[str, bytes | None]  # name or id, as the version has it
Key = tuple[str, bytes | None, int]


class FetchSession:
    """What one consumer reads. `shown`: what it was last told of a partition (high watermark, log start)."""

    __slots__ = ('epoch', 'id', 'partitions', 'shown')

    def __init__(self, session_id: int) -> None:
        self.id = session_id
        self.epoch = 1
        self.partitions: dict[Key, fetch.Partition] = {}
        self.shown: dict[Key, tuple[int, int]] = {}

    def update(self, request: fetch.Request) -> None:
        for topic in request.topics:
            for partition in topic.partitions:
                self.partitions[topic.name, topic.topic_id, partition.index] = partition
        for forgotten in request.forgotten:
            for index in forgotten.partitions:
                self.partitions.pop((forgotten.name, forgotten.topic_id, index), None)
                self.shown.pop((forgotten.name, forgotten.topic_id, index), None)

    def turn(self, answered: Sequence[Key]) -> None:
        """Partitions that gave records come last next time, so that none starves."""
        for key in answered:
            if (partition := self.partitions.pop(key, None)) is not None:
                self.partitions[key] = partition

    def changed(self, key: Key, answer: fetch.PartitionResponse) -> bool:
        """Whether this answer tells anything new; then it counts as told."""
        now = (answer.high_watermark, answer.log_start)
        new = bool(answer.records) or answer.error_code != ErrorCode.NONE or self.shown.get(key) != now
        if new:
            self.shown[key] = now
        return new


class FetchSessions:
    """The sessions of a node, at most `slots`; the one unused for longest makes room for a new one."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}
        self._last_id = 0

    def begin(self, request: fetch.Request) -> FetchSession | None:
        """The session that a request belongs to, brought up to date; None for one outside any session.

        Raises Refused (FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH)."""
        if request.session_epoch in (INITIAL_EPOCH, SESSIONLESS_EPOCH):
            self._sessions.pop(request.session_id, None)
            if request.session_epoch == SESSIONLESS_EPOCH or not self._room(request):
                return None
            return self._new(request)
        session = self._sessions.pop(request.session_id, None)
        if session is None:
            raise Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f'there is no fetch session {request.session_id}')
        self._sessions[session.id] = session  # used last
        if session.epoch != request.session_epoch:
            raise Refused(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f'fetch session epoch {request.session_epoch} came where {session.epoch} was expected',
            )
        session.epoch = 1 if session.epoch == LAST_EPOCH else session.epoch + 1
        session.update(request)
        if len(session.partitions) > PARTITIONS_OF_ALL // self._slots:
            del self._sessions[session.id]  # its client begins another one, and is told that there is none for so many
            raise Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f'fetch session {session.id} has too many partitions')
        return session

    def _room(self, request: fetch.Request) -> bool:
        asked = sum(len(topic.partitions) for topic in request.topics)
        if self._slots < 1 or asked > PARTITIONS_OF_ALL // self._slots:
            return False
        while len(self._sessions) >= self._slots:
            del self._sessions[next(iter(self._sessions))]
        return True

    def _new(self, request: fetch.Request) -> FetchSession:
        self._last_id = self._last_id % LAST_EPOCH + 1
        session = self._sessions[self._last_id] = FetchSession(self._last_id)
        session.update(request)
        return session


def outside(request: fetch.Request) -> Iterator[tuple[Key, fetch.Partition]]:
    """What a request outside any session asks for."""
    for topic in request.topics:
        for partition in topic.partitions:
            yield (topic.name, topic.topic_id, partition.index), partition
