"""What a subscription holds, and how its decisions get to the servers.

Strategy: each record that was handed out is open in the share session of the node that it came from, until something is
decided about it. Decisions go with the next fetch; where none comes soon, they are told on their own. A server answers
the requests of a session in their order, so what a server refused becomes known later: it is kept until somebody asks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from acklog.client.errors import PASSING, AcknowledgementFailure, AcknowledgementsRefused, ClientClosed, Unsupported
from acklog.client.received import Received
from acklog.client.share_link import ShareLink
from acklog.client.share_session import Key
from acklog.wire.acknowledgements import ACCEPT
from acklog.wire.error_code import ErrorCode

MOST_FAILURES = 1000  # kept until somebody asks for them

_NOBODY: tuple[None, None] = (None, None)


class Holding:
    """`links`: the share sessions, by node; `tell_after`: seconds after which decisions are told on their own."""

    def __init__(self, tell_after: float) -> None:
        self.links: dict[int, ShareLink] = {}
        self.closed = False  # nothing more is decided
        self._tell_after = tell_after
        self._holders: dict[tuple[str, int], tuple[ShareLink, Key]] = {}  # by topic and partition
        self._failures: deque[AcknowledgementFailure] = deque(maxlen=MOST_FAILURES)
        self._teller: asyncio.Task[None] | None = None

    @property
    def unsettled(self) -> int:
        """Number of records handed out about which nothing has been decided yet."""
        return sum(link.session.held for link in self.links.values())

    @property
    def lock_seconds(self) -> float:
        """How long a record is held; 0 before a server has said."""
        return max((link.lock_ms for link in self.links.values()), default=0) / 1000

    def comes_from(self, topic: str, index: int, link: ShareLink, key: Key) -> None:
        """Records of that partition are taken from there, and decided on there, from now on."""
        self._holders[topic, index] = link, key

    def holds(self, record: Received) -> bool:
        """Whether it is still to be decided on, and its lock not known to have run out."""
        link, key = self._holders.get((record.topic, record.partition), _NOBODY)
        return link is not None and key is not None and record.offset in link.session.of(key).open

    def check_open(self) -> None:
        """Raises ClientClosed."""
        if self.closed:
            raise ClientClosed('the subscription was closed')

    def check_acklog(self, record: Received, what: str) -> None:
        """Raises Unsupported where the record came from a server that cannot do `what`, which only acklog can."""
        link, _ = self._holders.get((record.topic, record.partition), _NOBODY)
        if link is not None and not link.knows_times:
            raise Unsupported(f'the server at {link.address} is not acklog: it cannot {what}')

    # --- deciding

    def decide(
        self,
        record: Received,
        type_: int,
        release_at: int | None = None,
        after: int | None = None,
        words: str | None = None,
    ) -> None:
        """This is to become of it. That it is not held is a failure, known at once. Raises ClientClosed."""
        if self.closed:
            self.check_open()
        link, key = self._holders.get((record[0], record[1]), _NOBODY)
        if link is None or key is None or not link.session.of(key).decide(record[2], type_, release_at, after, words):
            words_of_it = 'held by another member, or by nobody'
            self._failures.append(
                AcknowledgementFailure(*record[:3], record[2], ErrorCode.INVALID_RECORD_STATE, words_of_it)
            )
        else:
            self._tell()

    def accept_all(self, records: Iterable[Received]) -> None:
        """As `decide` each of them; those of one partition behind each other cost less."""
        topic, partition, decide = '', -1, None
        for record in records:
            if decide is None or record[1] != partition or record[0] != topic:
                topic, partition = record[:2]
                link, key = self._holders.get((topic, partition), _NOBODY)
                decide = None if link is None or key is None or self.closed else link.session.of(key).decide
            if decide is None or not decide(record[2], ACCEPT):
                self.decide(record, ACCEPT)  # says what is wrong
        self._tell()

    async def renew(self, records: Iterable[Received]) -> None:
        """Begin their locks anew. Raises Unsupported, Refused, the connection's errors."""
        by_place: dict[tuple[str, int], list[int]] = {}
        for record in records:
            by_place.setdefault((record.topic, record.partition), []).append(record.offset)
        for place, offsets in by_place.items():
            link, key = self._holders.get(place, _NOBODY)
            if link is not None and key is not None:
                await link.renew(key, offsets)

    # --- telling

    def _tell(self) -> None:
        if self._teller is None or self._teller.done():
            self._teller = asyncio.create_task(self._tell_later())

    async def _tell_later(self) -> None:
        """Tell the servers what was decided, where no fetch does it first, until there is nothing to tell."""
        while any(link.session.has_decisions for link in self.links.values()):
            await asyncio.sleep(self._tell_after)
            for link in list(self.links.values()):
                try:
                    await link.acknowledge()
                except PASSING:
                    continue  # told again next time
                finally:
                    self.note_failures(link)

    async def tell_all(self) -> None:
        """Return when the servers have confirmed all that was decided. Raises the connection's errors."""
        for link in list(self.links.values()):
            try:
                await link.acknowledge()
            finally:
                self.note_failures(link)

    def end(self) -> None:
        """Nothing more is decided here; what was is told by whoever closes the links."""
        self.closed = True
        if self._teller is not None:
            self._teller.cancel()

    # --- what was not taken

    def note_failures(self, link: ShareLink) -> None:
        """Take what its server did not."""
        self._failures.extend(link.session.failures)
        link.session.failures.clear()

    def raise_failures(self) -> None:
        """Raises AcknowledgementsRefused if there were some since the last time."""
        if self._failures:
            failures = list(self._failures)
            self._failures.clear()
            raise AcknowledgementsRefused(failures)
