"""The fields of which a share partition's events are made: how each is written and read. `event_codec` says which
layout is whose."""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

from pyroaring import BitMap64

from acklog.core.due_times import Dues
from acklog.core.kinds import Ack, Cause, Return, Until

LARGE = 4096  # bytes of a set from which it is compared with others
REMEMBERED = 4

_INT = struct.Struct('>q')
_LENGTH = struct.Struct('>I')
_ONE = struct.Struct('>Bq')
_RUN = struct.Struct('>BqI')
_LONG = struct.Struct('>BI')
_LONGEST_RUN = 0xFFFF_FFFF

_NONE, _SINGLE, _MANY = 0, 1, 2
NOTHING_LATER = _LONG.pack(2, 0)


class Field(NamedTuple):
    """`put` appends a value; `get(data, position)` gives it back and where it ended."""

    put: Callable[[Writer, Any], None]
    get: Callable[[Reader, int], tuple[Any, int]]


def _put_int(out: bytearray, value: int) -> None:
    out += _INT.pack(value)


def _get_int(data: bytes, position: int) -> tuple[int, int]:
    return _INT.unpack_from(data, position)[0], position + 8


def _put_text(out: bytearray, value: str) -> None:
    text = value.encode()
    out += _LENGTH.pack(len(text))
    out += text


def _get_block(data: bytes, position: int) -> tuple[bytes, int]:
    start = position + 4
    end = start + _LENGTH.unpack_from(data, position)[0]
    if end > len(data):
        raise ValueError(f'{end - len(data)} bytes are missing')
    return data[start:end], end


def _get_text(data: bytes, position: int) -> tuple[str, int]:
    text, end = _get_block(data, position)
    return text.decode(), end


def _choice(*choices: Any) -> Field:
    """One byte that stands for one of `choices`, by place."""

    def get(data: bytes, position: int) -> tuple[Any, int]:
        return choices[data[position]], position + 1

    def put(out: bytearray, value: Any) -> None:
        out.append(choices.index(value))

    return Field(put, get)


class Writer(bytearray):
    """Bytes that become more, and the last large sets in them, once there is one."""

    large: list[BitMap64] | None = None


class Reader(bytes):
    """Bytes that are read, and the last large sets that were."""

    large: list[BitMap64]


def _remember(large: list[BitMap64], offsets: BitMap64) -> None:
    large.insert(0, offsets)
    del large[REMEMBERED:]


def _compact(offsets: BitMap64) -> bytes:
    compact = offsets.copy()
    compact.run_optimize()
    return bytes(compact.serialize())


def _put_run(out: bytearray, value: BitMap64) -> bool:
    """None, one or a run of them; False if it is none of these."""
    count = len(value)
    if count == 0:
        out += _LONG.pack(2, 0)
        return True
    first = value.min()
    if count == 1:
        out += _ONE.pack(0, first)
        return True
    if value.max() - first + 1 != count or count > _LONGEST_RUN:
        return False
    out += _RUN.pack(1, first, count)
    return True


def _put_set(out: bytearray, value: BitMap64, data: bytes | None = None) -> None:
    if data is None:
        data = _compact(value)
    out += _LONG.pack(2, len(data))
    out += data


def put_offsets(out: Writer, value: BitMap64) -> None:
    """A large set is often nearly the same as one before, such as the available ones and those delivered once."""
    if _put_run(out, value):
        return
    data = _compact(value)
    if len(data) < LARGE:
        _put_set(out, value, data)
        return
    if out.large is None:
        out.large = []
    differences = [value ^ other for other in out.large]
    sizes = [len(_compact(difference)) for difference in differences]
    if sizes and min(sizes) < len(data) // 2:
        back = sizes.index(min(sizes))
        out += bytes((3, back))
        if not _put_run(out, differences[back]):
            _put_set(out, differences[back])
    else:
        _put_set(out, value, data)
    _remember(out.large, value)


def _get_offsets(data: Reader, position: int) -> tuple[BitMap64, int]:
    form = data[position]
    if form == 3:
        offsets, end = _get_set(data, position + 2)
        offsets ^= data.large[data[position + 1]]
    else:
        offsets, end = _get_set(data, position)
        if form != 2 or end - position - _LONG.size < LARGE:
            return offsets, end
    _remember(data.large, offsets.copy())
    return offsets, end


def _get_set(data: bytes, position: int) -> tuple[BitMap64, int]:
    form = data[position]
    result = BitMap64()
    if form == 0:
        result.add(_ONE.unpack_from(data, position)[1])
        return result, position + _ONE.size
    if form == 1:
        _, first, count = _RUN.unpack_from(data, position)
        result.add_range(first, first + count)
        return result, position + _RUN.size
    if form != 2:
        raise ValueError(f'offsets of form {form}')
    block, end = _get_block(data, position + 1)
    return (BitMap64.deserialize(block) if block else result), end


def _put_dues(out: bytearray, value: Dues | None) -> None:
    if value is None:
        out.append(_NONE)
    elif isinstance(value, int):
        out += _ONE.pack(_SINGLE, value)
    else:
        packed = zlib.compress(_little(value).tobytes(), 1)
        out += _LONG.pack(_MANY, len(packed))
        out += packed


def _get_dues(data: bytes, position: int) -> tuple[Dues | None, int]:
    form = data[position]
    if form == _NONE:
        return None, position + 1
    if form == _SINGLE:
        return _get_int(data, position + 1)
    if form != _MANY:
        raise ValueError(f'dues of form {form}')
    packed, end = _get_block(data, position + 1)
    return _little(array('q', zlib.decompress(packed))), end


def _little(values: array[int]) -> array[int]:
    """From or to little-endian."""
    if sys.byteorder == 'big':
        values = values[:]
        values.byteswap()
    return values


def put_later(out: Writer, value: tuple[BitMap64, Dues] | None) -> None:
    if value is None:
        out += NOTHING_LATER
    else:
        put_offsets(out, value[0])
        _put_dues(out, value[1])


def _get_later(data: Reader, position: int) -> tuple[tuple[BitMap64, Dues] | None, int]:
    offsets, position = _get_offsets(data, position)
    if not offsets:
        return None, position
    dues, position = _get_dues(data, position)
    if dues is None:
        raise ValueError('no times for what is published for later')
    return (offsets, dues), position


INT = Field(_put_int, _get_int)
TEXT = Field(_put_text, _get_text)
FLAG = _choice(False, True)
UNTIL = _choice(*Until)
ACK = _choice(*Ack)
CAUSE = _choice(*Cause)
RETURN = _choice(*Return)
PLACE = _choice('available', 'dead', 'dying')
COUNTER = _choice('deliveries', 'attempts', 'leaves')
OFFSETS = Field(put_offsets, _get_offsets)
DUES = Field(_put_dues, _get_dues)
LATER = Field(put_later, _get_later)
