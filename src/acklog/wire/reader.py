"""Reading Kafka's primitive types, with bounds: a legacy and a compact flavour.

Strategy: a codec is written once for all versions. What differs between flexible versions (KIP-482: compact lengths,
tagged fields) and older ones is in the class of the reader or writer that it gets:

    message = reader(body, flexible=version >= 9)
    acks, timeout = message.int16(), message.int32()
    for _ in range(message.array(MINIMUM)):
        name = message.string()
        message.tags()

Nothing in a message is believed: a length is compared with what is left before anything is allocated, and `array`
refuses a number of elements for which there are not enough bytes. An element of three bytes becomes an object of a
hundred and takes a microsecond, so a reader also counts the elements of all arrays and the tagged fields together and
refuses what has more of them than any real message. So both memory and time are bounded. Every misfit raises
ProtocolError; the struct module's and the buffer's own complaints are turned into it by `refusing_nonsense`, which each
decoder is wrapped in. Bytes behind the end of a message are passed over, as Apache Kafka does: some clients send them.

Sources: the Kafka protocol guide, "Protocol Primitive Types"; KIP-482 (flexible versions), KIP-893 (nullable structs).
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from acklog.errors import ProtocolError
from acklog.wire.primitives import STRETCH, Buffer

MAX_ELEMENTS = 250_000  # in all arrays of a message together: 10,000 partitions, each with several arrays

_BYTE = struct.Struct('>b')
_SHORT = struct.Struct('>h')
_INT = struct.Struct('>i')
_LONG = struct.Struct('>q')
_DOUBLE = struct.Struct('>d')

P = ParamSpec('P')
T = TypeVar('T')


def refusing_nonsense(decode: Callable[P, T]) -> Callable[P, T]:
    """Make `decode` raise ProtocolError where it runs over the end of its message or into text that is not UTF-8."""

    @functools.wraps(decode)
    def decode_or_refuse(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return decode(*args, **kwargs)
        except (struct.error, IndexError) as error:
            raise ProtocolError(f'message ends too early: {error}') from None
        except UnicodeDecodeError as error:
            raise ProtocolError(f'text is not UTF-8: {error}') from None

    return decode_or_refuse


class Reader:
    """Reads a message from its beginning. `position` is the next byte to be read, `end` the first one behind;
    `elements` is how many array elements and tagged fields it may still have; `pause` is for who reads in stretches.

    This one reads the legacy types (versions that are not flexible); `tags` finds nothing there.
    """

    __slots__ = ('data', 'elements', 'end', 'pause', 'position')

    def __init__(self, data: Buffer, elements: int = MAX_ELEMENTS) -> None:
        self.elements = elements
        self.pause = STRETCH
        self.data = data if type(data) is memoryview else memoryview(data)
        self.position = 0
        self.end = len(data)

    # numbers, the same in both flavours

    def int8(self) -> int:
        position = self.position
        self.position = position + 1
        return _BYTE.unpack_from(self.data, position)[0]  # type: ignore[no-any-return]

    def int16(self) -> int:
        position = self.position
        self.position = position + 2
        return _SHORT.unpack_from(self.data, position)[0]  # type: ignore[no-any-return]

    def int32(self) -> int:
        position = self.position
        self.position = position + 4
        return _INT.unpack_from(self.data, position)[0]  # type: ignore[no-any-return]

    def int64(self) -> int:
        position = self.position
        self.position = position + 8
        return _LONG.unpack_from(self.data, position)[0]  # type: ignore[no-any-return]

    def float64(self) -> float:
        position = self.position
        self.position = position + 8
        return _DOUBLE.unpack_from(self.data, position)[0]  # type: ignore[no-any-return]

    def uint8(self) -> int:
        return self.int8() & 0xFF

    def uint16(self) -> int:
        return self.int16() & 0xFFFF

    def uint32(self) -> int:
        return self.int32() & 0xFFFF_FFFF

    def uint64(self) -> int:
        return self.int64() & 0xFFFF_FFFF_FFFF_FFFF

    def boolean(self) -> bool:
        return self.int8() != 0

    def uuid(self) -> bytes:
        """16 bytes."""
        return bytes(self.take(16))

    def uvarint(self) -> int:
        """Unsigned varint of at most 31 bits, which is what lengths, counts and tags can be."""
        data, position = self.data, self.position
        value = data[position]
        position += 1
        if value >= 0x80:
            value &= 0x7F
            for shift in (7, 14, 21, 28):
                byte = data[position]
                position += 1
                value |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
            else:
                raise ProtocolError('a varint of more than five bytes')
            if value > 0x7FFF_FFFF:
                raise ProtocolError(f'a length or tag of {value}')
        self.position = position
        return value

    def take(self, size: int) -> memoryview:
        """View of the next `size` bytes (0 or more)."""
        position = self.position
        stop = position + size
        if stop > self.end:
            raise ProtocolError(f'{size} bytes announced, {self.end - position} left')
        self.position = stop
        return self.data[position:stop]

    # lengths: the flavours differ. -1 stands for null

    def text_length(self) -> int:
        return self.int16()

    def bytes_length(self) -> int:
        return self.int32()

    def array_length(self) -> int:
        return self.int32()

    def tags(self) -> None:
        """Pass over the tagged fields that end a structure, whatever they are."""

    def tagged(self) -> dict[int, memoryview]:
        """Read the tagged fields that end a structure: tag -> contents."""
        return {}

    # what is built upon them

    def string(self) -> str:
        size = self.text_length()
        if size < 0:
            raise ProtocolError('null where there must be a text')
        return str(self.take(size), 'utf-8')

    def nullable_string(self) -> str | None:
        size = self.text_length()
        if size < 0:
            _must_be_null(size)
            return None
        return str(self.take(size), 'utf-8')

    def view(self) -> memoryview:
        """Bytes, not copied: a view into the message."""
        size = self.bytes_length()
        if size < 0:
            raise ProtocolError('null where there must be bytes')
        return self.take(size)

    def nullable_view(self) -> memoryview | None:
        size = self.bytes_length()
        if size < 0:
            _must_be_null(size)
            return None
        return self.take(size)

    def array(self, minimum: int, cost: int = 1) -> int:
        """Number of elements that follow, each of at least `minimum` bytes (1 or more). `cost`: for how many each
        counts."""
        size = self.array_length()
        if size > 0:
            self.spend(size, minimum, cost)
        elif size < 0:
            raise ProtocolError('null where there must be an array')
        return size

    def nullable_array(self, minimum: int) -> int | None:
        size = self.array_length()
        if size < 0:
            _must_be_null(size)
            return None
        self.spend(size, minimum)
        return size

    def spend(self, count: int, minimum: int, cost: int = 1) -> None:
        """Refuse `count` elements of at least `minimum` bytes each if they are too many for what is left."""
        if count * minimum > self.end - self.position:
            raise ProtocolError(f'{count} elements announced in {self.end - self.position} bytes')
        self.elements -= count * cost
        if self.elements < 0:
            raise ProtocolError('more elements than a message may have')

    def int32s(self) -> tuple[int, ...]:
        """Array of int32."""
        size = self.array(4)
        position = self.position
        self.position = position + 4 * size
        return struct.unpack_from(f'>{size}i', self.data, position)


class CompactReader(Reader):
    """Reads the compact types and tagged fields of flexible versions."""

    __slots__ = ()

    def text_length(self) -> int:
        # the uvarint of one byte once more: it is almost always one
        size = self.data[self.position]
        if size < 0x80:
            self.position += 1
            return size - 1
        return self.uvarint() - 1

    bytes_length = text_length
    array_length = text_length

    # Inlined, because every request has several of them: half the time of the ones that they replace.

    def string(self) -> str:
        position = self.position
        size = self.data[position]
        if not 0 < size < 0x80:
            return super().string()
        stop = position + size
        if stop > self.end:
            raise ProtocolError(f'{size - 1} bytes announced, {self.end - position - 1} left')
        self.position = stop
        return self.data[position + 1 : stop].tobytes().decode()

    def nullable_string(self) -> str | None:
        position = self.position
        size = self.data[position]
        stop = position + size
        if not 0 < size < 0x80 or stop > self.end:
            return super().nullable_string()
        self.position = stop
        return self.data[position + 1 : stop].tobytes().decode()

    def nullable_view(self) -> memoryview | None:
        data, position = self.data, self.position
        size = data[position]
        position += 1
        if size >= 0x80:
            byte = data[position]
            if byte < 0x80:
                size += (byte << 7) - 0x80
                position += 1
            else:
                size = self.uvarint()
                position = self.position
        if not size:
            self.position = position
            return None
        stop = position + size - 1
        if stop > self.end:
            raise ProtocolError(f'{size - 1} bytes announced, {self.end - position} left')
        self.position = stop
        return data[position:stop]

    def tags(self) -> None:
        if self.data[self.position] == 0:
            self.position += 1
        else:
            self.tagged()

    def tagged(self) -> dict[int, memoryview]:
        count = self.uvarint()
        if not count:
            return {}
        self.spend(count, 2)
        fields = {}
        for _ in range(count):
            tag = self.uvarint()
            fields[tag] = self.take(self.uvarint())
        return fields


def _must_be_null(size: int) -> None:
    if size != -1:
        raise ProtocolError(f'a length of {size}')


def reader(data: Buffer, *, flexible: bool, elements: int = MAX_ELEMENTS) -> Reader:
    """The reader for a message of a flexible or an older version."""
    return CompactReader(data, elements) if flexible else Reader(data, elements)
