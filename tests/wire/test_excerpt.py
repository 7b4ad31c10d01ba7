"""Some records of a batch, as a batch of their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lines import at_most

from acklog.errors import CorruptBatch
from acklog.wire.excerpt import Divided
from acklog.wire.record_batch import HEADER_SIZE, NewRecord, build, crc_fits, read_header, records, spans


def batch(count: int = 10) -> bytearray:
    new = [NewRecord(b'k%d' % n, b'v' * (n * 40), [('h', b'%d' % n)], 1000 + n) for n in range(count)]
    return build(new, timestamp=1000, base_offset=50, producer_id=7, producer_epoch=1, base_sequence=3)


@pytest.mark.parametrize('wanted', [[(50, 50)], [(59, 59)], [(53, 54), (58, 58)], [(50, 52), (53, 59)]])
def test_it_has_these_records_as_they_were(wanted: list[tuple[int, int]]) -> None:
    before = batch()
    data = memoryview(bytes(13) + before)
    [span] = spans(data, 13)
    part = Divided(before, 50, 59).excerpt(data, span.position, [(*each, 1) for each in wanted], 0, 10)
    assert part is not None
    deltas = [offset - 50 for first, last in wanted for offset in range(first, last + 1)]
    all_records = list(records(before))
    assert list(records(part)) == [all_records[delta] for delta in deltas]
    header, whole = read_header(part), read_header(before)
    assert crc_fits(part, 0, len(part))
    assert header == whole._replace(length=len(part) - 12, crc=header.crc, record_count=len(deltas))


def test_all_of_them_are_the_batch() -> None:
    before = batch()
    assert Divided(before, 50, 59).excerpt(memoryview(before), 0, [(50, 59, 1)], 0, 10) == before


def test_of_ranges_only_what_lies_in_the_batch() -> None:
    before = batch()
    divided = Divided(before, 50, 59)
    ranges = [(10, 20, 1), (48, 50, 2), (55, 55, 1), (59, 61, 3), (70, 80, 1)]
    single = [(offset, offset, 1) for offset in (50, 55, 59)]
    assert divided.excerpt(before, 0, ranges, 1, 3) == divided.excerpt(before, 0, single, 0, 3)


def test_not_of_more_records_than_it_is_worth() -> None:
    before = batch()
    divided = Divided(before, 50, 59)
    assert divided.excerpt(before, 0, [(51, 52, 1), (54, 54, 1)], 0, 3) is not None
    assert divided.excerpt(before, 0, [(51, 52, 1), (54, 55, 1)], 0, 3) is None


@pytest.mark.parametrize('count', [9, 11, 1000])
def test_records_that_do_not_fit_their_batch(count: int) -> None:
    with pytest.raises(CorruptBatch):
        Divided(batch(), 50, 49 + count)


MOST = (1 << 31) - 1  # records that a header can claim
LENGTHS = st.sampled_from([b'\x00', b'\x01', b'\x02', b'\x85\x80\x00', b'\xff' * 12, b'\xff' * 9 + b'\x01'])


@given(st.lists(LENGTHS | st.binary(max_size=8), max_size=20).map(b''.join), st.integers(1, 30) | st.just(MOST))
def test_any_bytes_in_the_place_of_records(body: bytes, count: int) -> None:
    before = bytes(batch()[:HEADER_SIZE]) + body
    try:
        with at_most(lines=2000):  # it goes by the bytes that there are, not by what is claimed
            divided = Divided(before, 0, count - 1)
    except CorruptBatch:
        return
    parts = [divided.excerpt(before, 0, [(offset, offset, 1)], 0, 1) for offset in range(count)]
    assert b''.join([bytes(part or b'')[HEADER_SIZE:] for part in parts]) == body
