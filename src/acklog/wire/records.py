"""The records inside a batch v2, unpacked: how one is written and read.

A record is a varint with its length, attributes (one byte, unused), and then varints and bytes: timestamp and offset as
differences to the batch's, key, value, headers. Lengths of -1 stand for null. Times are milliseconds since 1970.
"""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from acklog.errors import CorruptBatch, ProtocolError
from acklog.wire.primitives import get_varint, put_varint


class Record(NamedTuple):
    """One record as stored. `timestamp`: ms; `headers`: in order, keys may repeat."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class NewRecord(NamedTuple):
    """One record to be stored. `timestamp`: ms, None for the batch's. A plain tuple of its first fields does too."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None


_BEYOND = 1 << 63  # ms: a time is an int64
_LAST_DELTA = (1 << 31) - 1  # of an offset, which is an int32

Bare = tuple[bytes | None, bytes | None]  # key and value
Plain = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]], int | None]  # as `NewRecord`


def pack(records: Iterable[NewRecord | Plain | Bare | bytes], timestamp: int) -> tuple[bytes, int, int]:
    """(bytes, number of records, latest timestamp) of records one after the other.

    `timestamp`: the batch's, and that of the records that have none; bytes are a value without a key. Raises
    ValueError without records.
    """
    parts: list[bytes] = []
    deltas = _varints()
    heads: dict[tuple[int, int], tuple[bytes, bytes]] = {}  # of what has a value only, by its length and the delta's
    count, latest, before, since = 0, None, timestamp, b'\0'
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    for record in records:
        delta = deltas[count] if count < _SHORT else varint(count)
        if type(record) is bytes:
            key, value, headers, when = None, record, (), timestamp
        else:
            full: Plain = record if len(record) == 4 else NewRecord(*record)  # type: ignore[assignment]
            key, value, headers, own = full
            when = timestamp if own is None else own
        if when != before:
            before, since = when, varint(when - timestamp)
            heads.clear()
        if key is None and value is not None and not headers:
            lengths = len(value), len(delta)
            head = heads.get(lengths)
            if head is None:
                head = heads[lengths] = _head(since, *lengths)
            parts += (head[0], delta, head[1], value, b'\0')
        else:
            _put_record(parts, since, delta, key, value, headers)
        if latest is None or when > latest:
            latest = when
        count += 1
    if latest is None:
        raise ValueError('a batch needs a record')
    return b''.join(parts), count, latest


def _head(since: bytes, length: int, delta: int) -> tuple[bytes, bytes]:
    """What stands before and behind the offset's difference, of `delta` bytes, in a record that has a value only."""
    behind = b'\1' + varint(length)  # no key
    return varint(1 + len(since) + delta + len(behind) + length + 1) + b'\0' + since, behind


