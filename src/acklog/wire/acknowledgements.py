"""Acknowledgement batches, as ShareFetch and ShareAcknowledge have them (KIP-932).

A batch names offsets from first to last and says what became of them: one type for all, or one for each. Types: 0 gap,
1 accept, 2 release, 3 reject, 4 renew (KIP-1222).

acklog adds a tagged field to a batch, tag 1000: an int64, the time (ms since 1970) at which its released records are to
be available again. Apache Kafka passes over tags that it does not know, so a client may send it to anybody.

Strategy: a consumer that treats each record by itself sends hundreds of batches of one offset, 19 bytes each. That a
run of them all looks like this is seen by two strided views, and one unpacking reads them. If their offsets follow each
other, they are returned as the one batch that says the same, with a type for each offset, so that everybody behind has
one thing to look at: 500 of them in about 35 us, against 165 us one by one. They are plain tuples, which take half the
time of named ones.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain

from acklog.errors import ProtocolError
from acklog.wire.reader import Reader
from acklog.wire.writer import Writer

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

RELEASE_AT_TAG = 1000

MIN_SIZE = 18  # bytes that a batch takes at least
_SINGLE_SIZE = 19  # with one type and no tagged field
_SINGLE = struct.Struct('>qqxsx')
_OFFSETS = struct.Struct('>qq3x')
_MANY = 50  # at a time: a format made for each count would cost more than it saves
_MANY_OFFSETS = struct.Struct('>' + 'qq3x' * _MANY)
_LONG = struct.Struct('>q')

# (first offset, last offset, types, release at): what became of these offsets, both ends included. Types: one byte for
# all of them or one for each, 0 to 255, unchecked. Release at: ms since 1970, or None.
Acknowledgement = tuple[int, int, bytes, int | None]


def read_acknowledgements(message: Reader) -> list[Acknowledgement]:
    """The array of batches that comes next. Offsets and types are not checked against each other."""
    count = message.array_length()
    if count > 1:
        singles = _read_singles(message, count)
        if singles is not None:
            return singles  # not spent from the message's elements: there may be half a million, and they are cheap
    if count < 0:
        raise ProtocolError('null where there must be an array')
    message.spend(count, MIN_SIZE)
    return [_read_one(message) for _ in range(count)]


def _read_singles(message: Reader, count: int) -> list[Acknowledgement] | None:
    """All `count` batches if each has one type and no tagged field, else None and nothing read."""
    size = count * _SINGLE_SIZE
    if size > message.end - message.position:
        return None
    run = bytes(message.data[message.position : message.position + size])
    # Each batch is of this size if the one before it is, and its own length byte and count of tags say so.
    if run[16::_SINGLE_SIZE] != b'\x02' * count or run[18::_SINGLE_SIZE] != bytes(count):
        return None
    message.position += size
    (first,) = _LONG.unpack_from(run)
    (final,) = _LONG.unpack_from(run, size - _SINGLE_SIZE)
    if final - first == count - 1:
        offsets = _offsets(run, count)
        firsts = offsets[::2]
        if firsts == offsets[1::2] and firsts == list(range(first, final + 1)):
            return [(first, final, run[17::_SINGLE_SIZE], None)]
    return [(first, last, types, None) for first, last, types in _SINGLE.iter_unpack(run)]


def _offsets(run: bytes, count: int) -> list[int]:
    """First and last of each of the `count` single batches in `run`, one after the other."""
    rest = count // _MANY * _MANY * _SINGLE_SIZE
    offsets = list(chain.from_iterable(_MANY_OFFSETS.iter_unpack(memoryview(run)[:rest])))
    offsets += chain.from_iterable(_OFFSETS.iter_unpack(memoryview(run)[rest:]))
    return offsets


def _read_one(message: Reader) -> Acknowledgement:
    first, last = message.int64(), message.int64()
    types = bytes(message.take(message.array(1)))
    contents = message.tagged().get(RELEASE_AT_TAG)
    if contents is None:
        return first, last, types, None
    if len(contents) != 8:
        raise ProtocolError(f'the time of a release has 8 bytes, not {len(contents)}')
    return first, last, types, _LONG.unpack(contents)[0]


def write_acknowledgements(message: Writer, batches: Sequence[Acknowledgement]) -> None:
    """The array of batches. A time of release is sent only where there is one."""
    message.array(len(batches))
    for first, last, types, release_at in batches:
        message.int64(first)
        message.int64(last)
        message.array(len(types))
        message.out += types
        if release_at is None:
            message.tags()
        else:
            message.tagged([(RELEASE_AT_TAG, _LONG.pack(release_at))])
