"""Record batches v2: looked at, checked, patched, built, and read.

    offset  size  field                     offset  size  field
         0     8  base offset                   27     8  base timestamp
         8     4  length of what follows        35     8  max timestamp
        12     4  leader epoch                  43     8  producer id
        16     1  magic (2)                     51     2  producer epoch
        17     4  CRC32C from 21 to the end     53     4  base sequence
        21     2  attributes                    57     4  number of records
        23     4  last offset delta             61        records, perhaps compressed

Attributes: bits 0-2 compression, 3 timestamp type (1: LogAppendTime), 4 transactional, 5 control (KIP-98).

Strategy: the server handles whole batches as bytes. `spans` hops over headers, `check` looks once at what a producer
sent, `place` and `stamp` patch in place; base offset and leader epoch are not covered by the CRC, so placing costs no
CRC. Only `records` looks inside a batch, and bounds what it unpacks.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Iterator
from itertools import starmap
from typing import NamedTuple

import crc32c as _crc32c

from acklog.errors import BatchTooLarge, CorruptBatch, InvalidBatch, TooManyBatches, UnsupportedFormat
from acklog.wire import compression as _compression
from acklog.wire.primitives import Buffer
from acklog.wire.records import NewRecord as NewRecord
from acklog.wire.records import Plain as Plain
from acklog.wire.records import Record as Record
from acklog.wire.records import Row as Row
from acklog.wire.records import pack, rows, varint
from acklog.wire.records import rows_at as _rows_at

HEADER_SIZE = 61
MAGIC = 2
BEHIND_LENGTH = 12  # what the length field counts begins there
ATTRIBUTES_AT = 21  # and what the CRC covers

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

SMALLEST_RECORD = 7  # bytes: one for each of its fields
MOST_COMPRESSED = 1_000_000  # records of a compressed batch: a few kB can be as many as one likes
MAX_UNPACKED = 128 << 20  # bytes that one batch may unpack to, unless its reader says otherwise

_LENGTH_AT = 8
_EPOCH_AT = 12
_MAGIC_AT = 16
_CRC_AT = 17
_MAX_TIMESTAMP_AT = 35

_HEADER = struct.Struct('>qiibIhiqqqhii')
_SPAN = struct.Struct('>qi9xhi')
_FROM_ATTRIBUTES = struct.Struct('>hiqqqhii')
_LONG = struct.Struct('>q')
_INT = struct.Struct('>i')
_UNSIGNED = struct.Struct('>I')
_SHORT = struct.Struct('>h')
_UP_TO_CRC = struct.Struct('>qiibI')

assert _HEADER.size == HEADER_SIZE


class Span(NamedTuple):
    """Where a batch lies, and which offsets it covers."""

    first: int
    last: int
    position: int  # of its first byte
    size: int  # in bytes, all of it
    attributes: int


class Header(NamedTuple):
    """All fields of a batch's header, as stored."""

    base_offset: int
    length: int  # bytes behind the length field
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int  # ms
    max_timestamp: int  # ms
    producer_id: int  # -1: none
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.length + BEHIND_LENGTH

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta


def is_control(attributes: int) -> bool:
    """Whether a batch holds a transaction marker and no records for anybody."""
    return bool(attributes & CONTROL)


def compression_name(attributes: int) -> str:
    """One of `compression.NAMES`. Raises CorruptBatch for a number that has no name."""
    number = attributes & COMPRESSION_MASK
    if number >= len(_compression.NAMES):
        raise CorruptBatch(f'unknown compression {number}')
    return _compression.NAMES[number]


def spans(data: Buffer, position: int = 0) -> list[Span]:
    """The batches in `data` from `position` on, each looked at by its header only.

    An incomplete batch at the end, as a fetch may bring, is left out. Raises CorruptBatch when a length cannot be.
    """
    found = []
    end = len(data)
    unpack = _SPAN.unpack_from
    while end - position >= HEADER_SIZE:
        base, length, attributes, delta = unpack(data, position)
        if length < HEADER_SIZE - BEHIND_LENGTH:
            raise CorruptBatch(f'a batch of length {length} at {position}')
        size = length + BEHIND_LENGTH
        if size > end - position:
            break
        found.append(Span(base, base + delta, position, size, attributes))
        position += size
    return found


def read_header(data: Buffer, position: int = 0) -> Header:
    """Header of the batch at `position`, unchecked. Raises CorruptBatch when there is not a whole one."""
    if len(data) - position < HEADER_SIZE:
        raise CorruptBatch(f'{len(data) - position} bytes are no batch')
    return Header._make(_HEADER.unpack_from(data, position))


