"""Of a batch of which few records are taken only these are sent, whole batches otherwise; what is kept has a bound."""

from __future__ import annotations

import pytest

from acklog.broker.deliveries import excerpts
from acklog.broker.deliveries.excerpts import Excerpts
from acklog.broker.journal.format import ShareKey
from acklog.wire.record_batch import build, records, spans

KEY = ShareKey(1, bytes(16), 0)


def batch(first: int, count: int = 100, compression: str = 'none') -> bytearray:
    return build([(None, b'%d' % n) for n in range(count)], timestamp=1, base_offset=first, compression=compression)


def values(made: bytes | None) -> list[bytes | None] | None:
    return None if made is None else [record.value for record in records(made)]


def test_few_records_of_a_batch() -> None:
    made = Excerpts()
    [span] = spans(data := memoryview(batch(50)))
    assert made.of(KEY, span, data, [(50, 75, 1)], 0) is None
    assert made.find(KEY, 50) is None
    for ranges in ([(50, 50, 1), (60, 62, 1)], [(7, 9, 1), (40, 50, 2), (60, 62, 1), (150, 150, 1)]):
        at = len(ranges) // 4
        assert values(made.of(KEY, span, data, ranges, at)) == [b'0', b'10', b'11', b'12']
    assert made.find(KEY, 50) is not None
    assert made.of(KEY, span, data, [(50, 75, 1)], 0) is None


def test_compressed_batches_are_sent_whole() -> None:
    [span] = spans(data := memoryview(batch(0, compression='gzip')))
    assert Excerpts().of(KEY, span, data, [(0, 0, 1)], 0) is None


def test_batches_are_found_again_until_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Excerpts()
    monkeypatch.setattr(excerpts, 'ROOM', 3000)
    for first in (300, 100, 200, 0):
        [span] = spans(data := memoryview(batch(first)))
        made.of(KEY, span, data, [(first, first, 1)], 0)
    found = {offset: made.find(KEY, offset) for offset in (0, 99, 100, 250, 399, 400)}
    there = {offset: None if each is None else each[0].first for offset, each in found.items()}
    assert there == {0: 0, 99: 0, 100: None, 250: 200, 399: None, 400: None}
    assert made.find(ShareKey(1, bytes(16), 1), 0) is None
    span, data = found[99] or pytest.fail()
    assert values(made.of(KEY, span, data, [(99, 99, 1)], 0)) == [b'99']
