"""Produce for one partition, which has a way of its own: it must look like any other."""

from __future__ import annotations

from typing import Any, SupportsIndex

import pytest

from acklog.errors import ProtocolError
from acklog.wire import produce
from acklog.wire.produce import Partition, PartitionResponse, Request, Response, Topic, TopicResponse

ID = bytes(range(16))
NAMES = ['t', 'ä' * 60, 'n' * 126, 'n' * 127, 'n' * 249, '']
VERSIONS = [9, 12, 13]


def topic_of(version: int, name: str) -> tuple[str, bytes | None]:
    return ('', ID) if version >= 13 else (name, None)


def request(version: int, name: str, size: int, **changed: object) -> Request:
    return Request(-1, 30_000, None, [Topic(*topic_of(version, name), [Partition(3, b'r' * size)])])._replace(**changed)


def plain(found: Request) -> tuple[object, ...]:
    topics = [(t.name, t.topic_id, [(p.index, bytes(p.records or b'')) for p in t.partitions]) for t in found.topics]
    return found.acks, found.timeout_ms, found.transactional_id, topics


@pytest.mark.parametrize('version', VERSIONS)
@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('size', [1, 126, 127, 128, 16_383, 16_384, 1_000_000])
def test_a_request_for_one_partition(version: int, name: str, size: int) -> None:
    sent = request(version, name, size)
    body = memoryview(b''.join(map(bytes, produce.encode_request(version, sent))))
    assert plain(produce.decode_request(version, body)) == plain(sent)
    assert plain(produce.decode_request(version, memoryview(bytes(body) + b'more'))) == plain(sent)


@pytest.mark.parametrize('version', VERSIONS)
def test_what_is_no_such_request_is_read_the_general_way(version: int) -> None:
    one = request(version, 't', 5)
    [topic] = one.topics
    for sent in (
        one._replace(transactional_id='x'),
        one._replace(topics=[]),
        one._replace(topics=[topic, topic]),
        one._replace(topics=[topic._replace(partitions=[])]),
        one._replace(topics=[topic._replace(partitions=[*topic.partitions, Partition(4, b'z')])]),
        one._replace(topics=[topic._replace(partitions=[Partition(3, None)])]),
    ):
        body = memoryview(b''.join(map(bytes, produce.encode_request(version, sent))))
        assert plain(produce.decode_request(version, body)) == plain(sent)


@pytest.mark.parametrize('version', VERSIONS)
def test_every_cut_is_refused_and_every_other_byte_is_read_or_refused(version: int) -> None:
    body = b''.join(map(bytes, produce.encode_request(version, request(version, 'topic', 5))))
    for size in range(len(body)):
        with pytest.raises(ProtocolError):
            produce.decode_request(version, memoryview(body[:size]))
    for at in range(len(body)):
        for byte in (0, 1, 2, 127, 128, 255):
            changed = body[:at] + bytes([byte]) + body[at + 1 :]
            try:
                produce.decode_request(version, memoryview(changed))
            except ProtocolError:
                continue


@pytest.mark.parametrize('version', [3, 5, 8, *VERSIONS])
@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('message', [None, 'what was wrong'])
def test_an_answer_about_one_partition(version: int, name: str, message: str | None) -> None:
    partition = PartitionResponse(3, 0 if message is None else 45, 2**40, -1, 7, message)
    sent = Response([TopicResponse(*topic_of(version, name), [partition])], 250)
    answer = produce.decode_response(version, memoryview(b''.join(map(bytes, produce.encode_response(version, sent)))))
    assert answer.throttle_ms == 250
    [topic] = answer.topics
    assert (topic.name, topic.topic_id) == topic_of(version, name)
    kept = partition._replace(log_start=7 if version >= 5 else -1, error_message=message if version >= 8 else None)
    assert list(topic.partitions) == [kept]


@pytest.mark.parametrize('version', VERSIONS)
@pytest.mark.parametrize('byte', [b'\x80', b'\xff'])
def test_a_length_without_end_is_refused_at_once(version: int, byte: bytes) -> None:
    body = b''.join(map(bytes, produce.encode_request(version, request(version, 't', 1))))
    length_at = len(body) - len(b'\x02r') - 3
    assert body[length_at : length_at + 2] == b'\x02r'
    endless = Counted(body[:length_at] + byte * 1_000_000)
    with pytest.raises(ProtocolError):
        produce.decode_request(version, endless)  # type: ignore[arg-type]
    assert endless.looks < 50


class Counted(bytes):
    """Counts how often it is looked into."""

    looks = 0

    def __getitem__(self, place: SupportsIndex | slice) -> Any:
        self.looks += 1
        return super().__getitem__(place)
