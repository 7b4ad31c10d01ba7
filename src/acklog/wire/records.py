"""The records inside a batch v2, unpacked: how one is written and read.

A record is a varint with its length, attributes (one byte, unused), and then varints and bytes: timestamp and offset as
differences to the batch's, key, value, headers. Lengths of -1 stand for null. Times are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from acklog.errors import CorruptBatch, ProtocolError
from acklog.wire.primitives import Buffer, get_varint, put_varint


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


def pack(
    records: Iterable[NewRecord | tuple[bytes | None, bytes | None]], timestamp: int
) -> tuple[bytearray, int, int]:
    """(bytes, number of records, latest timestamp) of records one after the other.

    `timestamp`: the batch's, and that of the records that have none. Raises ValueError without records.
    """
    body = bytearray()
    count = 0
    latest = timestamp
    for count, record in enumerate(records, 1):
        key, value, headers, own = NewRecord(*record)
        when = timestamp if own is None else own
        latest = when if count == 1 or when > latest else latest
        _put_record(body, when - timestamp, count - 1, key, value, headers)
    if not count:
        raise ValueError('a batch needs a record')
    return body, count, latest


def _put_record(
    out: bytearray,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> None:
    record = bytearray(1)  # attributes, unused
    put_varint(record, timestamp_delta)
    put_varint(record, offset_delta)
    _put_bytes(record, key)
    _put_bytes(record, value)
    put_varint(record, len(headers))
    for name, content in headers:
        _put_bytes(record, name.encode())
        _put_bytes(record, content)
    put_varint(out, len(record))
    out += record


def _put_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out.append(1)  # -1
    else:
        put_varint(out, len(value))
        out += value


def unpack(
    body: bytes, count: int, base_offset: int, base_timestamp: int, fixed_timestamp: int | None = None
) -> Iterator[Record]:
    """The `count` records that `body` begins with. `fixed_timestamp`: that of all of them (LogAppendTime).

    Raises CorruptBatch.
    """
    position = 0
    for _ in range(count):
        try:
            record, position = _read_record(body, position, base_offset, base_timestamp, fixed_timestamp)
        except (IndexError, UnicodeDecodeError, ProtocolError) as error:
            raise CorruptBatch(f'a broken record in the batch at offset {base_offset}: {error}') from None
        yield record


def _read_record(
    body: bytes, position: int, base_offset: int, base_timestamp: int, fixed: int | None
) -> tuple[Record, int]:
    size, position = get_varint(body, position)
    end = position + size
    if size < 0 or end > len(body):
        raise ProtocolError(f'a record of {size} bytes')
    timestamp_delta, position = get_varint(body, position + 1)
    offset_delta, position = get_varint(body, position)
    key, position = _get_bytes(body, position, end)
    value, position = _get_bytes(body, position, end)
    count, position = get_varint(body, position)
    if not 0 <= count <= end - position:
        raise ProtocolError(f'{count} headers in {end - position} bytes')
    headers = []
    for _ in range(count):
        name, position = _get_bytes(body, position, end)
        content, position = _get_bytes(body, position, end)
        if name is None:
            raise ProtocolError('a header without a name')
        headers.append((name.decode(), content))
    if position != end:
        raise ProtocolError(f'{end - position} bytes too many in a record')
    timestamp = base_timestamp + timestamp_delta if fixed is None else fixed
    return Record(base_offset + offset_delta, timestamp, key, value, headers), end


def _get_bytes(body: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = get_varint(body, position)
    if size < 0:
        return None, position
    stop = position + size
    if stop > end:
        raise ProtocolError(f'{size} bytes announced, {end - position} left')
    return body[position:stop], stop
