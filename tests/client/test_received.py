"""Records out of what a server sent: only what was acquired, gaps apart, unreadable batches handed back."""

from __future__ import annotations

from acklog.client.received import sort_out
from acklog.wire import record_batch


def batch(base: int, *values: bytes, compression: str = 'none') -> bytes:
    records = [(None, value) for value in values]
    return bytes(record_batch.build(records, timestamp=7, base_offset=base, compression=compression))


def values(data: bytes, *acquired: tuple[int, int, int]) -> list[tuple[int, bytes | None, int]]:
    return [(r.offset, r.value, r.deliveries) for r in sort_out('t', 0, data, acquired).records]


def test_all_of_two_batches() -> None:
    data = batch(0, b'a', b'b') + batch(2, b'c')
    assert values(data, (0, 2, 1)) == [(0, b'a', 1), (1, b'b', 1), (2, b'c', 1)]


def test_only_what_was_acquired_with_its_delivery_count() -> None:
    data = batch(10, b'a', b'b', b'c', b'd', b'e')
    assert values(data, (10, 10, 3), (12, 13, 1)) == [(10, b'a', 3), (12, b'c', 1), (13, b'd', 1)]


def test_compressed() -> None:
    assert values(batch(0, b'x' * 1000, compression='gzip'), (0, 0, 1)) == [(0, b'x' * 1000, 1)]


def test_acquired_offsets_without_a_record_are_gaps() -> None:
    data = batch(0, b'a') + bytes(
        record_batch.build(
            [(b'k', b'v')],
            timestamp=7,
            base_offset=1,
            control=True,
            transactional=True,
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
        )
    )
    found = sort_out('t', 0, data + batch(5, b'f'), [(0, 5, 1)])
    assert [record.offset for record in found.records] == [0, 5]
    assert found.gaps == [(1, 4)]
    assert found.unreadable == []


def test_a_batch_whose_crc_does_not_fit_is_unreadable() -> None:
    broken = bytearray(batch(1, b'b', b'c'))
    broken[-1] ^= 1
    found = sort_out('t', 0, batch(0, b'a') + bytes(broken) + batch(3, b'd'), [(0, 3, 1)])
    assert [record.offset for record in found.records] == [0, 3]
    assert (found.gaps, found.unreadable) == ([], [(1, 2)])


def test_a_batch_that_unpacks_to_too_much_is_unreadable() -> None:
    bomb = batch(0, bytes(65 << 20), compression='gzip')
    found = sort_out('t', 0, bomb, [(0, 0, 1)])
    assert (found.records, found.unreadable) == ([], [(0, 0)])
