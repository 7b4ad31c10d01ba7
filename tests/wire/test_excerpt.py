"""Some records of a batch, as a batch of their own."""

from __future__ import annotations

import pytest

from acklog.errors import CorruptBatch
from acklog.wire.excerpt import excerpt, starts
from acklog.wire.record_batch import NewRecord, build, crc_fits, read_header, records, spans


def batch(count: int = 10) -> bytearray:
    new = [NewRecord(b'k%d' % n, b'v' * (n * 40), [('h', b'%d' % n)], 1000 + n) for n in range(count)]
    return build(new, timestamp=1000, base_offset=50, producer_id=7, producer_epoch=1, base_sequence=3)


@pytest.mark.parametrize('wanted', [[(50, 50)], [(59, 59)], [(53, 54), (58, 58)], [(50, 52), (53, 59)]])
def test_it_has_these_records_as_they_were(wanted: list[tuple[int, int]]) -> None:
    before = batch()
    data = memoryview(bytes(13) + before)
    [span] = spans(data, 13)
    part = excerpt(data, span.position, starts(before, 10), 50, wanted)
    deltas = [offset - 50 for first, last in wanted for offset in range(first, last + 1)]
    all_records = list(records(before))
    assert list(records(part)) == [all_records[delta] for delta in deltas]
    header, whole = read_header(part), read_header(before)
    assert crc_fits(part, 0, len(part))
    assert header == whole._replace(length=len(part) - 12, crc=header.crc, record_count=len(deltas))


def test_all_of_them_are_the_batch() -> None:
    before = batch()
    assert excerpt(memoryview(before), 0, starts(before, 10), 50, [(50, 59)]) == before


@pytest.mark.parametrize('count', [9, 11, 1000])
def test_records_that_do_not_fit_their_batch(count: int) -> None:
    with pytest.raises(CorruptBatch):
        starts(batch(), count)
