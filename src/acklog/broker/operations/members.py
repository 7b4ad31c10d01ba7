"""Members that have no Kafka client: they take records with a token each, and settle them by it.

- A member joins its group by taking, and is a member like any other, but for its connection, which says nothing of it:
  it is lost when it is not heard of for the group's session timeout (a poll that waits counts).
- It takes from all partitions of the topics that it names, its own and others'; no more than it asks for.
- Each token stands alone. One that was settled before gives the same answer, over a restart of the server too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from acklog.broker.api import Caller, Refused
from acklog.broker.deliveries.delivery import MAX_WORDS
from acklog.broker.deliveries.polling import LONGEST_WAIT_MS, Key, Poll
from acklog.broker.deliveries.taking import Taken
from acklog.broker.journal.format import ShareKey
from acklog.broker.journal.recorded import Recorded
from acklog.broker.operations import tokens
from acklog.broker.operations.chosen import Operation
from acklog.broker.operations.exchanged import Ack, AckResult, Delivery
from acklog.broker.operations.handing_out import Handout
from acklog.broker.operations.tokens import Token
from acklog.core.kinds import Ack as Kind
from acklog.core.kinds import when
from acklog.core.share_session import SessionKey
from acklog.core.tokens import Outcome, TokenAck, settle
from acklog.errors import AcklogError, LogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.deliveries.delivery import ShareDelivery

MOST_RECORDS = 10_000  # taken at a time

KINDS = {'accept': Kind.ACCEPT, 'release': Kind.RELEASE, 'reject': Kind.REJECT, 'renew': Kind.RENEW}
_SAID: dict[Outcome, tuple[bool, str, str]] = {
    'ok': (True, 'ok', ''),
    'renewed': (True, 'ok', ''),
    'lost': (False, 'lost', 'the lock does not hold the record any more'),
    'settled': (False, 'settled', 'the record was settled by this lock before, in another way'),
}


class Turns:
    """Which partition comes first, by member: after each poll those that it looked at are last."""

    def __init__(self) -> None:
        self._turn = 0

    def order(self, keys: Sequence[Key]) -> list[Key]:
        """`keys`, beginning with the one whose turn it is."""
        first = self._turn % len(keys) if keys else 0
        return [*keys[first:], *keys[:first]]

    def turn(self, visited: int) -> None:
        """So many have had their turn."""
        self._turn += visited


class Members(Operation):
    """Taking and settling."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._turns = Turns()

    async def acquire(
        self,
        caller: Caller,
        group: str,
        member: str,
        topics: Sequence[str],
        count: int = 1,
        max_bytes: int = 1 << 20,
        wait_ms: int = 0,
    ) -> list[Delivery]:
        """Take up to `count` records of these topics; wait for some at most `wait_ms`. The group is made if there is
        none. At least one record is given, however large."""
        self.broker.authorize(caller, 'READ', 'GROUP', group)
        if not 1 <= count <= MOST_RECORDS or max_bytes < 1 or not topics:
            raise Refused(
                ErrorCode.INVALID_REQUEST, f'a member takes 1 to {MOST_RECORDS} records of at least one topic'
            )
        self._keys(caller, topics)
        waits = min(max(wait_ms, 0), LONGEST_WAIT_MS)
        members = self.broker.groups.members
        await members.remote(caller, group, member, frozenset(topics), waits)
        poll = Poll(
            self.broker,
            caller,
            SessionKey(group, member),
            lambda: self._turns.order(self._keys(caller, topics)),
            self._turns.turn,
            max_records=count,
            max_bytes=max_bytes,
            max_wait_ms=waits,
            strict=True,
        )
        found = await poll.run()
        members.heard(group, member)
        handout = Handout(max_bytes)
        failed: tuple[ErrorCode, str | None] | None = None
        for key, what in found.items():
            if isinstance(what, Taken):
                await self._hand_out(handout, group, key, what)
            else:
                failed = failed or what
        if handout.trouble is not None and not handout.records:
            raise handout.trouble
        if failed is not None and not handout.records:
            raise Refused(failed[0], failed[1] or '')
        return handout.records

    def _keys(self, caller: Caller, topics: Sequence[str]) -> list[Key]:
        """The partitions of all of them; Refused when one is no more, as those who wait learn at once."""
        known = [self._topic(caller, name, 'READ') for name in topics]
        return [(topic.id_bytes, index) for topic in known for index in range(topic.partitions)]

    async def _hand_out(self, handout: Handout, group: str, key: Key, taken: Taken) -> None:
        known = self.broker.catalog.groups.get(group)
        delivery = None if known is None else self.broker.deliveries.find(known, *key)
        if delivery is not None:  # else it was deleted meanwhile: nobody can settle them
            await handout.add(delivery, taken)

    def unsent(self, taken: Sequence[Delivery]) -> None:
        """The answer with these never reached their member, and that is certain: they go back at once, not counted as
        failed, as after a clean leave. Nobody waits for it, so it need not be written when this returns."""
        by_lock: dict[tuple[ShareKey, int], list[int]] = {}
        for each in taken:
            token = tokens.decode(each.lock)
            assert token is not None
            by_lock.setdefault((token.key, token.lock), []).append(token.offset)
        for (key, lock), offsets in by_lock.items():
            group = self.broker.group_by_id(key.group)
            delivery = None if group is None else self.broker.deliveries.find(group, key.topic, key.partition)
            if delivery is not None:
                delivery.unsent(lock, offsets)

    async def acknowledge(self, caller: Caller, group: str, acks: Sequence[Ack]) -> list[AckResult]:
        """Settle records by their tokens, each for itself; one that was settled before gives the same answer."""
        found = self._group(caller, group, 'READ')
        renewable = found.flag('share.renew.acknowledge.enable')
        results: dict[int, AckResult] = {}
        by_delivery: dict[ShareDelivery, list[tuple[int, Token]]] = {}
        for index, ack in enumerate(acks):
            token = tokens.decode(ack.lock)
            delivery = None
            if token is None:
                results[index] = AckResult(ack.lock, False, 'malformed', 'this is no lock')
            elif ack.action == 'renew' and not renewable:
                detail = 'share.renew.acknowledge.enable of the group does not allow it'
                results[index] = AckResult(ack.lock, False, 'disabled', detail)
            elif token.key.group == found.id:
                delivery = self.broker.deliveries.find(found, token.key.topic, token.key.partition)
            if token is not None and delivery is not None:
                by_delivery.setdefault(delivery, []).append((index, token))
            elif index not in results:
                results[index] = AckResult(ack.lock, False, 'gone', 'it is of a topic or group that is no more')
        for delivery, named in by_delivery.items():
            results.update(self._settle(caller, group, delivery, acks, named))
        try:
            await self.broker.deliveries.journal.written()
        except LogError as error:
            detail = str(error)
            results = {
                index: AckResult(result.lock, False, 'unavailable', detail) if result.ok else result
                for index, result in results.items()
            }
        return [results[index] for index in range(len(acks))]

    def _settle(
        self,
        caller: Caller,
        group: str,
        delivery: ShareDelivery,
        acks: Sequence[Ack],
        named: Sequence[tuple[int, Token]],
    ) -> Iterator[tuple[int, AckResult]]:
        """What of one partition is to be settled; recorded, not yet written."""
        now = self.broker.clock()
        asked = [_for_core(acks[index], token) for index, token in named]
        try:
            self.broker.authorize(caller, 'READ', 'TOPIC', delivery.partition.topic_name)
            holders = {
                lock.member for _, token in named if (lock := delivery.state.status.lock_of(token.offset)) is not None
            }
            outcomes = delivery.change(lambda state: settle(state, now, asked))
        except AcklogError as error:
            for index, _ in named:
                yield index, AckResult(acks[index].lock, False, 'unavailable', str(error))
            return
        for holder in holders:
            self.broker.groups.members.heard(group, holder)
        until = now + delivery.state.config.lock_ms
        for (index, _), outcome in zip(named, outcomes, strict=True):
            yield index, AckResult(acks[index].lock, *_SAID[outcome], until if outcome == 'renewed' else None)

    async def leave(self, caller: Caller, group: str, member: str) -> None:
        """The member goes: what it holds goes back at once, not counted as failed."""
        found = self._group(caller, group, 'READ')
        for delivery in self.broker.deliveries.of_group(found.id):
            delivery.left(member)
        returned = Recorded(self.broker.deliveries.journal)
        returned.note()
        await self.broker.groups.members.leave(group, member)
        await returned.written()


def _for_core(ack: Ack, token: Token) -> TokenAck:
    words = None if ack.reason is None else ack.reason[:MAX_WORDS]
    return TokenAck(token.offset, token.lock, KINDS[ack.action], when(ack.at_ms, ack.after_ms), words)
