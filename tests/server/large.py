"""Clients that publish large frames and small ones, in all the ways there are, and remember what was confirmed."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

from tests.server.raw import FETCH, PRODUCE, Closed, Raw
from tests.server.traffic import FETCH_VERSION, PRODUCE_VERSION, fetch

from acklog.wire.record_batch import build, records
from acklog.wire.stream import LARGEST_CHUNK

PARTITIONS = 3
SIZES = [10, LARGEST_CHUNK - 200, LARGEST_CHUNK, 70_000, 150_000, 280_000, 300_000, 600_000, 1_000_000, 1_047_000]


class Sender:
    """One client after another that publish values which nobody else does, and remember what was confirmed."""

    def __init__(self, address: str, seed: int) -> None:
        self.address, self.pick, self.seed = address, random.Random(seed), seed
        self.confirmed: list[bytes] = []
        self._count = 0

    async def run(self, until: float) -> None:
        while asyncio.get_running_loop().time() < until:
            raw = await Raw.connect(self.address)
            with contextlib.suppress(Closed, TimeoutError):
                for _ in range(self.pick.randrange(1, 8)):
                    await self.pick.choice([self._publish, self._publish, self._pipeline, self._break_off])(raw)
            if self.pick.random() < 0.3:
                raw.reset()
            raw.close()

    def _request(self, size: int) -> tuple[list[bytes], dict[str, Any]]:
        values, parts = [], []
        indexes = self.pick.sample(range(PARTITIONS), self.pick.choice([1, 1, PARTITIONS]))
        for index in indexes:
            self._count += 1
            name = b'%d-%d;' % (self.seed, self._count)
            value = (name * (size // len(indexes) // len(name) + 1))[: max(size // len(indexes), len(name))]
            values.append(value)
            parts.append({'index': index, 'records': bytes(build([(None, value)], timestamp=1_700_000_000_000))})
        acks = self.pick.choice([0, 1, -1, -1])
        topics = [{'name': 't', 'partition_data': parts}]
        return values, {'acks': acks, 'timeout': 1000, 'topic_data': topics}

    async def _publish(self, raw: Raw) -> None:
        await self._pipelined(raw, 1)

    async def _pipeline(self, raw: Raw) -> None:
        await self._pipelined(raw, self.pick.randrange(2, 6))

    async def _pipelined(self, raw: Raw, count: int) -> None:
        sent = [self._request(self.pick.choice(SIZES)) for _ in range(count)]
        await raw.send(b''.join(raw.frame(PRODUCE, PRODUCE_VERSION, fields) for _, fields in sent))
        for values, fields in sent:
            if fields['acks'] != 0:
                answer = await raw.answer(PRODUCE, PRODUCE_VERSION)
                codes = [part['error_code'] for part in answer['responses'][0]['partition_responses']]
                self.confirmed += [value for value, code in zip(values, codes, strict=True) if code == 0]

    async def _break_off(self, raw: Raw) -> None:
        frame = raw.frame(PRODUCE, PRODUCE_VERSION, self._request(self.pick.choice(SIZES))[1])
        await raw.send(frame[: self.pick.randrange(len(frame))])
        raise Closed


async def stored(raw: Raw) -> list[bytes]:
    values = []
    for index in range(PARTITIONS):
        offset = 0
        while True:
            fields = fetch('t', offset, index=index, max_bytes=1 << 22)
            part = (await raw.call(FETCH, FETCH_VERSION, fields))['responses'][0]['partitions'][0]
            assert part['error_code'] == 0
            if not part['records']:
                break
            for record in records(part['records']):
                assert record.value is not None
                values.append(record.value)
                offset = record.offset + 1
    return values


def whole(value: bytes) -> bool:
    """It is what some sender made, from its beginning to its end."""
    name = value[: value.index(b';') + 1]
    return value == (name * (len(value) // len(name) + 1))[: len(value)]


def check(values: list[bytes], senders: list[Sender]) -> None:
    """Of what is stored: every value is whole and there once, and all that was confirmed is among them."""
    assert all(map(whole, values))
    names = {value[: value.index(b';')] for value in values}
    assert len(names) == len(values)
    confirmed = [value[: value.index(b';')] for sender in senders for value in sender.confirmed]
    assert not [name for name in confirmed if name not in names]
    assert len(confirmed) > 10
