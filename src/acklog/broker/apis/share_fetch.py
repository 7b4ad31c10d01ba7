"""ShareFetch (78), v1-v2: acknowledge, then take records, waiting for some if need be (KIP-932).

- Acknowledgements are applied before anything else, and are in the answer whatever happens after.
- Then records are taken and waited for, as `acklog.broker.deliveries.polling` says. Outside record-limit mode (v2,
  KIP-1206) the last batch is taken whole.
- A request that renews locks (v2, KIP-1222) takes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acklog.broker.api import Api, Caller, Refused
from acklog.broker.deliveries.polling import Found, Poll
from acklog.broker.deliveries.share_acks import Results, acknowledge_all, confirmed
from acklog.broker.deliveries.taking import Taken
from acklog.core.share_session import FINAL_EPOCH
from acklog.wire import share_fetch as wire
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.core.share_session import ShareSession

RECORD_LIMIT = 1  # share_acquire_mode


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
    if request.grace_ms is not None:
        session.grace_ms = max(0, request.grace_ms)
    results = acknowledge_all(broker, caller, session, acks, renew_allowed=version >= 2)
    written = broker.deliveries.journal.pending()  # mostly in one write with what is taken now
    found: Found = {}
    if request.session_epoch == FINAL_EPOCH:
        await broker.groups.close_session(session)
    elif not request.is_renew and request.max_bytes > 0 and request.max_records > 0:
        found = await Poll(
            broker,
            caller,
            session.key,
            lambda: session.partitions,
            session.turn,
            max_records=request.max_records,
            max_bytes=request.max_bytes,
            max_wait_ms=request.max_wait_ms,
            strict=request.acquire_mode == RECORD_LIMIT,
        ).run()
    return _response(broker, session, await confirmed(results, written), found)


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
