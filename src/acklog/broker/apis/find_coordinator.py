"""FindCoordinator (10), v0-v6: always this node. Several keys at once from v4 on (KIP-699).

Key types: 0 groups of any kind, share groups too; 1 transactional ids; 2 share partitions (`group:topic id:partition`,
KIP-932), which brokers ask for among themselves, and get the same answer. There are no transactions yet: an id of one
is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which every client treats as final and shows to the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.lazily import Lazily
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

GROUP, TRANSACTION, SHARE = 0, 1, 2


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    kind = getattr(request, 'key_type', GROUP)
    keys: Sequence[str] = request.coordinator_keys if version >= 4 else (request.key,)
    if version < 4:
        return _answer(broker, caller, kind, keys[0], version)
    return {'coordinators': Lazily(lambda key: {'key': key, **_answer(broker, caller, kind, key, version)}, keys)}


def _answer(broker: Broker, caller: Caller, kind: int, key: str, version: int) -> dict[str, Any]:
    try:
        _judge(broker, caller, kind, key, version)
    except Refused as error:
        code, message = answer_to(error)
        return {'error_code': code, 'error_message': message, 'node_id': -1, 'host': '', 'port': -1}
    node = broker.node
    message = '' if version >= 4 else 'NONE'
    return {
        'error_code': ErrorCode.NONE,
        'error_message': message,
        'node_id': node.id,
        'host': node.host,
        'port': node.port,
    }


def _judge(broker: Broker, caller: Caller, kind: int, key: str, version: int) -> None:
    if kind == GROUP:
        broker.authorize(caller, 'DESCRIBE', 'GROUP', key)
    elif kind == TRANSACTION:
        message = 'acklog has no transactions yet.'
        raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, message)
    elif kind != SHARE or version < 6 or key.count(':') < 2:
        raise Refused(ErrorCode.INVALID_REQUEST, f'There is no coordinator of type {kind} for {key!r} in this version.')


API = Api(10, 'FindCoordinator', (0, 6), handle)
