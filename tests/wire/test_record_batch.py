"""Record batches: built, checked, placed, stamped, read."""

from __future__ import annotations

import contextlib
import gzip
import struct
from typing import Any

import crc32c
import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from acklog.errors import BatchError, BatchTooLarge, CorruptBatch, InvalidBatch, UnsupportedFormat
from acklog.wire import compression, record_batch
from acklog.wire.record_batch import HEADER_SIZE, NewRecord, Record, Span, build, check, records, spans
from acklog.wire.records import rows as rows_in
from acklog.wire.records import rows_at, varint

from .messages import texts

NOW = 1_700_000_000_000

new_records = st.builds(
    NewRecord,
    st.none() | st.binary(max_size=20),
    st.none() | st.binary(max_size=300),
    st.lists(st.tuples(texts, st.none() | st.binary(max_size=9)), max_size=3),
    st.none() | st.integers(0, 1 << 62),
)
some_records = st.lists(new_records, min_size=1, max_size=5)


def batch(*values: bytes, **settings: Any) -> bytearray:
    return build([(None, value) for value in values], timestamp=NOW, **settings)


def patched(data: bytes | bytearray, position: int, form: str, value: int, *, seal: bool = True) -> bytearray:
    """A batch with one field changed, and with a CRC that fits if it is to be sealed."""
    changed = bytearray(data)
    struct.pack_into(form, changed, position, value)
    if seal:
        struct.pack_into('>I', changed, 17, crc32c.crc32c(bytes(changed[21:])))
    return changed


@pytest.mark.parametrize('name', compression.NAMES)
@settings(deadline=None, max_examples=40)
@given(some=some_records, offset=st.integers(0, 1 << 60))
def test_what_was_built_is_read(name: str, some: list[NewRecord], offset: int) -> None:
    data = build(some, timestamp=NOW, base_offset=offset, compression=name)
    (header,) = check(data, len(data))
    assert header.size == len(data)
    assert (header.base_offset, header.last_offset, header.record_count) == (offset, offset + len(some) - 1, len(some))
    assert record_batch.compression_name(header.attributes) == name
    read = list(records(data))
    assert read == [
        Record(offset + number, NOW if new.timestamp is None else new.timestamp, new.key, new.value, tuple(new.headers))
        for number, new in enumerate(some)
    ]
    assert header.max_timestamp == max(record.timestamp for record in read)


@pytest.mark.parametrize('number', range(5))
def test_another_library_writes_and_reads_the_same(number: int) -> None:
    builder = DefaultRecordBatchBuilder(
        2, number, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1, batch_size=1 << 20
    )
    for offset in range(3):
        builder.append(offset, NOW + offset, b'key', b'value' * 100, [('h', b'x')])
    theirs = builder.build()
    check(theirs, 1 << 20)
    expected = [Record(offset, NOW + offset, b'key', b'value' * 100, (('h', b'x'),)) for offset in range(3)]
    assert list(records(theirs)) == expected

    new = [NewRecord(b'key', b'value' * 100, [('h', b'x')], NOW + offset) for offset in range(3)]
    ours = build(new, timestamp=NOW, compression=compression.NAMES[number])
    reader = DefaultRecordBatch(bytes(ours))
    assert reader.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in reader] == [tuple(r) for r in expected]


def test_spans_hop_over_batches_and_leave_out_a_torn_one() -> None:
    first, second = batch(b'a', b'b', base_offset=7), batch(b'c', base_offset=9, control=True)
    data = first + second
    hops = [Span(7, 8, 0, len(first), 0), Span(9, 9, len(first), len(second), record_batch.CONTROL)]
    assert spans(data) == hops
    assert spans(data + first[:-1]) == hops
    assert spans(data, len(first)) == hops[1:]
    assert spans(b'') == []
    with pytest.raises(CorruptBatch, match='a batch of length 48'):
        spans(patched(data, 8, '>i', 48))


def test_place_needs_no_crc() -> None:
    data = bytearray(b'before') + batch(b'a', b'b')
    record_batch.place(data, 6, 1 << 40, 5)
    (header,) = check(data[6:], 1000)
    assert (header.base_offset, header.leader_epoch) == (1 << 40, 5)


