"""Generated messages of the hand-written codecs, and what kio calls their fields."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hypothesis import strategies as st

from acklog.wire import acknowledgements, fetch, produce, share_acknowledge, share_fetch
from acklog.wire.acknowledgements import Acknowledgement
from acklog.wire.layout import REQUEST

from .messages import integers, texts

i8, i16, i32, i64 = (integers(bits) for bits in (8, 16, 32, 64))
ids = st.binary(min_size=16, max_size=16)
errors = st.sampled_from([-1, 0, 3, 29, 121])
optional = st.none() | texts
data = st.binary(max_size=20)

VERSIONS: dict[ModuleType, range] = {
    produce: range(3, 14),
    fetch: range(4, 19),
    share_fetch: range(1, 3),
    share_acknowledge: range(1, 3),
}
HOT = [(module, version) for module, versions in VERSIONS.items() for version in versions]


def name(version: int) -> st.SearchStrategy[tuple[str, bytes | None]]:
    """(name, topic id) as Produce and Fetch have them: from v13 on ids."""
    return st.tuples(st.just(''), ids) if version >= 13 else st.tuples(texts, st.none())


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, max_size=3)


def since(first: int, version: int, strategy: st.SearchStrategy[Any], default: Any = -1) -> st.SearchStrategy[Any]:
    """A field that exists from version `first` on."""
    return strategy if version >= first else st.just(default)


def named(version: int, make: Any, rest: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda topic, partitions: make(*topic, partitions), name(version), rest)


def produce_request(version: int) -> st.SearchStrategy[Any]:
    partition = st.builds(produce.Partition, i32, st.none() | data)
    return st.builds(produce.Request, i16, i32, optional, some(named(version, produce.Topic, some(partition))))


def produce_response(version: int) -> st.SearchStrategy[Any]:
    times = st.just(-1) | st.integers(0, 253_402_300_799).map(lambda seconds: seconds * 1000)
    log_start, message = since(5, version, i64), since(8, version, optional, None)
    partition = st.builds(produce.PartitionResponse, i32, errors, i64, times, log_start, message)
    return st.builds(produce.Response, some(named(version, produce.TopicResponse, some(partition))), i32)


def fetch_request(version: int) -> st.SearchStrategy[Any]:
    partition = st.builds(
        fetch.Partition, i32, i64, i32, since(9, version, i32), since(12, version, i32), since(5, version, i64)
    )
    return st.builds(
        fetch.Request,
        i32,
        i32,
        i32,
        i8,
        since(7, version, i32, 0),
        since(7, version, i32),
        some(named(version, fetch.Topic, some(partition))),
        since(7, version, some(named(version, fetch.Forgotten, some(i32).map(tuple))), []),
        since(11, version, texts, ''),
        i32 if version < 15 else st.just(-1),
    )


def fetch_response(version: int) -> st.SearchStrategy[Any]:
    leader = since(12, version, st.just((-1, -1)) | st.tuples(i32, i32), (-1, -1))
    partition = st.builds(
        lambda *fields: fetch.PartitionResponse(*fields[:-1], *fields[-1]),
        i32,
        errors,
        i64,
        i64,
        since(5, version, i64),
        st.none() | some(st.tuples(i64, i64)),
        st.none() | data,
        leader,
    )
    return st.builds(
        fetch.Response,
        some(named(version, fetch.TopicResponse, some(partition))),
        since(7, version, errors, 0),
        since(7, version, i32, 0),
        i32,
    )


# Not of a form that is read as one batch: no two of them follow each other.
acks = st.tuples(i64, i64, st.binary(max_size=3), st.none()).map(lambda ack: (ack[0] & ~1, ack[1], ack[2], None))
topics = some(
    st.builds(share_fetch.Topic, ids, some(st.builds(share_fetch.Partition, i32, some(acks)))),
)
endpoints = some(st.builds(share_fetch.NodeEndpoint, i32, texts, i32, optional))


def share_fetch_request(version: int) -> st.SearchStrategy[Any]:
    return st.builds(
        share_fetch.Request,
        optional,
        optional,
        i32,
        i32,
        i32,
        i32,
        i32,
        i32,
        since(2, version, i8, 0),
        since(2, version, st.booleans(), False),
        topics,
        some(st.builds(share_fetch.Forgotten, ids, some(i32).map(tuple))),
        st.none(),  # kio knows nothing of a grace
    )


def share_fetch_response(version: int) -> st.SearchStrategy[Any]:
    acquired = some(st.tuples(i64, i64, i16))
    partition = st.builds(share_fetch.PartitionResponse, i32, errors, optional, i16, optional, i32, i32, data, acquired)
    answered = some(st.builds(share_fetch.TopicResponse, ids, some(partition)))
    return st.builds(share_fetch.Response, errors, optional, i32, answered, endpoints, i32)


def share_acknowledge_request(version: int) -> st.SearchStrategy[Any]:
    renew = since(2, version, st.booleans(), False)
    return st.builds(share_acknowledge.Request, optional, optional, i32, renew, topics)


def share_acknowledge_response(version: int) -> st.SearchStrategy[Any]:
    partition = st.builds(share_acknowledge.PartitionResponse, i32, errors, optional, i32, i32)
    answered = some(st.builds(share_acknowledge.TopicResponse, ids, some(partition)))
    lock = since(2, version, i32, 0)
    return st.builds(share_acknowledge.Response, errors, optional, lock, answered, endpoints, i32)


def hot_messages(module: ModuleType, version: int, direction: str) -> st.SearchStrategy[Any]:
    """Requests or responses of a module, with nothing in them that the version does not know."""
    short = module.__name__.rpartition('.')[2]
    return globals()[f'{short}_{direction}'](version)


def encode(module: ModuleType, version: int, direction: str, message: Any) -> bytes:
    write = module.encode_request if direction == REQUEST else module.encode_response
    return b''.join(write(version, message))


def decode(module: ModuleType, version: int, direction: str, body: bytes) -> Any:
    return (module.decode_request if direction == REQUEST else module.decode_response)(version, body)


# The same messages as dicts of kio's names, with the fields that a version does not know left in.


def _named(topic: Any, names: tuple[str, str], partitions: Any) -> dict[str, Any]:
    return {names[0]: topic.name, 'topic_id': topic.topic_id, names[1]: partitions}


def of_produce_request(m: produce.Request) -> dict[str, Any]:
    topic_data = [
        _named(t, ('name', 'partition_data'), [{'index': p.index, 'records': p.records} for p in t.partitions])
        for t in m.topics
    ]
    return {
        'transactional_id': m.transactional_id,
        'acks': m.acks,
        'timeout': m.timeout_ms,
        'topic_data': topic_data,
    }


def of_produce_response(m: produce.Response) -> dict[str, Any]:
    def partition(p: produce.PartitionResponse) -> dict[str, Any]:
        return {
            'index': p.index,
            'error_code': p.error_code,
            'base_offset': p.base_offset,
            'log_append_time': None if p.append_time == -1 else p.append_time,
            'log_start_offset': p.log_start,
            'error_message': p.error_message,
        }

    topics = [_named(t, ('name', 'partition_responses'), [partition(p) for p in t.partitions]) for t in m.topics]
    return {'responses': topics, 'throttle_time': m.throttle_ms}


def of_fetch_request(m: fetch.Request) -> dict[str, Any]:
    def partition(p: fetch.Partition) -> dict[str, Any]:
        return {
            'partition': p.index,
            'current_leader_epoch': p.leader_epoch,
            'fetch_offset': p.offset,
            'last_fetched_epoch': p.last_fetched_epoch,
            'log_start_offset': p.log_start,
            'partition_max_bytes': p.max_bytes,
        }

    return {
        'replica_id': m.replica_id,
        'max_wait': m.max_wait_ms,
        'min_bytes': m.min_bytes,
        'max_bytes': m.max_bytes,
        'isolation_level': m.isolation_level,
        'session_id': m.session_id,
        'session_epoch': m.session_epoch,
        'topics': [_named(t, ('topic', 'partitions'), [partition(p) for p in t.partitions]) for t in m.topics],
        'forgotten_topics_data': [_named(t, ('topic', 'partitions'), list(t.partitions)) for t in m.forgotten],
        'rack_id': m.rack_id,
    }


def of_fetch_response(m: fetch.Response) -> dict[str, Any]:
    def partition(p: fetch.PartitionResponse) -> dict[str, Any]:
        aborted = p.aborted
        leader = {'leader_id': p.leader_id, 'leader_epoch': p.leader_epoch}
        return {
            'partition_index': p.index,
            'error_code': p.error_code,
            'high_watermark': p.high_watermark,
            'last_stable_offset': p.last_stable,
            'log_start_offset': p.log_start,
            'aborted_transactions': None
            if aborted is None
            else [{'producer_id': producer_id, 'first_offset': first} for producer_id, first in aborted],
            'records': p.records,
            'current_leader': leader,
        }

    topics = [_named(t, ('topic', 'partitions'), [partition(p) for p in t.partitions]) for t in m.topics]
    return {
        'throttle_time': m.throttle_ms,
        'error_code': m.error_code,
        'session_id': m.session_id,
        'responses': topics,
    }


def _shared_topics(topics: Any) -> list[dict[str, Any]]:
    def batch(ack: Acknowledgement) -> dict[str, Any]:
        types = [number - 256 if number > 127 else number for number in ack[2]]
        return {'first_offset': ack[0], 'last_offset': ack[1], 'acknowledge_types': types}

    return [
        {
            'topic_id': topic.topic_id,
            'partitions': [
                {
                    'partition_index': partition.index,
                    'acknowledgement_batches': [batch(ack) for ack in partition.acknowledgements],
                }
                for partition in topic.partitions
            ],
        }
        for topic in topics
    ]


def of_share_fetch_request(m: share_fetch.Request) -> dict[str, Any]:
    return {
        'group_id': m.group_id,
        'member_id': m.member_id,
        'share_session_epoch': m.session_epoch,
        'max_wait': m.max_wait_ms,
        'min_bytes': m.min_bytes,
        'max_bytes': m.max_bytes,
        'max_records': m.max_records,
        'batch_size': m.batch_size,
        'share_acquire_mode': m.acquire_mode,
        'is_renew_ack': m.is_renew,
        'topics': _shared_topics(m.topics),
        'forgotten_topics_data': [{'topic_id': f.topic_id, 'partitions': list(f.partitions)} for f in m.forgotten],
    }


def of_share_acknowledge_request(m: share_acknowledge.Request) -> dict[str, Any]:
    return {
        'group_id': m.group_id,
        'member_id': m.member_id,
        'share_session_epoch': m.session_epoch,
        'is_renew_ack': m.is_renew,
        'topics': _shared_topics(m.topics),
    }


def _answer(m: Any, partition: Any) -> dict[str, Any]:
    return {
        'throttle_time': m.throttle_ms,
        'error_code': m.error_code,
        'error_message': m.error_message,
        'acquisition_lock_timeout': m.lock_timeout_ms,
        'responses': [
            {'topic_id': topic.topic_id, 'partitions': [partition(p) for p in topic.partitions]} for topic in m.topics
        ],
        'node_endpoints': [endpoint._asdict() for endpoint in m.node_endpoints],
    }


def of_share_fetch_response(m: share_fetch.Response) -> dict[str, Any]:
    def partition(p: share_fetch.PartitionResponse) -> dict[str, Any]:
        names = ('first_offset', 'last_offset', 'delivery_count')
        return {
            'partition_index': p.index,
            'error_code': p.error_code,
            'error_message': p.error_message,
            'acknowledge_error_code': p.ack_error_code,
            'acknowledge_error_message': p.ack_error_message,
            'current_leader': {'leader_id': p.leader_id, 'leader_epoch': p.leader_epoch},
            'records': p.records,
            'acquired_records': [dict(zip(names, acquired, strict=True)) for acquired in p.acquired],
        }

    return _answer(m, partition)


def of_share_acknowledge_response(m: share_acknowledge.Response) -> dict[str, Any]:
    def partition(p: share_acknowledge.PartitionResponse) -> dict[str, Any]:
        return {
            'partition_index': p.index,
            'error_code': p.error_code,
            'error_message': p.error_message,
            'current_leader': {'leader_id': p.leader_id, 'leader_epoch': p.leader_epoch},
        }

    return _answer(m, partition)


def kio_fields(module: ModuleType, direction: str, message: Any) -> dict[str, Any]:
    """A message as a dict of kio's names."""
    short = module.__name__.rpartition('.')[2]
    return globals()[f'of_{short}_{direction}'](message)  # type: ignore[no-any-return]


__all__ = ['HOT', 'acknowledgements', 'decode', 'encode', 'hot_messages', 'kio_fields']
