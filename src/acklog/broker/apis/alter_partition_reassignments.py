"""AlterPartitionReassignments (45), v0-v1 (KIP-455): every partition is on the one node there is.

Moving one there is done at once; anywhere else is refused, and so is taking back a move, as none is ever under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.apis.assignments import check_brokers
from acklog.broker.apis.named_partition import named_partition
from acklog.broker.lazily import Lazily
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    def move(entry: Any) -> dict[str, Any]:
        partitions = Lazily(lambda partition: _answer(broker, caller, entry.name, partition), entry.partitions)
        return {'name': entry.name, 'partitions': partitions}

    return {
        'error_code': ErrorCode.NONE,
        'responses': Lazily(move, request.topics),
        'allow_replication_factor_change': getattr(request, 'allow_replication_factor_change', True),
    }


def _answer(broker: Broker, caller: Caller, name: str, partition: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {'partition_index': partition.partition_index}
    try:
        named_partition(broker, caller, 'ALTER', name, partition.partition_index)
        if partition.replicas is None:
            raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, 'No partition reassignment is in progress.')
        check_brokers(broker, partition.replicas)
    except Refused as error:
        answer['error_code'], answer['error_message'] = answer_to(error)
    return answer


API = Api(45, 'AlterPartitionReassignments', (0, 1), handle)
