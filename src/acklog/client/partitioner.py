"""Which partition a record goes to: the same one as with Kafka's Java client, so that keys stay together across
clients.

A record with a key goes to murmur2(key) modulo the number of partitions; one without sticks to a partition until its
batch is sent, then to another at random (KIP-480), which makes batches large.
"""

from __future__ import annotations

import random
from collections.abc import Collection

from acklog.wire.murmur2 import murmur2 as murmur2
from acklog.wire.murmur2 import partition_of as partition_of


class Sticky:
    """Partitions for records without a key: one until `move`."""

    def __init__(self) -> None:
        self._current: dict[str, int] = {}

    def partition(self, topic: str, indexes: Collection[int]) -> int:
        """The partition that records of this topic stick to at the moment, one of `indexes`."""
        current = self._current.get(topic)
        if current is None:
            current = self._current[topic] = random.choice(list(indexes))
        return current

    def move(self, topic: str, index: int) -> None:
        """The batch for this partition was sent: stick to another one."""
        if self._current.get(topic) == index:
            del self._current[topic]
