"""The header that says from when on a record may be delivered: found in batches, and read.

    acklog-deliver-at   milliseconds since 1970 as decimal text (`1767225600000`), or an instant of ISO 8601 with its
                        offset from UTC (`2026-01-01T00:00:00Z`, `2026-01-01T01:00:00.250+01:00`)

Strategy: a batch in which the name does not occur at all has no such record; that is one search. Else the records are
hopped over by their lengths, and only those in which the name occurs are taken apart, since it may also be part of a
key or a value. There may be a million: others have their turn after every few.
"""

from __future__ import annotations

import types
from collections.abc import Generator, Sequence
from datetime import datetime

from acklog.errors import CorruptBatch, ProtocolError
from acklog.wire import compression
from acklog.wire.primitives import EPOCH, MILLISECOND, Buffer, get_varint
from acklog.wire.record_batch import CONTROL, HEADER_SIZE, SMALLEST_RECORD, Header, compression_name

NAME = 'acklog-deliver-at'
AT_A_TIME = 250  # records that are looked at before others have their turn: a millisecond or two
MAX_UNPACKED = 16 << 20  # bytes that a compressed batch may unpack to, if it is not itself larger

_NAME = NAME.encode()
_SIZE = len(_NAME)
_DIGITS = 19  # of the latest
_LATEST = (1 << 63) - 1


class BadInstant(ValueError):
    """A header that names no instant, in words."""


def text(due: int) -> bytes:
    """What the header holds for an instant (ms)."""
    return str(due).encode()


def instant(value: bytes | None) -> int:
    """The instant (ms) that the header's value names. Raises BadInstant."""
    due = int(value) if value is not None and value.isdigit() and len(value) <= _DIGITS else _iso(value)
    if not 0 <= due <= _LATEST:
        raise BadInstant(f'{NAME} is {value!r}, which is before 1970 or too far ahead')
    return due


def _iso(value: bytes | None) -> int:
    try:
        when = datetime.fromisoformat((value or b'').decode('ascii'))
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise BadInstant(
            f'{NAME} is {value!r}; it takes milliseconds since 1970 as decimal text, or an instant of ISO 8601 with '
            'its offset from UTC, such as 2026-01-01T00:00:00Z'
        )
    return -((EPOCH - when) // MILLISECOND)  # a part of a millisecond counts as one: never early


@types.coroutine
def instants(data: Buffer, position: int, header: Header) -> Generator[None, None, Sequence[tuple[int, int]]]:
    """(offset delta, instant) of the records of one whole batch that carry the header, in order of offsets. To be
    awaited: `data` must stay unchanged meanwhile.

    Raises BadInstant; CorruptBatch when it is broken or unpacks to too much; CompressionUnavailable.
    """
    if header.attributes & CONTROL:
        return ()
    packed = memoryview(data)[position + HEADER_SIZE : position + header.size]
    most = max(MAX_UNPACKED, 2 * header.size)
    body = bytes(compression.decompress(compression_name(header.attributes), packed, most))
    if _NAME not in body:
        return ()
    try:
        return (yield from _walk(body, header))
    except (IndexError, ProtocolError) as error:
        raise CorruptBatch(f'a broken record in a batch: {error}') from None


def _walk(body: bytes, header: Header) -> Generator[None, None, list[tuple[int, int]]]:
    found: list[tuple[int, int]] = []
    position, last = 0, -1
    candidate = body.find(_NAME)
    for number in range(header.record_count):
        if number and number % AT_A_TIME == 0:
            yield
        size, start = get_varint(body, position)
        position = start + size
        if size < SMALLEST_RECORD - 1 or position > len(body):  # or there would be one for each byte
            raise ProtocolError(f'a record of {size} bytes')
        if candidate < position:
            delta, value = _look(body, start, position)
            if value is not None:
                if not last < delta <= header.last_offset_delta:
                    raise ProtocolError(f'offset delta {delta} behind {last}')
                found.append((delta, instant(value[0])))
                last = delta
            candidate = body.find(_NAME, position)
            if candidate < 0:
                break
    return found


def _look(body: bytes, position: int, stop: int) -> tuple[int, tuple[bytes | None] | None]:
    """Offset delta of the record from `position`, behind its length, to `stop`, and the header's value, if it has that
    header."""
    _, position = get_varint(body, position + 1)  # the difference in time
    delta, position = get_varint(body, position)
    for _ in range(2):  # key and value
        size, position = get_varint(body, position)
        if size > 0:
            position += size
    count, position = get_varint(body, position)
    if not 0 <= 2 * count <= stop - position:  # or the rest of the batch would be gone through for each record
        raise ProtocolError(f'{count} headers in {stop - position} bytes')
    value: tuple[bytes | None] | None = None
    for _ in range(count):
        size, start = get_varint(body, position)
        length, position = get_varint(body, start + size if size > 0 else start)
        end = position + length if length > 0 else position
        if size == _SIZE and body.startswith(_NAME, start):
            if value is not None:
                raise BadInstant(f'a record has {NAME} twice')
            value = (body[position:end] if length >= 0 else None,)
        position = end
    return delta, value