def test_stamp_gives_all_records_the_time_of_the_log() -> None:
    data = bytearray(b'before') + build([(b'k', b'v', (), 5), (b'k', b'v', (), 6)], timestamp=1) + b'behind'
    record_batch.stamp(memoryview(data), 6, NOW)
    assert record_batch.crc_fits(data, 6, len(data) - 12)
    assert [record.timestamp for record in records(data, 6)] == [NOW, NOW]


def test_control_batches_are_passed_over_unless_asked_for() -> None:
    data = batch(b'a') + batch(b'marker', control=True) + batch(b'b')
    assert [record.value for record in records(data)] == [b'a', b'b']
    assert [record.value for record in records(data, control=True)] == [b'a', b'marker', b'b']


def test_several_batches_are_checked_in_order() -> None:
    data = batch(b'a') + batch(b'b', b'c', producer_id=4, producer_epoch=0, base_sequence=9)
    assert [(header.record_count, header.producer_id, header.base_sequence) for header in check(data, 1000)] == [
        (1, -1, -1),
        (2, 4, 9),
    ]


def claiming(data: bytes | bytearray, count: int) -> bytearray:
    """A batch that says it has so many records."""
    return patched(patched(data, 57, '>i', count), 23, '>i', count - 1)


GOOD = bytes(batch(b'a', b'b'))
IDEMPOTENT = bytes(batch(b'a', producer_id=1, producer_epoch=0, base_sequence=0))


