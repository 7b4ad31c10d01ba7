"""What the codecs cost: microseconds per message, the best of several rounds.

    python bench/wire.py

Limits that were set for this class of machine (2 cores): a produce of one batch 3 us, a ShareFetch without
acknowledgements 3 to 4 us, 500 one-offset acknowledgements 60 us, a heartbeat or metadata answer 100 us.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable

from acklog.wire import cold, fetch, frame, produce, record_batch, share_acknowledge, share_fetch
from acklog.wire.stream import FrameReader

TOPIC = bytes(range(16))
METADATA, SHARE_GROUP_HEARTBEAT = 3, 76


def best(call: Callable[[], object], number: int = 2000, rounds: int = 9) -> float:
    """Microseconds per call."""
    return min(timeit.repeat(call, number=number, repeat=rounds)) / number * 1e6


def joined(pieces: list[bytes | bytearray | memoryview]) -> memoryview:
    return memoryview(bytearray(b''.join(pieces)))


def acknowledgements(step: int) -> memoryview:
    batches = [(n * step, n * step, bytes([1 + 2 * (n % 2)]), None) for n in range(500)]
    topics = [share_acknowledge.Topic(TOPIC, [share_acknowledge.Partition(0, batches)])]
    return joined(share_acknowledge.encode_request(1, share_acknowledge.Request('g', 'm' * 22, 9, False, topics)))


def through_reader(stream: bytes) -> Callable[[], object]:
    reader = FrameReader(1 << 20)

    def receive() -> list[memoryview]:
        room = reader.get_buffer(-1)
        count = min(len(room), len(stream))
        room[:count] = stream[:count]
        return reader.received(count)

    return receive


def measurements() -> dict[str, Callable[[], object]]:
    batch = record_batch.build([(b'key', b'v' * 100)], timestamp=1_700_000_000_000)
    produced = produce.Request(-1, 30_000, None, [produce.Topic('orders', None, [produce.Partition(0, batch)])])
    produce_body = joined(produce.encode_request(9, produced))
    produce_frame = joined(frame.request_frame(0, 9, 7, 'rdkafka', produce.encode_request(9, produced)))
    stored = produce.Response([produce.TopicResponse('orders', None, [produce.PartitionResponse(0, 0, 99)])])

    waiting = share_fetch.Request('group', 'm' * 22, 9, 500, 1, 50 << 20, 500, 500, 0, False, [], [])
    waiting_body = joined(share_fetch.encode_request(1, waiting))
    taken = share_fetch.PartitionResponse(0, records=batch, acquired=[(0, 499, 1)])
    delivered = share_fetch.Response(0, None, 30_000, [share_fetch.TopicResponse(TOPIC, [taken])])
    asked = fetch.Request(500, 1, 50 << 20, topics=[fetch.Topic('', TOPIC, [fetch.Partition(0, 7, 1 << 20)])])
    fetch_body = joined(fetch.encode_request(16, asked))
    in_order, scattered = acknowledgements(1), acknowledgements(2)

    heartbeat = joined([cold.encode_request(SHARE_GROUP_HEARTBEAT, 1, {'group_id': 'g', 'member_id': 'm' * 22})])
    assignment = {'topic_partitions': [{'topic_id': TOPIC, 'partitions': [0, 1, 2, 3]}]}
    beat = {'member_id': 'm' * 22, 'member_epoch': 3, 'heartbeat_interval': 5000, 'assignment': assignment}
    partitions = [{'partition_index': n, 'replica_nodes': [0], 'isr_nodes': [0]} for n in range(4)]
    topics = [{'name': 'orders', 'topic_id': TOPIC, 'partitions': partitions}]
    metadata = {'brokers': [{'node_id': 0, 'host': '127.0.0.1', 'port': 9092}], 'topics': topics}

    many = bytes(batch) * 1000
    return {
        'Produce request of one batch, read': lambda: produce.decode_request(9, produce_body),
        'Produce answer, written': lambda: produce.encode_response(9, stored),
        'Fetch request of one partition, read': lambda: fetch.decode_request(16, fetch_body),
        'ShareFetch request, waiting, read': lambda: share_fetch.decode_request(1, waiting_body),
        'ShareFetch answer of one partition, written': lambda: share_fetch.encode_response(1, delivered),
        'ShareAcknowledge of 500 offsets, alternating, read': lambda: share_acknowledge.decode_request(1, in_order),
        'ShareAcknowledge of 500 offsets, scattered, read': lambda: share_acknowledge.decode_request(1, scattered),
        'ShareGroupHeartbeat request, read': lambda: cold.decode_request(SHARE_GROUP_HEARTBEAT, 1, heartbeat),
        'ShareGroupHeartbeat answer, written': lambda: cold.encode_response(SHARE_GROUP_HEARTBEAT, 1, beat),
        'Metadata answer of 4 partitions, written': lambda: cold.encode_response(METADATA, 12, metadata),
        'request header, read': lambda: frame.read_request_header(produce_frame[4:]),
        'answer, framed': lambda: frame.response_frame(0, 9, 7, (b'body',)),
        'one small frame, received': through_reader(bytes(produce_frame)),
        'batch of one record, checked': lambda: record_batch.check(batch, 1 << 20),
        'batch of one record, placed': lambda: record_batch.place(batch, 0, 7, 0),
        'batch of one record, built': lambda: record_batch.build([(None, b'v' * 100)], timestamp=7),
        '1000 batches, hopped over': lambda: record_batch.spans(many),
    }


def main() -> None:
    for name, call in measurements().items():
        first = timeit.timeit(call, number=1) and timeit.timeit(call, number=20) / 20
        cost = best(call, number=max(5, min(2000, int(0.02 / first))))
        sys.stdout.write(f'{name:52} {cost:8.2f} us\n')


if __name__ == '__main__':
    main()
