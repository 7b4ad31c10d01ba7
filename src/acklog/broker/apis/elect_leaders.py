"""ElectLeaders (43), v0-v2 (KIP-183, KIP-460): the one node leads everything, so no election is ever needed.

Asked for all partitions, Kafka names only those of which there is something to say: none here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.apis.named_partition import named_partition
from acklog.broker.lazily import Lazily
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker

PREFERRED, UNCLEAN = 0, 1


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    kind = getattr(request, 'election_type', PREFERRED)
    topics = request.topic_partitions
    if topics is None:
        found = [{'topic': name, 'partition_result': []} for name in sorted(broker.catalog.topics)]
        return {'error_code': ErrorCode.NONE, 'replica_election_results': found}

    def elect(entry: Any) -> dict[str, Any]:
        partitions = Lazily(lambda index: _answer(broker, caller, kind, entry.topic, index), entry.partitions)
        return {'topic': entry.topic, 'partition_result': partitions}

    known = kind in (PREFERRED, UNCLEAN)
    return {
        'error_code': ErrorCode.NONE if known else ErrorCode.INVALID_REQUEST,
        'replica_election_results': Lazily(elect, topics),
    }


def _answer(broker: Broker, caller: Caller, kind: int, name: str, index: int) -> dict[str, Any]:
    code, message = _outcome(broker, caller, kind, name, index)
    return {'partition_id': index, 'error_code': code, 'error_message': message}


def _outcome(broker: Broker, caller: Caller, kind: int, name: str, index: int) -> tuple[ErrorCode, str]:
    if kind not in (PREFERRED, UNCLEAN):
        return ErrorCode.INVALID_REQUEST, f'Unknown election type {kind}'
    try:
        named_partition(broker, caller, 'ALTER', name, index)
    except Refused as error:
        return answer_to(error)
    return ErrorCode.ELECTION_NOT_NEEDED, 'Leader election not needed for topic partition.'


API = Api(43, 'ElectLeaders', (0, 2), handle)
