"""AlterConfigs (33), v0-v2: replaces all own configs of a resource by those given. For older clients; what a newer one
wants is IncrementalAlterConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller, Refused
from acklog.broker.apis.incremental_alter_configs import alter
from acklog.broker.catalog.catalog import ConfigChange
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    return {'responses': await alter(broker, caller, request, _change)}


def _change(entry: Any) -> ConfigChange:
    missing = [config.name for config in entry.configs if config.value is None]
    if missing:
        raise Refused(ErrorCode.INVALID_REQUEST, f'Null value not supported for : {",".join(missing)}')
    replacement = {config.name: config.value for config in entry.configs}
    return lambda _: replacement


API = Api(33, 'AlterConfigs', (0, 2), handle)
