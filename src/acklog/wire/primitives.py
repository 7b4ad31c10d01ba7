"""What all of the protocol is made of: buffers, varints, and times in ms since 1970.

Readers and writers of the protocol's types are in `acklog.wire.reader` and `acklog.wire.writer`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from acklog.errors import ProtocolError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

Buffer = bytes | bytearray | memoryview

STRETCH = 4096  # bytes of a message that are read or written at a time, where it may be long: some milliseconds


def put_uvarint(out: bytearray, value: int) -> None:
    """Append an unsigned varint (0 or more)."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def put_varint(out: bytearray, value: int) -> None:
    """Append a signed (zigzag) varint, as records have them; up to 64 bits."""
    put_uvarint(out, value << 1 ^ value >> 63)


def get_varint(data: Buffer, position: int) -> tuple[int, int]:
    """(value, position behind it) of a signed (zigzag) varint of at most 64 bits. IndexError at the end of `data`."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position
    value, byte = byte & 0x7F, data[position]
    if byte < 0x80:  # two bytes, as lengths and offsets in records often have
        value |= byte << 7
        return value >> 1 ^ -(value & 1), position + 1
    shift = 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise ProtocolError('a varint of more than ten bytes')
    return value >> 1 ^ -(value & 1), position
