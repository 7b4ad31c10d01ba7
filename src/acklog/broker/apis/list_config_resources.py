"""ListConfigResources (74), v0-v1 (KIP-1142): the resources that have configs. v0 asks for client metrics, of which
there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller
from acklog.broker.apis.config_answers import BROKER_RESOURCE, GROUP_RESOURCE, METRICS_RESOURCE, TOPIC_RESOURCE
from acklog.broker.apis.described_topics import may
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

KNOWN = (TOPIC_RESOURCE, BROKER_RESOURCE, METRICS_RESOURCE, GROUP_RESOURCE)


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    if version == 0:
        return {'error_code': ErrorCode.NONE, 'config_resources': []}
    types = set(request.resource_types) or set(KNOWN)
    if not types <= {*KNOWN, 8}:
        return {'error_code': ErrorCode.UNSUPPORTED_VERSION, 'config_resources': []}
    if not may(broker, caller, 'DESCRIBE_CONFIGS', 'CLUSTER', ''):
        return {'error_code': ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 'config_resources': []}
    names = {
        TOPIC_RESOURCE: list(broker.catalog.topics),
        BROKER_RESOURCE: [str(broker.node.id)],
        GROUP_RESOURCE: list(broker.catalog.group_configs),
    }
    found = [{'resource_name': name, 'resource_type': kind} for kind in names if kind in types for name in names[kind]]
    return {'error_code': ErrorCode.NONE, 'config_resources': found}


API = Api(74, 'ListConfigResources', (0, 1), handle)
