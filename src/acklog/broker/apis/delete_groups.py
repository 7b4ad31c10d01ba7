"""DeleteGroups (42), v0-v2: groups without members, with all that they have taken and signed off (KIP-229).

- NON_EMPTY_GROUP while there are members, GROUP_ID_NOT_FOUND for what does not exist; each group by itself.
- A group made later under the same name begins anew; the configs of the name stay, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller
from acklog.broker.eager import Pace
from acklog.errors import AcklogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    results, pace = [], Pace()
    for name in dict.fromkeys(request.groups_names):
        await pace.keep()
        results.append({'group_id': name, 'error_code': await _delete(broker, caller, name)})
    return {'results': results}


async def _delete(broker: Broker, caller: Caller, name: str) -> int:
    try:
        broker.authorize(caller, 'DELETE', 'GROUP', name)
        await broker.groups.delete(name)
    except AcklogError as error:
        return answer_to(error)[0]
    return ErrorCode.NONE


API = Api(42, 'DeleteGroups', (0, 2), handle)
