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
import zlib
from collections.abc import Callable, Iterable

from acklog.broker.journal.fields import (
    ACK,
    CAUSE,
    COUNTER,
    DUES,
    FLAG,
    INT,
    LATER,
    NOTHING_LATER,
    OFFSETS,
    PLACE,
    RETURN,
    TEXT,
    UNTIL,
    Field,
    Reader,
    Writer,
    put_later,
    put_offsets,
)
from acklog.core import events as ev
from acklog.core import kept
from acklog.errors import Damaged

FORMAT = 1

_INT = struct.Struct('>q')
_BEGINNING = bytes((FORMAT,))

_EVENTS: dict[int, tuple[Callable[..., ev.Event], tuple[Field, ...]]] = {
    1: (ev.Taken, (INT, INT, TEXT, INT, OFFSETS, INT, LATER)),
    2: (ev.Settled, (OFFSETS,)),
    3: (ev.Skipped, (OFFSETS,)),
    4: (ev.Failed, (OFFSETS, CAUSE, DUES, UNTIL)),
    5: (ev.Died, (OFFSETS, TEXT, FLAG, FLAG)),  # until there was 21
    6: (ev.GivenUp, (INT, OFFSETS, TEXT, FLAG)),
    7: (ev.Returned, (OFFSETS, RETURN)),
    8: (ev.Renewed, (OFFSETS, INT)),
    9: (ev.Deferred, (OFFSETS, INT)),  # until there was 26
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
    20: (ev.ClockStepped, (INT, INT)),  # in STEP entries; nothing has written it with other fields
    21: (ev.Died, (OFFSETS, TEXT, FLAG, FLAG, INT, TEXT)),
    22: (ev.Redriven, (OFFSETS, DUES)),
    23: (ev.Said, (OFFSETS, TEXT)),
    24: (ev.DeadExpired, (OFFSETS,)),
    25: (ev.Answered, (INT, ACK, OFFSETS)),
    26: (ev.Deferred, (OFFSETS, INT, UNTIL)),
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


def _put_taken(out: Writer, event: ev.Taken) -> None:
    """The same as by its fields, in half the time: there is one of these for each acquire."""
    now, lock, member, until, offsets, end, later = event
    text = member.encode()
    out += _TAKEN_HEAD.pack(1, now, lock, len(text))
    out += text
    out += _INT.pack(until)
    put_offsets(out, offsets)
    out += _INT.pack(end)
    if later is None:
        out += NOTHING_LATER
    else:
        put_later(out, later)


_READERS = {number: (make, tuple(field.get for field in fields)) for number, (make, fields) in _EVENTS.items()}


def encode(events: Iterable[ev.Event]) -> bytes:
    """The bytes of `events`, in order."""
    out = Writer(_BEGINNING)
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
    data = Reader(data)
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