def crc_fits(data: Buffer, position: int, size: int) -> bool:
    """Whether the CRC of the whole batch at `position`, of `size` bytes, is right."""
    stored: int = _UNSIGNED.unpack_from(data, position + _CRC_AT)[0]
    view = memoryview(data)[position + ATTRIBUTES_AT : position + size]
    return stored == _crc32c.crc32c(view)


def check(data: Buffer, max_bytes: int, most: int | None = None) -> list[Header]:
    """Check what a producer wants to have stored: one or more whole batches, at most `most`.

    `max_bytes`: largest batch (`max.message.bytes`). Returns their headers, in order; one lies behind the other. Raises
    CorruptBatch for lengths and CRC, so that producers send again; InvalidBatch for counts (no more records than the
    bytes can hold), attributes that are not a producer's to set, producer ids without epoch or sequence;
    UnsupportedFormat for a magic below 2; TooManyBatches; BatchTooLarge, also for a compressed batch of more than
    MOST_COMPRESSED records.
    """
    if not len(data):
        raise CorruptBatch('no batch at all')
    headers: list[Header] = []
    position, end = 0, len(data)
    while position < end:
        if len(headers) == most:
            raise TooManyBatches(f'more than {most} record batch for a partition in one request')
        if end - position < HEADER_SIZE or data[position + _MAGIC_AT] != MAGIC:
            raise _no_batch(data, position, end)
        header = Header._make(_HEADER.unpack_from(data, position))
        size = header.length + BEHIND_LENGTH
        if not HEADER_SIZE <= size <= end - position:
            raise CorruptBatch(f'a batch of {size} bytes in {end - position}')
        if size > max_bytes:
            raise BatchTooLarge(f'a batch of {size} bytes, at most {max_bytes} are allowed')
        if header.crc != _crc32c.crc32c(memoryview(data)[position + ATTRIBUTES_AT : position + size]):
            raise CorruptBatch('the CRC does not fit')
        if not _is_plain(header):
            _check_counts(header)
        headers.append(header)
        position += size
    return headers


def _no_batch(data: Buffer, position: int, end: int) -> CorruptBatch | UnsupportedFormat:
    """What is wrong with what is at `position`: no header of our format."""
    rest = end - position
    if rest > _MAGIC_AT and data[position + _MAGIC_AT] in (0, 1):
        return UnsupportedFormat(f'message format v{data[position + _MAGIC_AT]}; v2 is needed (Kafka 0.11 and newer)')
    if rest < HEADER_SIZE:
        return CorruptBatch(f'{rest} bytes are no batch')
    return CorruptBatch(f'unknown message format {data[position + _MAGIC_AT]}')


def _is_plain(header: Header) -> bool:
    """As nearly all are: nothing in it that `_check_counts` would have to look at."""
    return (
        0 < header.record_count == header.last_offset_delta + 1
        and header.record_count <= _most_records(header)
        and 0 <= header.attributes < len(_compression.NAMES)
        and (header.producer_id < 0 or (header.producer_epoch >= 0 and header.base_sequence >= 0))
    )


def _most_records(header: Header) -> int:
    """No more fit, or may be: offsets are given, and delivered, by what a batch says that it has."""
    if header.attributes & COMPRESSION_MASK:
        return MOST_COMPRESSED
    return (header.length + BEHIND_LENGTH - HEADER_SIZE) // SMALLEST_RECORD


def _check_counts(header: Header) -> None:
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        raise InvalidBatch(f'{header.record_count} records with a last offset delta of {header.last_offset_delta}')
    if header.attributes & CONTROL:
        raise InvalidBatch('control batches are not for producers')
    if header.attributes & LOG_APPEND_TIME:
        raise InvalidBatch("the timestamp type LogAppendTime is the server's to set")
    compression_name(header.attributes)
    if header.record_count > _most_records(header):
        if header.attributes & COMPRESSION_MASK:
            raise BatchTooLarge(
                f'a compressed batch of {header.record_count} records, at most {MOST_COMPRESSED} are allowed'
            )
        raise InvalidBatch(f'{header.record_count} records are more than {header.size} bytes can hold')
    if header.producer_id >= 0:
        if header.producer_epoch < 0 or header.base_sequence < 0:
            raise InvalidBatch('a producer id without epoch or sequence')
    elif header.attributes & TRANSACTIONAL:
        raise InvalidBatch('a transactional batch without a producer id')