@pytest.mark.parametrize(
    ('data', 'error', 'complaint'),
    [
        (b'', CorruptBatch, 'no batch'),
        (b'\0' * 16, CorruptBatch, 'are no batch'),
        (GOOD[:60], CorruptBatch, 'are no batch'),
        (GOOD[:-1], CorruptBatch, 'a batch of'),
        (GOOD + b'x', CorruptBatch, '1 bytes are no batch'),
        (patched(GOOD, 16, 'b', 0, seal=False), UnsupportedFormat, 'v0'),
        (patched(GOOD, 16, 'b', 1, seal=False)[:34], UnsupportedFormat, 'v1'),
        (patched(GOOD, 16, 'b', 3, seal=False), CorruptBatch, 'unknown message format 3'),
        (patched(GOOD, 8, '>i', -1), CorruptBatch, 'a batch of 11 bytes'),
        (patched(GOOD, 8, '>i', (1 << 31) - 1), CorruptBatch, 'a batch of'),
        (patched(GOOD, len(GOOD) - 2, 'b', 7, seal=False), CorruptBatch, 'CRC'),
        (patched(GOOD, 57, '>i', 3), InvalidBatch, '3 records with a last offset delta of 1'),
        (patched(GOOD, 57, '>i', 0), InvalidBatch, '0 records'),
        (patched(patched(GOOD, 57, '>i', -1), 23, '>i', -2), InvalidBatch, '-1 records'),
        (claiming(GOOD, 3), InvalidBatch, '3 records are more than 77 bytes can hold'),
        (claiming(GOOD, (1 << 31) - 1), InvalidBatch, '2147483647 records are more than'),
        (claiming(batch(b'a', compression='zstd'), 1_000_001), BatchTooLarge, '1000001 records, at most 1000000'),
        (claiming(batch(b'a', compression='gzip'), (1 << 31) - 1), BatchTooLarge, '2147483647 records, at most'),
        (patched(GOOD, 21, '>h', 5), CorruptBatch, 'unknown compression 5'),
        (patched(GOOD, 21, '>h', 0x20), InvalidBatch, 'control'),
        (patched(GOOD, 21, '>h', 0x08), InvalidBatch, 'LogAppendTime'),
        (patched(GOOD, 21, '>h', 0x10), InvalidBatch, 'transactional batch without a producer id'),
        (patched(IDEMPOTENT, 51, '>h', -1), InvalidBatch, 'without epoch or sequence'),
        (patched(IDEMPOTENT, 53, '>i', -1), InvalidBatch, 'without epoch or sequence'),
        (GOOD + patched(GOOD, 21, '>h', 0x20), InvalidBatch, 'control'),
        (bytes(batch(bytes(1000))), BatchTooLarge, 'at most 1000'),
    ],
)
def test_what_must_not_be_stored_is_refused(data: bytes, error: type[BatchError], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        check(data, 1000)


def test_records_as_small_as_can_be_are_taken() -> None:
    data = build([(None, None)] * 50, timestamp=NOW)
    [header] = check(data, 1000)
    assert header.record_count == 50
    assert len(data) == 61 + 50 * 7


@settings(deadline=None)
@given(
    position=st.integers(0, 200),
    byte=st.integers(0, 255),
    cut=st.integers(0, 200),
    name=st.sampled_from(compression.NAMES),
)
def test_a_changed_byte_is_refused_or_harmless(position: int, byte: int, cut: int, name: str) -> None:
    data = batch(b'aaaaaaaaaaaaaaaa' * 8, compression=name)
    data[position % len(data)] = byte
    for torn in (data, data[: len(data) - cut]):
        with contextlib.suppress(BatchError):
            check(torn, 1000)
            list(records(torn))


@settings(deadline=None, max_examples=300)
@given(body=st.binary(max_size=60), count=st.integers(0, 5), name=st.integers(0, 4))
def test_nonsense_in_a_batch_is_refused(body: bytes, count: int, name: int) -> None:
    data = bytearray(GOOD[:HEADER_SIZE]) + body
    struct.pack_into('>i', data, 8, len(data) - 12)
    struct.pack_into('>h', data, 21, name)
    struct.pack_into('>i', data, 57, count)
    with contextlib.suppress(CorruptBatch):
        assert len(list(records(data))) == count


def test_a_batch_needs_a_record() -> None:
    with pytest.raises(ValueError, match='needs a record'):
        build([], timestamp=0)


def test_a_gzip_stream_may_have_members() -> None:
    packed = gzip.compress(b'ab') + gzip.compress(b'cd')
    assert compression.decompress('gzip', packed, 4) == b'abcd'


@pytest.mark.parametrize(('ms', 'delta'), [(1 << 62, 0), (-(1 << 63), 0), (0, 1 << 31), (0, -1), (0, 1 << 62)])
def test_a_record_that_no_answer_could_tell_of(ms: int, delta: int) -> None:
    """Its time, or its offset, would not fit into its field."""
    made = build([b''], timestamp=1 << 62 if ms > 0 else -2)
    record = b'\0' + varint(ms) + varint(delta) + b'\1\0\0'
    made[HEADER_SIZE:] = varint(len(record)) + record
    made[8:12] = (len(made) - 12).to_bytes(4)
    with pytest.raises(CorruptBatch, match='a record at'):
        list(records(made))


@given(some=st.lists(new_records, min_size=1, max_size=300), offset=st.integers(0, 1 << 60), data=st.data())
def test_only_some_records_of_a_batch(some: list[NewRecord], offset: int, data: st.DataObject) -> None:
    """The others are told of, not read."""
    batch = build(some, timestamp=NOW, base_offset=offset, compression='gzip')
    [span] = spans(batch)
    wanted = data.draw(st.sets(st.integers(offset, offset + len(some))))
    rows = list(record_batch.rows_of(batch, span))
    assert list(record_batch.rows_at(batch, span, wanted)) == [row if row[0] in wanted else None for row in rows]


@pytest.mark.parametrize('first', [0, 63, 64, 8191, 8192, 1_048_575, 1_048_576])
def test_a_record_far_into_a_batch(first: int) -> None:
    """Where its place in the batch takes one byte more."""
    body = b''.join([b'\x10\0\0', varint(first), b'\1\1\0'])
    body = varint(len(body) - 1) + body[1:]
    assert list(rows_at(body, 1, 5, NOW, None, {5 + first})) == [(5 + first, NOW, None, None, ())]
    assert list(rows_at(body, 1, 5, NOW, None, {4 + first, 6 + first})) == [None]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=9), max_size=20).map(b''.join), st.integers(1, 30))
def test_any_bytes_in_the_place_of_records_that_are_all_wanted(body: bytes, count: int) -> None:
    def outcome(found: Any) -> Any:
        try:
            return list(found)
        except CorruptBatch:
            return None

    anything = range(-(1 << 70), 1 << 70)
    assert outcome(rows_at(body, count, 0, NOW, None, anything)) == outcome(rows_in(body, count, 0, NOW))
