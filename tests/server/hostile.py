"""Requests that are well-formed and mean harm: every API, every version, values from the edges of their types and from
what the server knows, by a seed."""

from __future__ import annotations

import random
import uuid
from typing import Any

from acklog.broker.apis import APIS
from acklog.wire import layout
from acklog.wire.layout import REQUEST, Field, Structure
from acklog.wire.record_batch import build

VERSIONS = {api.key: range(api.versions[0], api.versions[1] + 1) for api in APIS}
EDGES = {
    'int8': [-128, -1, 0, 1, 2, 3, 4, 5, 127],
    'int16': [-32768, -1, 0, 1, 2, 3, 32767],
    'int32': [-(1 << 31), -2, -1, 0, 0, 0, 1, 2, 3, 1000, (1 << 31) - 1],
    'int64': [-(1 << 63), -2, -1, 0, 0, 1, 2, 5, 10**12, (1 << 63) - 1],
    'uint16': [0, 1, 65535],
    'uint32': [0, 1, (1 << 32) - 1],
}
LONG = 70_000  # characters


class Hostile:
    """`names`, `ids`: of topics and groups that exist, so that requests get further than their first check."""

    def __init__(self, seed: int, names: list[str], ids: list[uuid.UUID]) -> None:
        self._random = random.Random(seed)
        self._names = names
        self._ids = ids
        self._long_left = 0
        self.huge = False  # a request may have thousands of elements, and texts of a megabyte

    def request(self, key: int) -> tuple[int, dict[str, Any]]:
        """(version, fields)."""
        version = self._random.choice(VERSIONS[key])
        self._long_left = 3
        return version, self._fields(layout.of_message(key, version, REQUEST), 0)

    def _fields(self, structure: Structure, depth: int) -> dict[str, Any]:
        chosen = {}
        for field in structure.fields + structure.tagged:
            if field.tag is not None and self._random.random() < 0.5:
                continue
            chosen[field.name] = self._value(field, depth, structure.flexible)
        return chosen

    def _value(self, field: Field, depth: int, flexible: bool) -> Any:
        pick = self._random
        if field.nullable and field.kind != 'uuid' and pick.random() < 0.15:
            return None
        if field.is_array:
            count = pick.choice([0, 1, 1, 1, 2, 3])
            if self.huge and pick.random() < 0.1:
                count = pick.choice([50, 3000]) if depth == 0 else 40
            if count > 5:
                self._long_left = 0  # thousands of these would be larger than a request may be
            values = [self._one(field, depth, flexible) for _ in range(min(count, 5))]
            return [pick.choice(values) for _ in range(count)] if count > 5 else values  # duplicates, on purpose
        return self._one(field, depth, flexible)

    def _one(self, field: Field, depth: int, flexible: bool) -> Any:
        pick, kind = self._random, field.kind
        if field.structure is not None:
            return self._fields(field.structure, depth + 1)
        if kind in ('timedelta_i32', 'timedelta_i64'):
            return pick.choice([-(1 << 31), -1, 0, 0, 1, 20, (1 << 31) - 1])
        if kind == 'datetime_i64':
            return pick.choice([0, 1, 10**12])
        if kind in EDGES:
            return pick.choice(EDGES[kind])
        if kind == 'string':
            return self._text(flexible)
        if kind in ('bytes', 'records'):
            return self._bytes()
        if kind == 'uuid':
            return pick.choice([*self._ids, *self._ids, None, uuid.UUID(int=1), uuid.UUID(int=(1 << 128) - 1)])
        if kind == 'bool':
            return pick.random() < 0.5
        if kind == 'float64':
            return pick.choice([0.0, -1.0, 1e308, float('inf'), float('nan')])
        return 0

    def _text(self, flexible: bool) -> str:
        pick = self._random
        if self.huge and flexible and self._long_left and pick.random() < 0.05:
            self._long_left -= 1
            return 'x' * pick.choice([LONG, 1 << 20])
        return pick.choice(
            [
                *self._names * 3,
                '',
                '.',
                '..',
                '__catalog',
                '0',
                '-1',
                'a\nb',
                '\0',
                'ü' * 300,
                '%s',
                '../../x',
                '\U0001f4a9',
            ]
        )

    def _bytes(self) -> bytes:
        pick = self._random
        batch = bytes(build([(None, b'v', [])] * pick.choice([1, 3]), timestamp=pick.choice([-1, 0, 10**12])))
        what = pick.randrange(6)
        if what == 0:
            return b''
        if what == 1:
            return batch[: pick.randrange(len(batch))]
        if what == 2:
            place = pick.randrange(len(batch))
            return batch[:place] + bytes([pick.randrange(256)]) + batch[place + 1 :]
        if what == 3:
            return batch + batch
        return batch
