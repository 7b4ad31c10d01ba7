"""What is remembered of members and share sessions over a restart (rule 7 of docs/design.md), kept by the catalog.

    note 'member'   key [group, member]   {"topics": [...], "rack": ..., "client_id": ..., "client_host": ...}
    note 'session'  key [group, member]   {"principal": ..., "partitions": {topic id in hex: [index, ...]}}

Neither epochs nor counters are remembered: the first request after a restart is adopted at the one it has. Written to
the operating system before an answer depends on it (`written`), never synced: after a power loss a member joins anew.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from acklog.broker.eager import Eager
from acklog.core.membership import Member
from acklog.core.share_session import SessionKey, ShareSession, TopicPartition
from acklog.errors import Closed, LogError

if TYPE_CHECKING:
    from acklog.broker.catalog.catalog import Catalog


class Remembered:
    """The durable half of `Groups`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._last: asyncio.Future[LogError | None] | None = None  # of the latest write; writes end in order

    @property
    def pending(self) -> bool:
        """`written` would wait."""
        return self._last is not None

    async def written(self) -> None:
        """Return when all that was said so far is written. Raises LogError."""
        if self._last is not None and (error := await asyncio.shield(self._last)) is not None:
            raise error

    def member(self, group: str, member: Member, failed: Callable[[], None]) -> None:
        """A member has joined or subscribed to something else. `failed` is called if that could not be written."""
        self._record(
            'member',
            [group, member.id],
            {
                'topics': sorted(member.topics),
                'rack': member.rack,
                'client_id': member.client_id,
                'client_host': member.client_host,
            },
            failed,
        )

    def no_member(self, group: str, member_id: str) -> None:
        """A member has left."""
        self._record('member', [group, member_id], None)

    def session(self, session: ShareSession, principal: str) -> None:
        """A session was opened, or takes from other partitions."""
        partitions: dict[str, list[int]] = {}
        for topic, index in session.partitions:
            partitions.setdefault(topic.hex(), []).append(index)
        self._record('session', session.key, {'principal': principal, 'partitions': partitions})

    def no_session(self, key: SessionKey) -> None:
        """A session has ended."""
        self._record('session', key, None)

    def members(self) -> Iterator[tuple[str, Member]]:
        """All members as they were remembered: (group, member)."""
        for key, value in self._catalog.notes('member').items():
            group, member_id = json.loads(key)
            member = Member(
                member_id,
                frozenset(value['topics']),
                rack=value['rack'],
                client_id=value['client_id'],
                client_host=value['client_host'],
            )
            yield group, member

    def sessions(self) -> Iterator[tuple[SessionKey, str, Iterable[TopicPartition]]]:
        """All share sessions as they were remembered: (key, principal, partitions)."""
        for key, value in self._catalog.notes('session').items():
            partitions = [(bytes.fromhex(t), index) for t, indexes in value['partitions'].items() for index in indexes]
            yield SessionKey(*json.loads(key)), value['principal'], partitions

    def _record(
        self, of: str, key: Sequence[str], value: dict[str, Any] | None, failed: Callable[[], None] | None = None
    ) -> None:
        last: asyncio.Future[LogError | None] = asyncio.get_running_loop().create_future()
        self._last = last

        def done(_: None, error: BaseException | None) -> None:
            if self._last is last:
                self._last = None
            if error is not None and failed is not None:
                failed()
            if isinstance(error, asyncio.CancelledError):
                error = Closed('the catalog is closing')
            last.set_result(error if isinstance(error, LogError) else None)
            if error is not None and not isinstance(error, LogError):
                raise error  # a bug

        Eager(self._catalog.record(of, json.dumps(key), value), done)