def place(data: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch at `position` its offset and leader epoch, in place. The CRC does not cover them."""
    _LONG.pack_into(data, position, base_offset)
    _INT.pack_into(data, position + _EPOCH_AT, leader_epoch)


def stamp(data: bytearray | memoryview, position: int, timestamp: int) -> None:
    """Give all records of the batch at `position` the time (ms) of the log (LogAppendTime), in place, CRC included."""
    (length,) = _INT.unpack_from(data, position + _LENGTH_AT)
    (attributes,) = _SHORT.unpack_from(data, position + ATTRIBUTES_AT)
    _SHORT.pack_into(data, position + ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
    _LONG.pack_into(data, position + _MAX_TIMESTAMP_AT, timestamp)
    _seal(data, position, length + BEHIND_LENGTH)


def _seal(data: bytearray | memoryview, position: int, size: int) -> None:
    with memoryview(data) as whole, whole[position + ATTRIBUTES_AT : position + size] as covered:
        crc = _crc32c.crc32c(covered)
    _UNSIGNED.pack_into(data, position + _CRC_AT, crc)


def build(
    records: Iterable[NewRecord | Plain | tuple[bytes | None, bytes | None] | bytes],
    *,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    compression: str = 'none',
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """A batch of these records (one or more; keys, values, headers, timestamps as `NewRecord`; bytes: a value alone).

    `timestamp`: ms, for the records that have none of their own. Raises ValueError without records.
    """
    body, count, latest = pack(records, timestamp)
    attributes = _compression.NAMES.index(compression)
    packed = body if not attributes else _compression.compress(compression, body)
    attributes |= (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
    behind = _FROM_ATTRIBUTES.pack(
        attributes, count - 1, timestamp, latest, producer_id, producer_epoch, base_sequence, count
    )
    crc = _crc32c.crc32c(packed, _crc32c.crc32c(behind))
    length = HEADER_SIZE - BEHIND_LENGTH + len(packed)
    batch = bytearray(_UP_TO_CRC.pack(base_offset, length, leader_epoch, MAGIC, crc))
    batch += behind
    batch += packed
    return batch


def build_one(value: bytes, timestamp: int) -> bytearray:
    """What `build` makes of a single record that has a value only, in half the time. `timestamp`: ms."""
    length = varint(len(value))
    body = b''.join((varint(len(value) + len(length) + 5), b'\0\0\0\1', length, value, b'\0'))
    behind = _FROM_ATTRIBUTES.pack(0, 0, timestamp, timestamp, -1, -1, -1, 1)
    crc = _crc32c.crc32c(body, _crc32c.crc32c(behind))
    head = _UP_TO_CRC.pack(0, HEADER_SIZE - BEHIND_LENGTH + len(body), -1, MAGIC, crc)
    return bytearray(b''.join((head, behind, body)))


def records(
    data: Buffer, position: int = 0, *, max_unpacked: int = MAX_UNPACKED, control: bool = False
) -> Iterator[Record]:
    """The records of all whole batches in `data` from `position` on, in order.

    `max_unpacked`: bytes that one batch may unpack to. Control batches are passed over unless `control`. The CRC is not
    looked at. Raises CorruptBatch when a batch is broken or too large.
    """
    for span in spans(data, position):
        if span.attributes & CONTROL and not control:
            continue
        yield from starmap(Record, rows_of(data, span, max_unpacked))


def rows_of(data: Buffer, span: Span, max_unpacked: int = MAX_UNPACKED) -> Iterator[Row]:
    """The records of one batch as plain tuples; otherwise as `records`, control batches too."""
    return rows(*_unpacked(data, span, max_unpacked))


def rows_at(data: Buffer, span: Span, wanted: Container[int]) -> Iterator[Row | None]:
    """As `rows_of`, with None in the place of each record whose offset is not `wanted` when it is reached: whoever goes
    through a million of them lets others have their turn."""
    return _rows_at(*_unpacked(data, span, MAX_UNPACKED), wanted)


def _unpacked(data: Buffer, span: Span, max_unpacked: int) -> tuple[bytes, int, int, int, int | None]:
    """What `rows` takes."""
    header = read_header(data, span.position)
    if header.magic != MAGIC:
        raise CorruptBatch(f'unknown message format {header.magic}')
    packed = memoryview(data)[span.position + HEADER_SIZE : span.position + span.size]
    body = bytes(_compression.decompress(compression_name(header.attributes), packed, max_unpacked))
    fixed = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    return body, header.record_count, header.base_offset, header.base_timestamp, fixed
