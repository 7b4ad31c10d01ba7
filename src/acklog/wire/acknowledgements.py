"""Acknowledgement batches, as ShareFetch and ShareAcknowledge have them (KIP-932).

A batch names offsets from first to last and says what became of them: one type for all, or one for each. Types: 0 gap,
1 accept, 2 release, 3 reject, 4 renew (KIP-1222).

acklog adds tagged fields to a batch. Apache Kafka passes over tags that it does not know, so a client may send them to
anybody.

    1000   int64: the time (ms since 1970) at which its released records are to be available again
    1001   UTF-8: the subscriber's own words about why it hands the records back
    1002   int64: as 1000, so many ms after the server got it; where both are, 1000 counts

Strategy: a consumer that treats each record by itself sends hundreds of batches of one offset, 19 bytes each. That a
run of them all looks like this is seen by two strided views, and one unpacking reads them. If their offsets follow each
other, they are returned as the one batch that says the same, with a type for each offset, so that everybody behind has
one thing to look at: 500 of them in about 35 us, against 165 us one by one. A run of single offsets that are released
until a time each is read alike. They are plain tuples, which take half the time of named ones.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import chain

from acklog.errors import ProtocolError
from acklog.wire.reader import Reader
from acklog.wire.writer import Writer

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

RELEASE_AT_TAG, WORDS_TAG, RELEASE_AFTER_TAG = 1000, 1001, 1002

PLACE_COST = 5  # elements that a topic or a partition of a request counts for, as so much more is done for it
MIN_SIZE = 18  # bytes that a batch takes at least
_SINGLE_SIZE = 19  # with one type and no tagged field
_SINGLE = struct.Struct('>qqxsx')
_TIMED = struct.Struct('>qqxs4xq')  # with one type and one time
_AT, _AFTER = b'\x01\xe8\x07\x08', b'\x01\xea\x07\x08'  # one tagged field: its tag, its size
_BRIEF_TIMED = struct.Struct('>qqBs4sq')
_BRIEF = struct.Struct('>qqBsB')
_OFFSETS = struct.Struct('>qq3x')
_MANY = 50  # at a time: a format made for each count would cost more than it saves
_MANY_OFFSETS = struct.Struct('>' + 'qq3x' * _MANY)
_LONG = struct.Struct('>q')

# (first offset, last offset, types, release at): what became of these offsets, both ends included. Types: one byte for
# all of them or one for each, 0 to 255, unchecked. Release at: ms since 1970, or None. Where it says more, also release
# after, ms or None, and words, None for none.
Brief = tuple[int, int, bytes, int | None]
Full = tuple[int, int, bytes, int | None, int | None, str | None]
Acknowledgement = Brief | Full


def read_acknowledgements(message: Reader) -> list[Acknowledgement]:
    """The array of batches that comes next. Offsets and types are not checked against each other."""
    count = message.array_length()
    if count == 1 and message.end - message.position >= _SINGLE_SIZE:
        first, last, length, types, tags = _BRIEF.unpack_from(message.data, message.position)
        if length == 2 and not tags:
            message.position += _SINGLE_SIZE
            return [(first, last, types, None)]
    if count > 1:
        singles = _read_singles(message, count)
        if singles is not None:
            return singles  # not spent from the message's elements: there may be half a million, and they are cheap
        timed = _read_timed(message, count)
        if timed is not None:
            return timed
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


def _read_timed(message: Reader, count: int) -> list[Acknowledgement] | None:
    """All `count` batches if each has one type and one tagged field, the same time, else None and nothing read."""
    size = count * _TIMED.size
    if size > message.end - message.position:
        return None
    run = bytes(message.data[message.position : message.position + size])
    tagged = run[18:22]
    if tagged not in (_AT, _AFTER) or run[16 :: _TIMED.size] != b'\x02' * count:
        return None
    if any(run[18 + n :: _TIMED.size] != tagged[n : n + 1] * count for n in range(4)):
        return None
    message.position += size
    if tagged == _AT:
        return list(_TIMED.iter_unpack(run))
    return [(first, last, types, None, after, None) for first, last, types, after in _TIMED.iter_unpack(run)]


def _offsets(run: bytes, count: int) -> list[int]:
    """First and last of each of the `count` single batches in `run`, one after the other."""
    rest = count // _MANY * _MANY * _SINGLE_SIZE
    offsets = list(chain.from_iterable(_MANY_OFFSETS.iter_unpack(memoryview(run)[:rest])))
    offsets += chain.from_iterable(_OFFSETS.iter_unpack(memoryview(run)[rest:]))
    return offsets


def _read_one(message: Reader) -> Acknowledgement:
    first, last = message.int64(), message.int64()
    types = bytes(message.take(message.array(1)))
    tags = message.tagged()
    if not tags:
        return first, last, types, None
    at, after = _time(tags.get(RELEASE_AT_TAG)), _time(tags.get(RELEASE_AFTER_TAG))
    words = tags.get(WORDS_TAG)
    if after is None and words is None:
        return first, last, types, at
    try:
        return first, last, types, at, after, None if words is None else str(words, 'utf-8')
    except UnicodeDecodeError as error:
        raise ProtocolError(f'the words of an acknowledgement are no UTF-8: {error}') from None


def _time(contents: memoryview | None) -> int | None:
    if contents is None:
        return None
    if len(contents) != 8:
        raise ProtocolError(f'the time of a release has 8 bytes, not {len(contents)}')
    return int(_LONG.unpack(contents)[0])


def write_acknowledgements(message: Writer, batches: Sequence[Acknowledgement]) -> None:
    """The array of batches. What a batch does not say is not sent."""
    message.array(len(batches))
    for batch in batches:
        first, last, types, release_at = batch[:4]
        if len(batch) == 4 and len(types) == 1:
            if release_at is None:
                message.out += _BRIEF.pack(first, last, 2, types, 0)
            else:
                message.out += _BRIEF_TIMED.pack(first, last, 2, types, _AT, release_at)
            continue
        message.int64(first)
        message.int64(last)
        message.array(len(types))
        message.out += types
        if release_at is None and len(batch) == 4:
            message.tags()
        else:
            message.tagged(_tags(batch))


def _tags(batch: Acknowledgement) -> Iterator[tuple[int, bytes]]:
    if batch[3] is not None:
        yield RELEASE_AT_TAG, _LONG.pack(batch[3])
    if len(batch) == 6:
        after, words = batch[4:]
        if words is not None:
            yield WORDS_TAG, words.encode()
        if after is not None:
            yield RELEASE_AFTER_TAG, _LONG.pack(after)
