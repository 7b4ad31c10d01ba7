"""ApiVersions (18), v0-v5: which APIs are served, from the list in `apis`.

- An unknown version is asked for by newer clients: answered in v0 with UNSUPPORTED_VERSION and the list (KIP-511).
- A client that says whom it means (v5, KIP-1242) and has come to another one is told to begin anew.
- Up to v3, clients refuse features whose lowest version is 0 (KAFKA-17011): those are left out there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

NO_NODE = -1

# KIP-511: what a client may call itself.
_NAME = re.compile(r'[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?')

# The highest feature levels of Apache Kafka that clients look at (KIP-584): share groups. And ours, which are tags of
# an acknowledgement batch (`wire.acknowledgements`) and of ShareFetch that Apache Kafka would pass over in silence.
_FEATURES = (
    ('share.version', 0, 1),
    ('acklog.release.at', 1, 1),
    ('acklog.words', 1, 1),
    ('acklog.grace', 1, 1),
    ('acklog.release.after', 1, 1),
)


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    from acklog.broker.apis import APIS  # the list has this file in it

    code = ErrorCode.UNSUPPORTED_VERSION if version < 0 else _refusal(broker, version, request)
    if code not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
        return {'error_code': code}
    if version >= 3:
        caller.software = f'{request.client_software_name} {request.client_software_version}'[:200]
    keys = [{'api_key': api.key, 'min_version': api.versions[0], 'max_version': api.versions[1]} for api in APIS]
    return {
        'error_code': code,
        'api_keys': sorted(keys, key=lambda entry: entry['api_key']),
        'supported_features': [
            {'name': name, 'min_version': low, 'max_version': high}
            for name, low, high in _FEATURES
            if low > 0 or version > 3
        ],
        'finalized_features': [
            {'name': name, 'min_version_level': high, 'max_version_level': high} for name, _, high in _FEATURES
        ],
        'finalized_features_epoch': 0,
    }


def _refusal(broker: Broker, version: int, request: Any) -> ErrorCode:
    if version >= 3:
        names = (request.client_software_name, request.client_software_version)
        if not all(_NAME.fullmatch(name or '') for name in names):
            return ErrorCode.INVALID_REQUEST
    if version >= 5:
        cluster, node = request.cluster_id, request.node_id
        if (cluster is None) != (node == NO_NODE):
            return ErrorCode.INVALID_REQUEST
        if cluster is not None and (cluster, node) != (broker.node.cluster_id, broker.node.id):
            return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE


API = Api(18, 'ApiVersions', (0, 5), handle)