def _put_record(
    parts: list[bytes],
    timestamp_delta: bytes,
    offset_delta: bytes,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> None:
    key_size = b'\1' if key is None else varint(len(key))  # -1
    value_size = b'\1' if value is None else varint(len(value))
    behind = _headers(headers) if headers else b'\0'
    key, value = key or b'', value or b''
    size = 1 + len(timestamp_delta) + len(offset_delta) + len(key_size) + len(key) + len(value_size) + len(value)
    parts += (
        varint(size + len(behind)),
        b'\0',  # attributes, unused
        timestamp_delta,
        offset_delta,
        key_size,
        key,
        value_size,
        value,
        behind,
    )


def _headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    out = bytearray(varint(len(headers)))
    for name, content in headers:
        encoded = name.encode()
        out += varint(len(encoded)) + encoded
        out += b'\1' if content is None else varint(len(content)) + content
    return bytes(out)


_SHORT = 1 << 13  # those below take at most two bytes


@functools.cache
def _varints() -> list[bytes]:
    """The varints of 0 to _SHORT - 1."""
    return [bytes((value << 1,)) for value in range(64)] + [
        bytes((value << 1 & 0x7F | 0x80, value >> 6)) for value in range(64, _SHORT)
    ]


def varint(value: int) -> bytes:
    """A zigzag varint."""
    if 0 <= value < _SHORT:
        return _varints()[value]
    out = bytearray()
    put_varint(out, value)
    return bytes(out)


Row = tuple[int, int, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]
"""A record as a plain tuple of `Record`'s fields."""


def rows(
    body: bytes, count: int, base_offset: int, base_timestamp: int, fixed_timestamp: int | None = None
) -> Iterator[Row]:
    """The `count` records that `body` begins with. `fixed_timestamp`: that of all of them (LogAppendTime).

    Raises CorruptBatch."""
    position = 0
    try:
        for _ in range(count):
            row, position = _read_record(body, position, base_offset, base_timestamp, fixed_timestamp)
            yield row
    except (IndexError, UnicodeDecodeError, ProtocolError) as error:
        raise CorruptBatch(f'a broken record in the batch at offset {base_offset}: {error}') from None


def rows_at(
    body: bytes,
    count: int,
    base_offset: int,
    base_timestamp: int,
    fixed_timestamp: int | None,
    wanted: Container[int],
) -> Iterator[Row | None]:
    """As `rows`, with None in the place of each record whose offset is not `wanted` when it is reached: of these only
    length and offset are read, for there may be a million."""
    position, last = 0, len(body)
    try:
        for _ in range(count):
            size, start = body[position], position + 1
            if size < 0x80 and not size & 1:  # of one byte, as mostly: a call would cost more than all the rest
                end = start + (size >> 1)
            else:
                size, start = get_varint(body, position)
                end = start + size
            if end < start or end > last:
                raise ProtocolError(f'a record of {end - start} bytes')
            at = start + 2 if body[start + 1] < 0x80 else get_varint(body, start + 1)[1]
            delta = body[at]
            if delta > 0x7F:
                if (second := body[at + 1]) < 0x80:
                    delta = delta & 0x7F | second << 7
                elif (third := body[at + 2]) < 0x80:
                    delta = delta & 0x7F | (second & 0x7F) << 7 | third << 14
                else:
                    delta = 2 * get_varint(body, at)[0]
            if base_offset + (delta >> 1) in wanted:
                row, position = _read_record(body, position, base_offset, base_timestamp, fixed_timestamp)
                yield row
            else:
                position = end
                yield None
    except (IndexError, UnicodeDecodeError, ProtocolError) as error:
        raise CorruptBatch(f'a broken record in the batch at offset {base_offset}: {error}') from None


def _read_record(
    body: bytes, position: int, base_offset: int, base_timestamp: int, fixed: int | None
) -> tuple[Row, int]:
    size, position = get_varint(body, position)
    end = position + size
    if size < 0 or end > len(body):
        raise ProtocolError(f'a record of {size} bytes')
    delta = body[position + 1]
    if delta < 0x80:  # one byte, as nearly always: a call would cost more than the rest
        timestamp_delta, position = delta >> 1 ^ -(delta & 1), position + 2
    else:
        timestamp_delta, position = get_varint(body, position + 1)
    offset_delta, position = get_varint(body, position)
    length = body[position]
    if length == 1:
        key, position = None, position + 1
    else:
        key, position = _get_bytes(body, position, end)
    value, position = _get_bytes(body, position, end)
    headers: Sequence[tuple[str, bytes | None]] = ()
    if position + 1 != end or body[position]:
        headers, position = _get_headers(body, position, end)
        if position != end:
            raise ProtocolError(f'{end - position} bytes too many in a record')
    timestamp = base_timestamp + timestamp_delta if fixed is None else fixed
    if not (-_BEYOND <= timestamp < _BEYOND and 0 <= offset_delta <= _LAST_DELTA):  # no answer could say it
        raise ProtocolError(f'a record at {timestamp} ms with offset delta {offset_delta}')
    return (base_offset + offset_delta, timestamp, key, value, headers), end


def _get_headers(body: bytes, position: int, end: int) -> tuple[Sequence[tuple[str, bytes | None]], int]:
    count, position = get_varint(body, position)
    if not 0 <= count <= end - position:
        raise ProtocolError(f'{count} headers in {end - position} bytes')
    headers = []
    for _ in range(count):
        name, position = _get_bytes(body, position, end)
        content, position = _get_bytes(body, position, end)
        if name is None:
            raise ProtocolError('a header without a name')
        headers.append((name.decode(errors='replace'), content))  # as Apache Kafka's own clients
    return tuple(headers), position


def _get_bytes(body: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = get_varint(body, position)
    if size < 0:
        return None, position
    stop = position + size
    if stop > end:
        raise ProtocolError(f'{size} bytes announced, {end - position} left')
    return body[position:stop], stop
