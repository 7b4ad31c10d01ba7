"""ListGroups (16), v0-v5: all groups, from v4 on by state, from v5 on by type (KIP-518, KIP-848).

- Every group here is a share group; its state is Empty or Stable.
- The filters do not mind upper and lower case; a state or type that does not exist matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller, Refused

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

PROTOCOL = 'share'
TYPE = 'share'


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    states = _lower(request.states_filter) if version >= 4 else set()
    types = _lower(request.types_filter) if version >= 5 else set()
    groups = []
    for name in sorted(broker.catalog.groups):
        state = broker.groups.state(name)
        if (states and state.lower() not in states) or (types and TYPE not in types):
            continue
        if _may_see(broker, caller, name):
            groups.append({'group_id': name, 'protocol_type': PROTOCOL, 'group_state': state, 'group_type': TYPE})
    return {'error_code': 0, 'groups': groups}


def _lower(words: Iterable[str]) -> set[str]:
    return {word.lower() for word in words}


def _may_see(broker: Broker, caller: Caller, name: str) -> bool:
    try:
        broker.authorize(caller, 'DESCRIBE', 'GROUP', name)
    except Refused:
        return False
    return True


API = Api(16, 'ListGroups', (0, 5), handle)
