"""The bytes of a share partition's events, for the journal and its snapshots.

    byte     format of what follows: 1
    events, each:
      byte   which event, a number of `_EVENTS`
      fields of that event, in the order of its class in `core/events.py` or `core/kept.py`:
        int      8 bytes, big-endian, signed: offsets, numbers and instants (ms)
        text     4 bytes length, UTF-8
        choice   1 byte: a flag, a number of an enumeration, or an index into a list of words
        offsets  1 byte form, then   0: one offset (8)
                                     1: a run: first (8), how many (4)
                                     2: length (4), a 64-bit Roaring bitmap in the portable format of its specification
                                     3: how far back (1, from 0) among the large ones before, offsets: those in which
                                        they differ. Large: of form 3, or of form 2 with at least 4,096 bytes, and not
                                        themselves a difference; the last 4 are remembered
        dues     1 byte form, then   0: nothing
                                     1: one instant (8)
                                     2: length (4), one instant for each offset: little-endian int64s, through zlib
        later    offsets and dues; no offsets (form 2, length 0): nothing

Several of these one behind the other are not one: whoever joins them keeps them apart. A number is never used for
another event or layout again. An event that gets more fields gets a new number, and its old one stays readable; a
change that older versions must not overlook raises the format, which they refuse. The CRC of the journal's batches
guards the bytes, so anything that does not fit here is Damaged.

Strategy: a table of events, each a number and a reader and a writer per field; the fields of the frequent events are
few and fixed in size, so that recording an acquire or an accept costs about 2 us.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core import kept
from acklog.core.due_times import Dues
from acklog.core.kinds import Ack, Cause, Return, Until
from acklog.errors import Damaged

FORMAT = 1
LARGE = 4096  # bytes of a set from which it is compared with others
REMEMBERED = 4

_INT = struct.Struct('>q')
_LENGTH = struct.Struct('>I')
_ONE = struct.Struct('>Bq')
_RUN = struct.Struct('>BqI')
_LONG = struct.Struct('>BI')
_LONGEST_RUN = 0xFFFF_FFFF

_NONE, _SINGLE, _MANY = 0, 1, 2
_BEGINNING = bytes((FORMAT,))
_NOTHING_LATER = _LONG.pack(2, 0)


class Field(NamedTuple):
    """`put` appends a value; `get(data, position)` gives it back and where it ended."""

    put: Callable[[_Writer, Any], None]
    get: Callable[[_Reader, int], tuple[Any, int]]


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


class _Writer(bytearray):
    """Bytes that become more, and the last large sets in them, once there is one."""

    large: list[BitMap64] | None = None


class _Reader(bytes):
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


def _put_offsets(out: _Writer, value: BitMap64) -> None:
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


def _get_offsets(data: _Reader, position: int) -> tuple[BitMap64, int]:
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


def _put_later(out: _Writer, value: tuple[BitMap64, Dues] | None) -> None:
    if value is None:
        out += _NOTHING_LATER
    else:
        _put_offsets(out, value[0])
        _put_dues(out, value[1])


def _get_later(data: _Reader, position: int) -> tuple[tuple[BitMap64, Dues] | None, int]:
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
OFFSETS = Field(_put_offsets, _get_offsets)
DUES = Field(_put_dues, _get_dues)
LATER = Field(_put_later, _get_later)

_EVENTS: dict[int, tuple[Callable[..., ev.Event], tuple[Field, ...]]] = {
    1: (ev.Taken, (INT, INT, TEXT, INT, OFFSETS, INT, LATER)),
    2: (ev.Settled, (OFFSETS,)),
    3: (ev.Skipped, (OFFSETS,)),
    4: (ev.Failed, (OFFSETS, CAUSE, DUES, UNTIL)),
    5: (ev.Died, (OFFSETS, TEXT, FLAG, FLAG)),  # until there was 21
    6: (ev.GivenUp, (INT, OFFSETS, TEXT, FLAG)),
    7: (ev.Returned, (OFFSETS, RETURN)),
    8: (ev.Renewed, (OFFSETS, INT)),
    9: (ev.Deferred, (OFFSETS, INT)),
    10: (ev.Pended, (TEXT, ACK, OFFSETS)),
    11: (ev.DeadLettersWritten, (OFFSETS,)),
    12: (ev.Redriven, (OFFSETS,)),  # until there was 22
    13: (ev.Discarded, (OFFSETS,)),
    14: (ev.Moved, (INT, OFFSETS, INT)),
    15: (ev.Replayed, (OFFSETS,)),
    16: (ev.Sought, (INT, INT)),
    17: (ev.LogStarted, (INT,)),
    18: (ev.Cut, (INT,)),
    19: (ev.Restarted, (INT,)),
    20: (ev.ClockStepped, (INT,)),
    21: (ev.Died, (OFFSETS, TEXT, FLAG, FLAG, INT, TEXT)),
    22: (ev.Redriven, (OFFSETS, DUES)),
    23: (ev.Said, (OFFSETS, TEXT)),
    24: (ev.DeadExpired, (OFFSETS,)),
    25: (ev.Answered, (INT, ACK, OFFSETS)),
    64: (kept.Began, (INT, INT, INT, INT)),
    65: (kept.Kept, (PLACE, OFFSETS, TEXT)),
    66: (kept.KeptWaiting, (OFFSETS, DUES, UNTIL)),
    67: (kept.KeptLock, (INT, TEXT, INT, OFFSETS)),  # until there was 70
    68: (kept.KeptPending, (TEXT, ACK, OFFSETS)),
    69: (kept.KeptCount, (COUNTER, INT, OFFSETS)),
    70: (kept.KeptLock, (INT, TEXT, INT, OFFSETS, INT)),
    71: (kept.KeptDeaths, (OFFSETS, DUES, TEXT)),
    72: (kept.KeptCause, (CAUSE, OFFSETS)),
    73: (kept.KeptTotals, (INT, INT)),
}
_WRITERS = {make: (number, tuple(field.put for field in fields)) for number, (make, fields) in _EVENTS.items()}
_TAKEN_HEAD = struct.Struct('>BqqI')


def _put_taken(out: _Writer, event: ev.Taken) -> None:
    """The same as by its fields, in half the time: there is one of these for each acquire."""
    now, lock, member, until, offsets, end, later = event
    text = member.encode()
    out += _TAKEN_HEAD.pack(1, now, lock, len(text))
    out += text
    out += _INT.pack(until)
    _put_offsets(out, offsets)
    out += _INT.pack(end)
    if later is None:
        out += _NOTHING_LATER
    else:
        _put_later(out, later)


_READERS = {number: (make, tuple(field.get for field in fields)) for number, (make, fields) in _EVENTS.items()}


def encode(events: Iterable[ev.Event]) -> bytes:
    """The bytes of `events`, in order."""
    out = _Writer(_BEGINNING)
    for event in events:
        kind = type(event)
        if kind is ev.Taken:
            _put_taken(out, event)  # type: ignore[arg-type]
            continue
        number, puts = _WRITERS[kind]
        out.append(number)
        for put, value in zip(puts, event, strict=True):
            put(out, value)
    return bytes(out)


def decode(data: bytes) -> list[ev.Event]:
    """What `encode` was given. Raises Damaged."""
    events: list[ev.Event] = []
    data = _Reader(data)
    data.large = []
    position = 1
    try:
        if data[0] != FORMAT:
            raise ValueError(f'format {data[0]}; this version of acklog reads {FORMAT}')
        while position < len(data):
            make, gets = _READERS[data[position]]
            position += 1
            values = []
            for get in gets:
                value, position = get(data, position)
                values.append(value)
            events.append(make(*values))
    except (ValueError, IndexError, KeyError, struct.error, zlib.error, OverflowError) as error:
        raise Damaged(f'events of a share partition, {len(data)} bytes, at byte {position}: {error}') from error
    return events
