"""AlterReplicaLogDirs (34), v1-v2 (KIP-113): there is one data directory, where every partition is already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller, Refused
from acklog.broker.apis.named_partition import named_partition
from acklog.broker.eager import Pace
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    results: dict[str, dict[int, dict[str, Any]]] = {}
    pace = Pace()
    for directory in request.dirs:
        for topic in directory.topics:
            await pace.keep()
            answers = results.setdefault(topic.name, {})
            for index in topic.partitions:
                await pace.keep()
                code = _outcome(broker, caller, directory.path, topic.name, index)
                answers[index] = {'partition_index': index, 'error_code': code}
    return {
        'results': [{'topic_name': name, 'partitions': list(answers.values())} for name, answers in results.items()]
    }


def _outcome(broker: Broker, caller: Caller, directory: str, name: str, index: int) -> ErrorCode:
    if directory != broker.node.directory:
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        named_partition(broker, caller, 'ALTER', name, index)
    except Refused as error:
        return error.code
    return ErrorCode.NONE


API = Api(34, 'AlterReplicaLogDirs', (1, 2), handle)
