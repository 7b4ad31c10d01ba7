"""DeleteRecords (21), v0-v2 (KIP-107): everything below an offset goes, whoever is still owed it (rule 8).

Offset -1 means all there is. Durable before the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.eager import Pace
from acklog.broker.refusals import no_partition, no_topic, past_end
from acklog.errors import LogError
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    topics, pace = [], Pace()
    for entry in request.topics:
        wanted = {partition.partition_index: partition.offset for partition in entry.partitions}
        answers = []
        for index, offset in wanted.items():
            await pace.keep()
            answers.append(await _answer(broker, caller, entry.name, index, offset))
        topics.append({'name': entry.name, 'partitions': answers})
    return {'topics': topics}


async def _answer(broker: Broker, caller: Caller, name: str, index: int, offset: int) -> dict[str, Any]:
    try:
        low = await _delete(broker, caller, name, index, offset)
    except (Refused, LogError) as error:
        return {'partition_index': index, 'low_watermark': -1, 'error_code': answer_to(error)[0]}
    return {'partition_index': index, 'low_watermark': low, 'error_code': ErrorCode.NONE}


async def _delete(broker: Broker, caller: Caller, name: str, index: int, offset: int) -> int:
    """The log's new start. Raises Refused, LogError."""
    topic = broker.catalog.topics.get(name)
    if topic is None:
        raise no_topic(name)
    broker.authorize(caller, 'DELETE', 'TOPIC', name)
    partition = broker.partition(topic.id_bytes, index)
    if partition is None:
        raise no_partition(topic, index)
    if offset == -1:
        offset = partition.log.visible_end
    if not 0 <= offset <= partition.log.visible_end:
        raise past_end(partition, offset)
    start = await partition.truncate_before(offset)
    await broker.deliveries.journal.written()
    return start


API = Api(21, 'DeleteRecords', (0, 2), handle)
