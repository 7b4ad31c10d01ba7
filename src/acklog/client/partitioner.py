"""Which partition a record goes to: the same one as with Kafka's Java client, so that keys stay together across
clients.

A record with a key goes to murmur2(key) modulo the number of partitions; one without sticks to a partition until its
batch is sent, then to another at random (KIP-480), which makes batches large.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

_MASK = 0xFFFFFFFF
_M = 0x5BD1E995
_SEED = 0x9747B28C


def murmur2(data: bytes) -> int:
    """The 32-bit MurmurHash2 with Kafka's seed, unsigned."""
    length = len(data)
    hashed = _SEED ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        k = int.from_bytes(data[position : position + 4], 'little') * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        hashed = hashed * _M & _MASK ^ k
    rest = data[whole:]
    if rest:
        hashed = (hashed ^ int.from_bytes(rest, 'little')) * _M & _MASK
    hashed = (hashed ^ hashed >> 13) * _M & _MASK
    return hashed ^ hashed >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key, 0 to `partitions` - 1."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class Sticky:
    """Partitions for records without a key: one until `move`."""

    def __init__(self) -> None:
        self._current: dict[str, int] = {}

    def partition(self, topic: str, indexes: Sequence[int]) -> int:
        """The partition that records of this topic stick to at the moment, one of `indexes`."""
        current = self._current.get(topic)
        if current is None:
            current = self._current[topic] = random.choice(indexes)
        return current

    def move(self, topic: str, index: int) -> None:
        """The batch for this partition was sent: stick to another one."""
        if self._current.get(topic) == index:
            del self._current[topic]
