"""ShareAcknowledge (79), v1-v2: sign off, hand back, give up on or renew records (KIP-932, KIP-1222).

- One partition's acknowledgements are checked as a whole, then applied as a whole (rule 3); partitions are independent.
- Answered when the journal has them. The session's epoch advances by any answer that is no session error.
- Epoch -1 closes the session: after its acknowledgements the rest of what the member held is returned, uncounted.
- Tagged fields on an acknowledgement batch say before when (1000, an instant; 1002, a delay; ms) a released record does
  not come again, and in the subscriber's own words (1001) why it is handed back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acklog.broker.api import Api, Caller, Refused
from acklog.broker.deliveries.share_acks import acknowledge_all, confirmed
from acklog.core.share_session import FINAL_EPOCH
from acklog.wire import share_acknowledge as wire
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: wire.Request) -> wire.Response:
    group_id, member_id = request.group_id or '', request.member_id or ''
    try:
        broker.authorize(caller, 'READ', 'GROUP', group_id)
        session = broker.groups.session(caller, group_id, member_id, request.session_epoch, acknowledges=True)
    except Refused as refused:
        return wire.Response(refused.code, refused.message)
    topics = [(topic.topic_id, p.index, p.acknowledgements) for topic in request.topics for p in topic.partitions]
    results = acknowledge_all(broker, caller, session, topics, renew_allowed=version >= 2)
    journal = broker.deliveries.journal
    written = journal.pending()
    if request.session_epoch != FINAL_EPOCH:
        journal.hurry()
    if request.session_epoch == FINAL_EPOCH:
        await broker.groups.close_session(session)
    await confirmed(results, written)
    answered: dict[bytes, list[wire.PartitionResponse]] = {}
    for (topic_id, index), (code, message) in results.items():
        answered.setdefault(topic_id, []).append(wire.PartitionResponse(index, code, message))
    answer = [wire.TopicResponse(topic_id, partitions) for topic_id, partitions in answered.items()]
    return wire.Response(ErrorCode.NONE, None, broker.lock_ms(session.key.group), answer)


API = Api(79, 'ShareAcknowledge', (1, 2), handle, wire.CODEC)
