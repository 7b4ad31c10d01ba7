"""DescribeCluster (60), v0-v2 (KIP-700): the one node there is. Asked for controllers (KIP-919): not here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller
from acklog.broker.apis.described_topics import NOT_ASKED, authorized_operations
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

BROKERS, CONTROLLERS = 1, 2


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    kind = getattr(request, 'endpoint_type', BROKERS)
    if kind == CONTROLLERS:
        message = 'The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER'
        return _refused(ErrorCode.MISMATCHED_ENDPOINT_TYPE, message)
    if kind != BROKERS:
        return _refused(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f'Unsupported endpoint type {kind}')
    node = broker.node
    asked = request.include_cluster_authorized_operations
    return {
        'error_code': ErrorCode.NONE,
        'error_message': None,
        'endpoint_type': BROKERS,
        'cluster_id': node.cluster_id,
        'controller_id': node.id,
        'brokers': [
            {'broker_id': node.id, 'host': node.host, 'port': node.port, 'rack': None, 'is_fenced': False},
        ],
        'cluster_authorized_operations': (authorized_operations(broker, caller, 'CLUSTER', '') if asked else NOT_ASKED),
    }


def _refused(code: ErrorCode, message: str) -> dict[str, Any]:
    return {'error_code': code, 'error_message': message, 'cluster_id': '', 'controller_id': -1, 'brokers': []}


API = Api(60, 'DescribeCluster', (0, 2), handle)
