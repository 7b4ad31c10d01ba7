"""ApiVersions (18), v0-v5: which APIs are served, from the list in `apis`.

An unknown version is asked for by newer clients: answered in v0 with UNSUPPORTED_VERSION and the list (KIP-511).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

# KIP-511: what a client may call itself.
_NAME = re.compile(r'[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?')

# The highest feature levels of Apache Kafka that clients look at (KIP-584): share groups. And ours: a release at a time
# named, by tag 1000 of an acknowledgement batch, which Apache Kafka would pass over in silence.
_FEATURES = (('share.version', 0, 1), ('acklog.release.at', 0, 1))


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    from acklog.broker.apis import APIS  # the list has this file in it

    code = ErrorCode.NONE
    if version < 0:
        code = ErrorCode.UNSUPPORTED_VERSION
    elif version >= 3:
        names = (request.client_software_name, request.client_software_version)
        if all(_NAME.fullmatch(name or '') for name in names):
            caller.software = ' '.join(names)[:200]
        else:
            code = ErrorCode.INVALID_REQUEST
    keys = [{'api_key': api.key, 'min_version': api.versions[0], 'max_version': api.versions[1]} for api in APIS]
    return {
        'error_code': code,
        'api_keys': sorted(keys, key=lambda entry: entry['api_key']),
        'supported_features': [{'name': n, 'min_version': low, 'max_version': high} for n, low, high in _FEATURES],
        'finalized_features': [
            {'name': n, 'min_version_level': high, 'max_version_level': high} for n, _, high in _FEATURES
        ],
        'finalized_features_epoch': 0,
    }


API = Api(18, 'ApiVersions', (0, 5), handle)
