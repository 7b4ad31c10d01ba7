"""ListOffsets (2), v1-v11: an offset of a partition by time, or by one of the names that negative times stand for.

    -1  latest           the next offset to be delivered (short of open transactions for read_committed)
    -2  earliest         the first offset that can be read
    -3  max timestamp    the record with the latest time (v7, KIP-734)
    -4  earliest local   as -2: everything is local (v8, KIP-405)
    -5  latest tiered    none (v9, KIP-1005)
    -6  earliest pending upload: none (v11, KIP-1023)

By time: the first record at or after it. The log finds the batch, the record is found by looking into it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from acklog.broker.answers import answer_to
from acklog.broker.api import Api, Caller, Refused
from acklog.broker.eager import RECORDS_AT_A_TIME, Pace, turn
from acklog.broker.refusals import check_leader_epoch, no_partition, no_topic
from acklog.errors import BatchError, LogError
from acklog.wire.error_code import ErrorCode
from acklog.wire.record_batch import read_header, records

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.partition import Partition
    from acklog.log.seam import Log

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
LAST_TIME = (1 << 63) - 1


class Found(NamedTuple):
    """An offset; -1 each: there is none."""

    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    committed = getattr(request, 'isolation_level', 0) == 1
    topics, pace = [], Pace()
    times = Counter((entry.name, wanted.partition_index) for entry in request.topics for wanted in entry.partitions)
    for entry in request.topics:
        answers = {}
        for wanted in entry.partitions:
            await pace.keep()
            index = wanted.partition_index
            try:
                if times[entry.name, index] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, 'A partition must appear at most once.')
                partition = _partition(broker, caller, entry.name, wanted)
                await partition.truncated()
                found = await _find(partition, wanted.timestamp, version, committed=committed)
            except (Refused, LogError, BatchError) as error:
                answers[index] = {'partition_index': index, 'error_code': answer_to(error)[0]} | Found()._asdict()
            else:
                answers[index] = {'partition_index': index, 'error_code': ErrorCode.NONE} | found._asdict()
        topics.append({'name': entry.name, 'partitions': list(answers.values())})
    return {'topics': topics}


def _partition(broker: Broker, caller: Caller, name: str, wanted: Any) -> Partition:
    topic = broker.catalog.topics.get(name)
    if topic is None:
        raise no_topic(name)
    partition = broker.partition(topic.id_bytes, wanted.partition_index)
    if partition is None:
        raise no_partition(topic, wanted.partition_index)
    broker.authorize(caller, 'DESCRIBE', 'TOPIC', name)
    check_leader_epoch(partition, getattr(wanted, 'current_leader_epoch', -1))
    return partition


async def _find(partition: Partition, timestamp: int, version: int, *, committed: bool) -> Found:
    log = partition.log
    if timestamp < 0 and version < SINCE.get(timestamp, LAST_TIME):
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, f'Timestamp {timestamp} has no meaning in version {version}.')
    if timestamp == LATEST:
        return Found(-1, log.stable_end if committed else log.visible_end, log.epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return Found(-1, log.start, log.epoch)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING):
        return Found()
    await turn()  # others have theirs: batches are looked into for each partition that is asked for by time
    end = log.stable_end if committed else log.visible_end
    if timestamp == MAX_TIMESTAMP:
        latest = await _latest_time(log)
        return Found() if latest is None else await first_at(log, latest, end)
    return await first_at(log, timestamp, end)


async def first_at(log: Log, timestamp: int, end: int) -> Found:
    """The first record at or after `timestamp` (ms), below `end`. Raises LogError, BatchError."""
    batch = await log.offset_at(timestamp)
    if batch is None or batch[0] >= end:
        return Found()
    offset = max(batch[0], log.start)
    while offset < end:
        read = await log.read(offset, 1, up_to=end)
        if not read.data:
            break
        header = read_header(read.data)
        if header.max_timestamp >= timestamp:
            for number, record in enumerate(records(read.data), 1):
                if number % RECORDS_AT_A_TIME == 0:
                    await turn()
                if record.timestamp >= timestamp and record.offset >= log.start:
                    return Found(record.timestamp, record.offset, header.leader_epoch)
        offset = header.last_offset + 1
    return Found()


async def _latest_time(log: Log) -> int | None:
    """The latest time of all batches. The log answers only 'which is the first batch at or after?', so: ever larger
    steps until there is none, then halves between."""
    found = await log.offset_at(0)
    if found is None:
        return None
    latest, step = found[1], 1
    while latest + step <= LAST_TIME and (found := await log.offset_at(latest + step)) is not None:
        latest, step = found[1], step * 2
    none = min(latest + step, LAST_TIME + 1)
    while none - latest > 1:
        middle = (latest + none) // 2
        found = await log.offset_at(middle)
        if found is None:
            none = middle
        else:
            latest = found[1]
    return latest


API = Api(2, 'ListOffsets', (1, 11), handle)
