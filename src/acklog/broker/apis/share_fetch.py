"""ShareFetch (78), v1-v2: acknowledge, then take records, waiting for some if need be (KIP-932).

- Acknowledgements are applied before anything else, and are in the answer whatever happens after.
- Partitions of the session take turns; one request ends at `max_records` or `max_bytes`, whichever is first, and has at
  least one batch. Outside record-limit mode (v2, KIP-1206) the last batch is taken whole.
- Nothing there: waits for records that arrive, come back or fall due, at most `max_wait_ms`. Who has waited longest is
  woken first. A member that leaves, or whose connection goes, is answered at once and takes nothing.
- A request that renews locks (v2, KIP-1222) takes nothing.
- No answer leaves before the journal has what was acquired for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.delivery import ShareDelivery, Taken
from acklog.broker.share_acks import Key, Results, acknowledge_all
from acklog.broker.waiting import Waiter
from acklog.core.share_session import FINAL_EPOCH
from acklog.errors import AcklogError, LogError
from acklog.wire import share_fetch as wire
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.core.share_session import ShareSession

RECORD_LIMIT = 1  # share_acquire_mode
LONGEST_WAIT_MS = 300_000
Found = dict[Key, Taken | tuple[ErrorCode, str | None]]


async def handle(broker: Broker, caller: Caller, version: int, request: wire.Request) -> wire.Response:
    group_id, member_id = request.group_id or '', request.member_id or ''
    acks = [(topic.topic_id, p.index, p.acknowledgements) for topic in request.topics for p in topic.partitions]
    try:
        broker.authorize(caller, 'READ', 'GROUP', group_id)
        session = await broker.groups.fetch_session(
            caller,
            group_id,
            member_id,
            request.session_epoch,
            [(topic_id, index) for topic_id, index, _ in acks],
            [(topic.topic_id, index) for topic in request.forgotten for index in topic.partitions],
        )
    except Refused as refused:
        return wire.Response(refused.code, refused.message)
    results = await acknowledge_all(broker, caller, session, acks, renew_allowed=version >= 2)
    found: Found = {}
    if request.session_epoch == FINAL_EPOCH:
        await broker.groups.close_session(session)
    elif not request.is_renew and request.max_bytes > 0 and request.max_records > 0:
        found = await _Poll(broker, caller, session, request).run()
    return _response(broker, session, results, found)


class _Poll:
    """Taking records for one request."""

    def __init__(self, broker: Broker, caller: Caller, session: ShareSession, request: wire.Request) -> None:
        self.broker = broker
        self.caller = caller
        self.session = session
        self.strict = request.acquire_mode == RECORD_LIMIT
        self.max_records = request.max_records
        self.max_bytes = min(request.max_bytes, broker.fetch_max_bytes)
        self.until = broker.clock() + min(max(request.max_wait_ms, 0), LONGEST_WAIT_MS)
        self.found: Found = {}
        self.deliveries: list[ShareDelivery] = []

    async def run(self) -> Found:
        await self._look()
        if self.found or self.until <= self.broker.clock():
            return self.found
        again = True  # something may have come to a partition while the next was looked at
        key = (self.session.key.group, self.session.key.member)
        waiting = self.broker.deliveries.waiting
        while not self.found and not self.broker.stopping and self.caller.room():
            if again and any(delivery.something() for delivery in self.deliveries):
                again = False
                await self._look()
                continue
            waiter = Waiter()
            waiting.setdefault(key, set()).add(waiter)
            self.caller.on_close[waiter.end] = None
            for delivery in self.deliveries:
                delivery.waiters[waiter] = None
            await waiter.wait(self.broker.timer, self.until)
            for delivery in self.deliveries:
                delivery.waiters.pop(waiter, None)
            if not self.caller.closed:
                self.caller.on_close.pop(waiter.end, None)
            waiting[key].discard(waiter)
            if not waiting[key]:
                del waiting[key]
            if waiter.ended:
                self._pass_on()
                break
            again = True
            await self._look()
        return self.found

    def _pass_on(self) -> None:
        """It may have been woken for something that it does not take: the next one may."""
        for delivery in self.deliveries:
            if delivery.waiters:
                delivery.offer()

    async def _look(self) -> None:
        """One round over the session's partitions."""
        self.deliveries = []
        records, left, visited = self.max_records, min(self.max_bytes, self.caller.room()), 0
        for key in list(self.session.partitions) if left > 0 else ():
            visited += 1
            taken = await self._take(key, records, left)
            if isinstance(taken, Taken):
                records -= taken.records
                left -= taken.size
                if records <= 0 or left <= 0:
                    break
        if self.found:
            try:
                await self.broker.deliveries.journal.written()
            except LogError as error:
                failed = answer_to(error)
                self.found = dict.fromkeys(self.found, failed)
            self.session.turn(visited)
        self._pass_on()

    async def _take(self, key: Key, records: int, left: int) -> Taken | None:
        try:
            delivery = await self._delivery(key)
            if self.caller.closed:
                return None
            taken = await delivery.take(self.session.key.member, records, left, strict=self.strict)
        except AcklogError as error:
            self.found[key] = answer_to(error)
            return None
        self.deliveries.append(delivery)
        if taken is not None:
            self.found[key] = taken
        return taken

    async def _delivery(self, key: Key) -> ShareDelivery:
        broker = self.broker
        topic = broker.catalog.topics_by_id.get(key[0])
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID, 'there is no topic with that id')
        broker.authorize(self.caller, 'READ', 'TOPIC', topic.name)
        group = broker.catalog.groups.get(self.session.key.group)
        if group is None:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f'there is no group {self.session.key.group!r}')
        return await broker.deliveries.get(group, *key)


def _response(broker: Broker, session: ShareSession, results: Results, found: Found) -> wire.Response:
    topics: dict[bytes, list[wire.PartitionResponse]] = {}
    for key in [*results, *(key for key in found if key not in results)]:
        topic_id, index = key
        ack_code, ack_message = results.get(key, (ErrorCode.NONE, None))
        code: ErrorCode = ErrorCode.NONE
        message: str | None = None
        buffers: list[bytes | memoryview] = []
        acquired: Sequence[tuple[int, int, int]] = ()
        what = found.get(key)
        if isinstance(what, Taken):
            buffers, acquired = what.buffers, what.ranges
        elif what is not None:
            code, message = what
        topics.setdefault(topic_id, []).append(
            wire.PartitionResponse(
                index=index,
                error_code=code,
                error_message=message,
                ack_error_code=ack_code,
                ack_error_message=ack_message,
                leader_id=broker.node.id,
                leader_epoch=0,
                records=buffers,
                acquired=acquired,
            )
        )
    answer = [wire.TopicResponse(topic_id, partitions) for topic_id, partitions in topics.items()]
    return wire.Response(ErrorCode.NONE, None, broker.lock_ms(session.key.group), answer)


API = Api(78, 'ShareFetch', (1, 2), handle, wire.CODEC)
