"""Writing Kafka's primitive types: a legacy and a compact flavour.

Strategy: as with `acklog.wire.reader`, what differs between flexible and older versions is in the class of the writer.
Small fields are collected in one bytearray; large ones, such as records, are kept by reference, so a message comes out
in pieces and no record is copied on its way.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from acklog.wire.primitives import STRETCH, Buffer, put_uvarint

_BYTE = struct.Struct('>b')
_SHORT = struct.Struct('>h')
_INT = struct.Struct('>i')
_LONG = struct.Struct('>q')
_DOUBLE = struct.Struct('>d')


class Writer:
    """Collects a message: small fields in one bytearray, large bytes by reference between its pieces. Who writes in
    stretches pauses when there are more than `pause` bytes.

    This one writes the legacy types. A value that does not fit its type raises struct.error or TypeError: our bug.
    """

    __slots__ = ('done', 'out', 'pause')

    def __init__(self) -> None:
        self.out = bytearray()
        self.pause = STRETCH
        self.done: list[Buffer] = []

    def int8(self, value: int) -> None:
        self.out += _BYTE.pack(value)

    def int16(self, value: int) -> None:
        self.out += _SHORT.pack(value)

    def int32(self, value: int) -> None:
        self.out += _INT.pack(value)

    def int64(self, value: int) -> None:
        self.out += _LONG.pack(value)

    def uint8(self, value: int) -> None:
        self.out.append(value)

    def uint16(self, value: int) -> None:
        self.out += value.to_bytes(2, 'big')

    def uint32(self, value: int) -> None:
        self.out += value.to_bytes(4, 'big')

    def uint64(self, value: int) -> None:
        self.out += value.to_bytes(8, 'big')

    def float64(self, value: float) -> None:
        self.out += _DOUBLE.pack(value)

    def boolean(self, value: bool) -> None:
        self.out.append(1 if value else 0)

    def uuid(self, value: bytes) -> None:
        """16 bytes."""
        if len(value) != 16:
            raise ValueError(f'a uuid has 16 bytes, not {len(value)}')
        self.out += value

    def uvarint(self, value: int) -> None:
        put_uvarint(self.out, value)

    def text_length(self, size: int) -> None:
        self.int16(size)

    def bytes_length(self, size: int) -> None:
        self.int32(size)

    def array(self, size: int) -> None:
        """Begin an array of `size` elements; -1 is null."""
        self.int32(size)

    def tags(self) -> None:
        """End a structure that has no tagged fields."""

    def tagged(self, fields: Iterable[tuple[int, Buffer]]) -> None:
        """End a structure with tagged fields, in the order of their tags. Older versions have none: left out there."""

    def string(self, value: str | None) -> None:
        if value is None:
            self.text_length(-1)
        else:
            encoded = value.encode()
            self.text_length(len(encoded))
            self.out += encoded

    def bytes(self, value: Buffer | None) -> None:
        """Bytes, copied into the message."""
        if value is None:
            self.bytes_length(-1)
        else:
            self.bytes_length(len(value))
            self.out += value

    def reference(self, value: Buffer | None) -> None:
        """Bytes, not copied: must stay unchanged until the message is sent."""
        if not value:
            self.bytes_length(-1 if value is None else 0)
            return
        self.bytes_length(len(value))
        self.done.append(self.out)
        self.done.append(value)
        self.out = bytearray()

    def references(self, value: Buffer | Sequence[Buffer] | None) -> None:
        """Like `reference`, of bytes that lie in one buffer or in several, one after the other."""
        if value is None or isinstance(value, (bytes, bytearray, memoryview)):
            self.reference(value)
            return
        self.bytes_length(sum(map(len, value)))
        self.done.append(self.out)
        self.done.extend(value)
        self.out = bytearray()

    def int32s(self, values: Iterable[int]) -> None:
        """Array of int32."""
        numbers = tuple(values)
        self.array(len(numbers))
        self.out += struct.pack(f'>{len(numbers)}i', *numbers)

    def buffers(self) -> list[Buffer]:
        """The message, in pieces to be sent one after the other. Ends the writer's life."""
        if self.out:
            self.done.append(self.out)
        return self.done


class CompactWriter(Writer):
    """Writes the compact types and tagged fields of flexible versions."""

    __slots__ = ()

    def text_length(self, size: int) -> None:
        if size < 0x7F:
            self.out.append(size + 1)
        else:
            put_uvarint(self.out, size + 1)

    bytes_length = text_length
    array = text_length

    def tags(self) -> None:
        self.out.append(0)

    def tagged(self, fields: Iterable[tuple[int, Buffer]]) -> None:
        present = list(fields)
        put_uvarint(self.out, len(present))
        for tag, contents in present:
            put_uvarint(self.out, tag)
            put_uvarint(self.out, len(contents))
            self.out += contents


def writer(*, flexible: bool) -> Writer:
    """The writer for a message of a flexible or an older version."""
    return CompactWriter() if flexible else Writer()
