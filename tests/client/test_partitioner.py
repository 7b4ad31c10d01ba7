"""Keys go where Kafka's Java client puts them."""

from __future__ import annotations

import pytest

from acklog.client.partitioner import Sticky, murmur2, partition_of


# The values that Kafka's own test of its hash has (UtilsTest.testMurmur2), as unsigned numbers.
@pytest.mark.parametrize(
    ('data', 'hashed'),
    [
        (b'21', -973932308),
        (b'foobar', -790332482),
        (b'a-little-bit-long-string', -985981536),
        (b'a-little-bit-longer-string', -1486304829),
        (b'lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971),
        (b'abc', 479470107),
    ],
)
def test_murmur2(data: bytes, hashed: int) -> None:
    assert murmur2(data) == hashed & 0xFFFFFFFF


def test_a_key_has_one_partition() -> None:
    assert {partition_of(b'key', 7) for _ in range(3)} == {(murmur2(b'key') & 0x7FFFFFFF) % 7}


def test_without_a_key_records_stick_until_their_batch_is_sent() -> None:
    sticky = Sticky()
    first = sticky.partition('t', [0, 1, 2])
    assert {sticky.partition('t', [0, 1, 2]) for _ in range(20)} == {first}
    seen = set()
    for _ in range(100):
        sticky.move('t', sticky.partition('t', [0, 1, 2]))
        seen.add(sticky.partition('t', [0, 1, 2]))
    assert seen == {0, 1, 2}
