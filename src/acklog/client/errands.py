"""What has to be asked before a producer's batch can be sent: where its partition's leader is, and a producer id.

Strategy: who needs to know is told what is known, or None while it is being asked; errands run beside the sender, one
of a kind at a time, and say when they are back. What will not come true, or not in time, is given up for all who wait
for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence

from acklog.client.calls import INIT_PRODUCER_ID, Cold
from acklog.client.cluster import ANY_NODE, Cluster
from acklog.client.errors import (
    PASSING,
    RETRIABLE,
    ClientError,
    NotFound,
    Refused,
    Unreachable,
    check,
    refusal,
)
from acklog.client.outbox import Identity, Outbox
from acklog.client.retry import Backoff
from acklog.wire.error_code import ErrorCode


class Errands:
    """`outboxes`: those that have something to send, as they are at the time; `patience`: seconds that a record may
    wait; `idempotent`: False: no producer id is needed, None: where the server gives them.

    `give_up(outbox, error)` is called for those that cannot be sent, `back()` when an errand is."""

    def __init__(
        self,
        cluster: Cluster,
        outboxes: Collection[Outbox],
        *,
        patience: float,
        idempotent: bool | None,
        give_up: Callable[[Outbox, ClientError], None],
        back: Callable[[], None],
    ) -> None:
        self._cluster, self._outboxes = cluster, outboxes
        self._patience, self._idempotent = patience, idempotent
        self._give_up, self._back = give_up, back
        self._fresh: Identity | None = None  # what a partition without identity begins with
        self._under_way: dict[str, asyncio.Task[None]] = {}

    def leader(self, outbox: Outbox) -> int | None:
        """The node of the partition's leader; None while it is being looked for."""
        place = self._cluster.topics.get(outbox.topic)
        node = -1 if place is None else place.leaders.get(outbox.index, -1)
        if node >= 0:
            return node
        self._send(outbox.topic, lambda: self._look_for(outbox.topic))
        return None

    def identified(self, outbox: Outbox) -> bool:
        """Whether the partition has its producer id, or needs none; else it is being fetched."""
        if self._idempotent is False or outbox.identity is not None:
            return True
        if self._fresh is not None:
            outbox.identity = Identity(self._fresh.producer_id, self._fresh.epoch)
            return True
        self._send('', self._fetch_identity)
        return False

    def forget_identity(self, outbox: Outbox) -> None:
        """Its sequence numbers cannot be used again: it goes on with a new producer id."""
        if outbox.identity is not None:
            if self._fresh is not None and self._fresh.producer_id == outbox.identity.producer_id:
                self._fresh = None
            outbox.identity = None

    @property
    def under_way(self) -> list[asyncio.Task[None]]:
        return list(self._under_way.values())

    def _send(self, name: str, errand: Callable[[], Coroutine[None, None, None]]) -> None:
        """Unless one of this name is under way."""
        if name not in self._under_way:
            self._under_way[name] = task = asyncio.create_task(errand())
            task.add_done_callback(lambda _: self._done(name))

    def _done(self, name: str) -> None:
        del self._under_way[name]
        self._back()

    async def _look_for(self, topic: str) -> None:
        affected = [outbox for outbox in self._outboxes if outbox.topic == topic]
        backoff = Backoff()
        while not await self._found(topic, affected):
            await backoff.wait()

    async def _found(self, topic: str, affected: Sequence[Outbox]) -> bool:
        """Whether the topic's leaders are known now, or those that need them were given up."""
        try:
            place = (await self._cluster.refresh([topic])).get(topic)
        except ClientError as error:
            return self._too_late(affected, error)
        if place is None:
            missing = refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'topic {topic!r}')
            return self._too_late(affected, missing)
        if all(place.leaders.get(outbox.index, -1) >= 0 for outbox in affected):
            return True
        return self._too_late(affected, Unreachable(f'topic {topic!r} has a partition without a leader'))

    async def _fetch_identity(self) -> None:
        backoff = Backoff()
        while True:
            try:
                connection = await self._cluster.connection(ANY_NODE)
                if not connection.offers(INIT_PRODUCER_ID) and self._idempotent is None:
                    self._idempotent = False
                    return
                fields = {'transactional_id': None, 'transaction_timeout': 60_000}
                answer = await self._cluster.call(Cold(INIT_PRODUCER_ID, fields))
                check(answer.error_code, 'a producer id')
                self._fresh = Identity(answer.producer_id, answer.producer_epoch)
                return
            except ClientError as error:
                if self._too_late(list(self._outboxes), error):
                    return
            await backoff.wait()

    def _too_late(self, outboxes: Sequence[Outbox], error: ClientError) -> bool:
        """Give up what has waited for too long, or all if the error will not pass; whether nothing is left of them."""
        passing = isinstance(error, PASSING) or (
            isinstance(error, Refused) and error.code in RETRIABLE and not isinstance(error, NotFound)
        )
        oldest = asyncio.get_running_loop().time() - self._patience
        for outbox in outboxes:
            if not outbox.on_its_way and not outbox.empty and (not passing or outbox.since < oldest):
                self._give_up(outbox, error)
        return all(outbox.empty for outbox in outboxes)
