"""ListPartitionReassignments (46), v0 (KIP-455): there is one node, so nothing is ever on its way to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    try:
        broker.authorize(caller, 'DESCRIBE', 'CLUSTER', '')
    except Refused as error:
        code, message = answer_to(error)
        return {'error_code': code, 'error_message': message}
    return {'error_code': ErrorCode.NONE, 'topics': []}


API = Api(46, 'ListPartitionReassignments', (0, 0), handle)
