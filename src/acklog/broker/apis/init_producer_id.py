"""InitProducerId (22), v0-v5: an id for an idempotent producer (KIP-98, KIP-360). v6 belongs to two-phase commit.

Ids are never given twice. There are no transactions yet: a transactional id is refused with
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which every client treats as final and shows to the user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.errors import LogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    try:
        producer_id = await _new_id(broker, caller, request)
    except (Refused, LogError) as error:
        return {'error_code': answer_to(error)[0], 'producer_id': -1, 'producer_epoch': -1}
    return {'error_code': ErrorCode.NONE, 'producer_id': producer_id, 'producer_epoch': 0}


async def _new_id(broker: Broker, caller: Caller, request: Any) -> int:
    if request.transactional_id == '':
        raise Refused(ErrorCode.INVALID_REQUEST, 'An empty transactional id.')
    if (getattr(request, 'producer_id', -1) < 0) != (getattr(request, 'producer_epoch', -1) < 0):
        raise Refused(ErrorCode.INVALID_REQUEST, 'Producer id and epoch go together.')
    if request.transactional_id is not None:
        message = 'acklog has no transactions yet.'
        raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, message)
    broker.authorize(caller, 'IDEMPOTENT_WRITE', 'CLUSTER', '')
    return await broker.catalog.allocate_producer_ids()


API = Api(22, 'InitProducerId', (0, 5), handle)
