"""ShareAcknowledge (79), v1-v2: sign off, hand back, give up on or renew records (KIP-932, KIP-1222).

- One partition's acknowledgements are checked as a whole, then applied as a whole (rule 3); partitions are independent.
- Answered when the journal has them. The session's epoch advances by any answer that is no session error.
- Very many partitions are worked through with turns for others.
- Epoch -1 closes the session: after its acknowledgements the rest of what the member held is returned, uncounted.
- Tagged fields on an acknowledgement batch say before when (1000, an instant; 1002, a delay; ms) a released record does
  not come again, and in the subscriber's own words (1001) why it is handed back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acklog.broker.api import Api, Caller, Refused
from acklog.broker.deliveries.share_acks import Key, Results, acknowledge_all, confirmed
from acklog.broker.eager import AT_A_TIME, turn
from acklog.core.share_session import FINAL_EPOCH
from acklog.errors import LogError
from acklog.log.promise import Promise
from acklog.wire import share_acknowledge as wire
from acklog.wire.acknowledgements import Acknowledgement
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

Named = tuple[bytes, int, Sequence[Acknowledgement]]  # topic id, partition


async def handle(broker: Broker, caller: Caller, version: int, request: wire.Request) -> wire.Response:
    group_id, member_id = request.group_id or '', request.member_id or ''
    try:
        broker.authorize(caller, 'READ', 'GROUP', group_id)
        session = broker.groups.session(caller, group_id, member_id, request.session_epoch, acknowledges=True)
    except Refused as refused:
        return wire.Response(refused.code, refused.message)
    journal = broker.deliveries.journal
    parts: list[tuple[Results, Promise[LogError | None] | None]] = []  # and the write that each goes out with
    for some in _stretches([(t.topic_id, p.index, p.acknowledgements) for t in request.topics for p in t.partitions]):
        if parts:
            await turn()
        results = acknowledge_all(broker, caller, session, some, renew_allowed=version >= 2)
        parts.append((results, journal.pending()))
    if request.session_epoch == FINAL_EPOCH:
        await broker.groups.close_session(session)
    else:
        journal.hurry()
    results = {}
    for part, written in parts:
        results |= await confirmed(part, written)
    answered: dict[bytes, list[wire.PartitionResponse]] = {}
    for (topic_id, index), (code, message) in results.items():
        answered.setdefault(topic_id, []).append(wire.PartitionResponse(index, code, message))
    answer = [wire.TopicResponse(topic_id, partitions) for topic_id, partitions in answered.items()]
    return wire.Response(ErrorCode.NONE, None, broker.lock_ms(session.key.group), answer)


def _stretches(named: Sequence[Named]) -> Sequence[Sequence[Named]]:
    """So many partitions at a time as others can wait for; one that is named more than once is in one of them."""
    if len(named) <= AT_A_TIME:
        return [named]
    acks: dict[Key, list[Acknowledgement]] = {}
    for topic_id, index, batches in named:
        acks.setdefault((topic_id, index), []).extend(batches)
    whole = [(*key, batches) for key, batches in acks.items()]
    return [whole[at : at + AT_A_TIME] for at in range(0, len(whole), AT_A_TIME)]


API = Api(79, 'ShareAcknowledge', (1, 2), handle, wire.CODEC)
