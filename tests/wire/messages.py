"""Generated messages of every API and version, as the dicts that `acklog.wire.cold` takes, and kio's view of them."""

from __future__ import annotations

import functools
import io
from typing import Any

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from acklog.wire import cold, layout
from acklog.wire.frame import FIRST_FLEXIBLE
from acklog.wire.layout import REQUEST, RESPONSE, Field, Structure
from acklog.wire.structure_writer import structure_writer
from acklog.wire.writer import CompactWriter

API_KEYS = sorted(FIRST_FLEXIBLE)
UNKNOWN_TAG = 12_345

texts = st.text(st.characters(codec='utf-8', exclude_categories=['Cs']), max_size=9)
uuids = st.uuids() | st.none()


def integers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high)


# Durations and times in ms, within what kio can say: a datetime ends with the year 9999.
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    'bool': st.booleans(),
    'int8': integers(8),
    'int16': integers(16),
    'int32': integers(32),
    'int64': integers(64),
    'uint8': integers(8, signed=False),
    'uint16': integers(16, signed=False),
    'uint32': integers(32, signed=False),
    'uint64': integers(64, signed=False),
    'float64': st.floats(allow_nan=False, allow_infinity=False),
    'error_code': st.sampled_from([int(code) for code in ErrorCode]),
    'uuid': uuids,
    'string': texts,
    'bytes': st.binary(max_size=9),
    'records': st.binary(max_size=9),
    'timedelta_i32': integers(32),
    'timedelta_i64': st.integers(-(10**12), 10**12),
    'datetime_i64': st.integers(0, 253_402_300_799).map(lambda seconds: seconds * 1000),
}


@functools.cache
def fields_of(structure: Structure) -> st.SearchStrategy[dict[str, Any]]:
    """Every field of a structure with a value that kio can say too."""
    return st.fixed_dictionaries({field.name: _values(field) for field in structure.fields + structure.tagged})


def _values(field: Field) -> st.SearchStrategy[Any]:
    values = _VALUES[field.kind] if field.structure is None else fields_of(field.structure)
    if field.is_array:
        values = st.lists(values, max_size=3)
    return values | st.none() if field.nullable and field.kind != 'uuid' else values


@st.composite
def messages(draw: st.DrawFn, api_key: int, *, flexible: bool = False) -> tuple[int, str, dict[str, Any]]:
    """(version, direction, fields) of any version of an API; of a flexible one only, if asked for."""
    known = layout.versions(api_key)
    version = draw(st.integers(max(known[0], FIRST_FLEXIBLE[api_key]) if flexible else known[0], known[-1]))
    direction = draw(st.sampled_from([REQUEST, RESPONSE]))
    return version, direction, draw(fields_of(layout.of_message(api_key, version, direction)))


def encode(api_key: int, version: int, direction: str, fields: dict[str, Any]) -> bytes:
    return (cold.encode_request if direction == REQUEST else cold.encode_response)(api_key, version, fields)


def decode(api_key: int, version: int, direction: str, body: bytes) -> Any:
    return (cold.decode_request if direction == REQUEST else cold.decode_response)(api_key, version, body)


def kio_decode(api_key: int, version: int, direction: str, body: bytes) -> Any:
    """What kio's own reader makes of it, all of it."""
    entity, size = entity_reader(layout.of_message(api_key, version, direction).entity)(body, 0)
    assert size == len(body)
    return entity


def kio_encode(entity: Any) -> bytes:
    with io.BytesIO() as out:
        entity_writer(type(entity))(out, entity)
        return out.getvalue()


class StrangeWriter(CompactWriter):
    """Ends every structure with tagged fields that nobody knows."""

    def tags(self) -> None:
        self.tagged([])

    def tagged(self, fields: Any) -> None:
        super().tagged([*fields, (UNKNOWN_TAG, b'strange'), (UNKNOWN_TAG + 1, b'')])


def encode_strangely(api_key: int, version: int, direction: str, fields: dict[str, Any]) -> bytes:
    """A message whose structures all have unknown tagged fields."""
    message = StrangeWriter()
    for _ in structure_writer(layout.of_message(api_key, version, direction))(message, fields):
        pass
    return bytes(message.out)


def peak_of(call: Any) -> tuple[Any, int]:
    """(result, bytes allocated at most meanwhile)."""
    import tracemalloc

    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
