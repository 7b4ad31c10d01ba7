"""Some records of a batch, as a batch of their own."""

from __future__ import annotations

import pytest

from acklog.errors import CorruptBatch
from acklog.wire.excerpt import excerpt, starts
from acklog.wire.record_batch import NewRecord, build, crc_fits, read_header, records, spans


def batch(count: int = 10) -> bytearray:
    new = [NewRecord(b'k%d' % n, b'v' * (n * 40), [('h', b'%d' % n)], 1000 + n) for n in range(count)]
    return build(new, timestamp=1000, base_offset=50, producer_id=7, producer_epoch=1, base_sequence=3)


@pytest.mark.parametrize('deltas', [[0], [9], [3, 4, 8], list(range(10))])
def test_it_has_these_records_as_they_were(deltas: list[int]) -> None:
    before = batch()
    data = memoryview(bytes(13) + before)
    [span] = spans(data, 13)
    part = excerpt(data, span, starts(before, 10), deltas)
    all_records = list(records(before))
    assert list(records(part)) == [all_records[delta] for delta in deltas]
    header, whole = read_header(part), read_header(before)
    assert crc_fits(part, 0, len(part))
    assert header == whole._replace(length=len(part) - 12, crc=header.crc, record_count=len(deltas))


def test_all_of_them_are_the_batch() -> None:
    before = batch()
    [span] = spans(before)
    assert excerpt(memoryview(before), span, starts(before, 10), range(10)) == before


@pytest.mark.parametrize('count', [9, 11, 1000])
def test_records_that_do_not_fit_their_batch(count: int) -> None:
    with pytest.raises(CorruptBatch):
        starts(batch(), count)
