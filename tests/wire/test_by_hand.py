"""What is written out by hand for speed does what the general way does, at every length and at every end of a frame."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acklog.errors import ProtocolError
from acklog.wire.acknowledgements import read_acknowledgements
from acklog.wire.reader import CompactReader, refusing_nonsense
from acklog.wire.record_batch import build, build_one
from acklog.wire.writer import writer

LENGTHS = [
    0,
    1,
    2,
    57,
    58,
    59,
    63,
    64,
    65,
    125,
    126,
    127,
    128,
    129,
    8185,
    8186,
    8187,
    8191,
    8192,
    8193,
    1 << 20,
    4 << 20,
]


@pytest.mark.parametrize('length', LENGTHS)
def test_a_batch_of_one_value(length: int) -> None:
    assert build_one(b'v' * length, 1_700_000_000_000) == build([(None, b'v' * length)], timestamp=1_700_000_000_000)


def read(data: bytes, get: Callable[[CompactReader], Any]) -> tuple[Any, int] | str:
    """What `get` finds, and where it ends; 'refused' where it raises ProtocolError, as anything else would fail."""
    message = CompactReader(memoryview(data))
    try:
        return refusing_nonsense(get)(message), message.position
    except ProtocolError:
        return 'refused'


def string_as_it_is_defined(message: CompactReader) -> str | None:
    length = message.uvarint() - 1
    return None if length < 0 else message.take(length).tobytes().decode()


def same_string(data: bytes) -> None:
    assert read(data, CompactReader.nullable_string) == read(data, string_as_it_is_defined)


@pytest.mark.parametrize('length', [None, *LENGTHS[:14]])
@pytest.mark.parametrize('missing', [-2, -1, 0, 1, 2])
def test_a_string_that_ends_at_the_end_of_the_frame_or_beyond(length: int | None, missing: int) -> None:
    message = writer(flexible=True)
    message.string(None if length is None else 's' * length)
    data = b''.join(bytes(each) for each in message.buffers())
    same_string(data + bytes(-missing) if missing <= 0 else data[:-missing])


@given(st.binary(max_size=200))
def test_any_bytes_as_a_string(data: bytes) -> None:
    same_string(data)


def acknowledgements_as_they_are_defined(message: CompactReader) -> list[tuple[int, int, bytes]]:
    found = []
    for _ in range(max(message.uvarint() - 1, 0)):
        first, last = message.int64(), message.int64()
        found.append((first, last, message.take(max(message.uvarint() - 1, 0)).tobytes()))
        message.tagged()
    return found


def acknowledgements(message: CompactReader) -> list[tuple[int, int, bytes]]:
    return [(ack[0], ack[1], bytes(ack[2])) for ack in read_acknowledgements(message)]


one = st.builds(
    lambda first, last, types, tags: struct.pack('>qq', first, last) + bytes((len(types) + 1,)) + types + tags,
    st.integers(-2, 1 << 40),
    st.integers(-2, 1 << 40),
    st.binary(max_size=3) | st.binary(min_size=1, max_size=1),
    st.sampled_from([b'\0', b'\0', b'\0', b'\1\7\1x']),
)


@settings(max_examples=300)
@given(st.lists(one, max_size=4), st.integers(0, 60), st.binary(max_size=3))
def test_acknowledgements_up_to_the_end_of_the_frame_or_beyond(acks: list[bytes], missing: int, behind: bytes) -> None:
    whole = bytes((len(acks) + 1,)) + b''.join(acks)
    for data in (whole, whole + behind, whole[: max(len(whole) - missing, 0)]):
        assert read(data, acknowledgements) == read(data, acknowledgements_as_they_are_defined)
