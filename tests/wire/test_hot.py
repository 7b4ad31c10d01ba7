"""The hand-written codecs: the same bytes and values as kio's, without copies, and fast where it counts."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acklog.errors import ProtocolError
from acklog.wire import fetch, produce, share_acknowledge, share_fetch
from acklog.wire.acknowledgements import RELEASE_AT_TAG, Acknowledgement
from acklog.wire.layout import REQUEST, RESPONSE

from . import messages
from .hot import HOT, decode, encode, hot_messages, kio_fields

quick = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
directions = pytest.mark.parametrize('direction', [REQUEST, RESPONSE])
codecs = pytest.mark.parametrize(
    ('module', 'version'), HOT, ids=[f'{module.__name__.rpartition(".")[2]}-v{version}' for module, version in HOT]
)

TOPIC = bytes(range(16))


@codecs
@directions
@quick
@given(data=st.data())
def test_kio_reads_what_we_write_and_we_read_what_kio_writes(
    module: ModuleType, version: int, direction: str, data: st.DataObject
) -> None:
    message = data.draw(hot_messages(module, version, direction))
    ours = encode(module, version, direction, message)
    fields = kio_fields(module, direction, message)
    key = module.API_KEY
    entity = messages.kio_decode(key, version, direction, ours)
    assert entity == messages.decode(key, version, direction, messages.encode(key, version, direction, fields))
    assert decode(module, version, direction, messages.kio_encode(entity)) == message


@codecs
@directions
@quick
@given(data=st.data())
def test_tagged_fields_that_nobody_knows_are_passed_over(
    module: ModuleType, version: int, direction: str, data: st.DataObject
) -> None:
    if version < getattr(module, 'FIRST_FLEXIBLE', 0):
        return
    message = data.draw(hot_messages(module, version, direction))
    fields = kio_fields(module, direction, message)
    strange = messages.encode_strangely(module.API_KEY, version, direction, fields)
    assert decode(module, version, direction, strange) == message


@codecs
@quick
@given(data=st.data())
def test_what_kafka_sends_between_brokers_or_tags_is_passed_over(
    module: ModuleType, version: int, data: st.DataObject
) -> None:
    """Any message that kio can say is read, the fields that our types do not have included."""
    for direction in (REQUEST, RESPONSE):
        structure = messages.layout.of_message(module.API_KEY, version, direction)
        body = messages.encode(module.API_KEY, version, direction, data.draw(messages.fields_of(structure)))
        message = decode(module, version, direction, body)
        again = decode(module, version, direction, encode(module, version, direction, message))
        assert again == message or direction == REQUEST  # acknowledgements may have been joined


def test_records_are_views_on_the_way_in_and_references_on_the_way_out() -> None:
    records = bytearray(b'records')
    pieces = produce.encode_request(
        9, produce.Request(1, 0, None, [produce.Topic('t', None, [(produce.Partition(0, records))])])
    )
    assert any(piece is records for piece in pieces)
    frame = bytearray(b''.join(pieces))
    view = produce.decode_request(9, memoryview(frame)).topics[0].partitions[0].records
    frame[frame.index(b'records')] = ord('R')
    assert view == b'Records'


@pytest.mark.parametrize('records', [None, b'', b'ab', [], [b'ab'], [b'a', memoryview(b'b'), bytearray(b'c')]])
def test_records_may_lie_in_several_buffers(records: bytes | list[bytes] | None) -> None:
    expected = records if not isinstance(records, list) else b''.join(records)
    shared = share_fetch.Response(
        topics=[share_fetch.TopicResponse(TOPIC, [share_fetch.PartitionResponse(0, records=records)])]
    )
    body = b''.join(share_fetch.encode_response(1, shared))
    assert share_fetch.decode_response(1, body).topics[0].partitions[0].records == expected
    for version in (11, 12):
        plain = fetch.Response([fetch.TopicResponse('t', None, [fetch.PartitionResponse(0, records=records)])])
        body = b''.join(fetch.encode_response(version, plain))
        assert fetch.decode_response(version, body).topics[0].partitions[0].records == expected


def acknowledged(*batches: Acknowledgement) -> list[Acknowledgement]:
    """What arrives of these batches."""
    topics = [share_acknowledge.Topic(TOPIC, [share_acknowledge.Partition(0, batches)])]
    request = share_acknowledge.Request('g', 'm', 1, False, topics)
    body = b''.join(share_acknowledge.encode_request(1, request))
    return list(share_acknowledge.decode_request(1, body).topics[0].partitions[0].acknowledgements)


@pytest.mark.parametrize('count', [2, 3, 49, 50, 51, 100, 500, 1234])
def test_single_offsets_that_follow_each_other_arrive_as_one_batch(count: int) -> None:
    types = bytes(1 + 2 * (number % 2) for number in range(count))
    singles = [(7 + number, 7 + number, types[number : number + 1], None) for number in range(count)]
    assert acknowledged(*singles) == [(7, 7 + count - 1, types, None)]


@pytest.mark.parametrize('odd', [None, 0, 1, 59])
@pytest.mark.parametrize(
    'other',
    [
        (9, 9, b'\2', None),
        (9, 9, b'\2\2', 7),
        (9, 9, b'\2', 1 << 40),
        (9, 9, b'\2', None, 1000, None),
        (9, 9, b'\2', None, None, 'eight ch'),
        (9, 9, b'\2', 7, 1000, None),
    ],
    ids=['no time', 'two types', 'at', 'after', 'words', 'both times'],
)
@pytest.mark.parametrize('after', [False, True], ids=['at', 'after'])
def test_runs_of_releases_with_a_time_each(other: Acknowledgement, odd: int | None, after: bool) -> None:
    run: list[Acknowledgement] = [
        (n, n, b'\2', None, n * 1000, None) if after else (n, n, b'\2', n * 1000) for n in range(60)
    ]
    if odd is not None:
        run[odd] = other
    assert acknowledged(*run) == run


@pytest.mark.parametrize(
    'batches',
    [
        [(1, 1, b'\1', None)],
        [(1, 1, b'\1', None), (3, 3, b'\2', None)],
        [(1, 1, b'\1', None), (1, 1, b'\2', None)],
        [(2, 2, b'\1', None), (1, 1, b'\2', None)],
        [(1, 2, b'\1', None), (2, 3, b'\2', None)],
        [(5, 5, b'\1', None), (9, 9, b'\1', None), (7, 7, b'\1', None)],
        [(1, 1, b'\1', None), (2, 3, b'\1\2', None), (4, 4, b'\1', None)],
        [(1, 1, b'\1', None), (2, 2, b'', None), (3, 3, b'\1', None)],
        [(1, 1, b'\1', None), (2, 2, b'\2', 1_700_000_000_000), (3, 3, b'\1', None)],
        [(-(1 << 63), (1 << 63) - 1, b'\xff' * 300, -1)],
        [(1, 1, b'\3', None, None, 'no such customer'), (2, 2, b'\2', None, 5000, None)],
        [(1, 1, b'\2', 7, 5000, 'später'), (2, 2, b'\2', None, 0, '')],
    ],
)
def test_other_batches_arrive_as_they_are(batches: list[Acknowledgement]) -> None:
    assert acknowledged(*batches) == batches


def test_half_a_million_acknowledgements_are_a_message() -> None:
    assert len(acknowledged(*((2 * n, 2 * n, b'\1', None) for n in range(500_000)))) == 500_000


def test_a_time_of_release_of_the_wrong_size_is_refused() -> None:
    topics = [share_acknowledge.Topic(TOPIC, [share_acknowledge.Partition(0, [(1, 1, b'\2', 5)])])]
    body = b''.join(share_acknowledge.encode_request(1, share_acknowledge.Request('g', 'm', 1, False, topics)))
    tag = messages.CompactWriter()
    tag.uvarint(RELEASE_AT_TAG)
    at = body.index(tag.out + b'\x08')
    wrong = body[: at + 2] + b'\x07' + body[at + 3 : -3] + body[-2:]
    with pytest.raises(ProtocolError, match='8 bytes, not 7'):
        share_acknowledge.decode_request(1, wrong)
