"""A stream of bytes comes in pieces of any size and goes out as frames, which nobody writes again."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acklog.errors import ProtocolError
from acklog.wire.stream import LARGEST_CHUNK, SMALLEST_CHUNK, FrameReader

from .messages import peak_of

sizes = st.integers(0, 40) | st.sampled_from(
    [SMALLEST_CHUNK - 5, SMALLEST_CHUNK - 4, SMALLEST_CHUNK, LARGEST_CHUNK - 4, LARGEST_CHUNK - 3, 3 * LARGEST_CHUNK]
)


def contents(size: int, seed: int) -> bytes:
    return bytes([seed % 251]) * size


def stream_of(frames: list[bytes]) -> bytes:
    return b''.join(len(frame).to_bytes(4, 'big') + frame for frame in frames)


def feed(reader: FrameReader, stream: bytes, pieces: list[int]) -> list[memoryview]:
    """What comes out when at most so many bytes arrive at a time; the last number counts for the rest."""
    frames, position = [], 0
    arriving = itertools.chain(pieces, itertools.repeat(pieces[-1]))
    while position < len(stream):
        room = reader.get_buffer(-1)
        count = min(len(room), next(arriving), len(stream) - position)
        room[:count] = stream[position : position + count]
        position += count
        frames += reader.received(count)
    return frames


@settings(deadline=None)
@given(st.lists(sizes, max_size=12), st.lists(st.integers(1, 2 * LARGEST_CHUNK), min_size=1, max_size=5))
def test_frames_come_out_as_they_went_in(frame_sizes: list[int], pieces: list[int]) -> None:
    sent = [contents(size, seed) for seed, size in enumerate(frame_sizes)]
    reader = FrameReader(4 * LARGEST_CHUNK)
    received = feed(reader, stream_of(sent), pieces)
    assert received == sent  # also the first ones, after all the others arrived
    assert reader.pending == 0


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=8))
def test_byte_by_byte(frame_sizes: list[int]) -> None:
    sent = [contents(size, seed) for seed, size in enumerate(frame_sizes)]
    assert feed(FrameReader(1000), stream_of(sent), [1]) == sent


def test_what_a_receiver_writes_into_its_frame_stays_there() -> None:
    reader = FrameReader(1000)
    first, second = feed(reader, stream_of([b'aaaa', b'bbbb']), [100])
    first[:] = b'xxxx'
    (third,) = feed(reader, stream_of([b'cccc']), [100])
    assert [bytes(frame) for frame in (first, second, third)] == [b'xxxx', b'bbbb', b'cccc']


@pytest.mark.parametrize('size', [-1, -(1 << 31), 1001, (1 << 31) - 1])
def test_a_length_that_cannot_be_is_refused(size: int) -> None:
    reader = FrameReader(1000)
    with pytest.raises(ProtocolError, match=f'a frame of {size} bytes; at most 1000 are accepted'):
        feed(reader, size.to_bytes(4, 'big', signed=True), [4])


def test_frames_before_a_wrong_length_are_lost_with_the_connection() -> None:
    with pytest.raises(ProtocolError):
        feed(FrameReader(1000), stream_of([b'a']) + b'\xff\xff\xff\xff', [100])


def test_pending_tells_the_size_of_the_frame_that_is_being_received() -> None:
    reader = FrameReader(1 << 20)
    assert reader.pending == 0
    feed(reader, b'\x00\x00', [2])
    assert reader.pending == 2
    feed(reader, b'\x00\x09abc', [5])
    assert reader.pending == 13
    feed(reader, b'defghi', [6])
    assert reader.pending == 0
    feed(reader, (1 << 20).to_bytes(4, 'big') + b'abc', [7])
    assert reader.pending == (1 << 20) + 4


def test_who_announces_much_and_sends_little_costs_little() -> None:
    announced = (100 << 20).to_bytes(4, 'big')
    _, peak = peak_of(lambda: feed(FrameReader(100 << 20), announced + bytes(1000), [500]))
    assert peak < 4 * LARGEST_CHUNK


def test_a_large_frame_is_not_copied_over_and_over() -> None:
    frame = bytes(8 << 20)
    (received,), peak = peak_of(lambda: feed(FrameReader(100 << 20), stream_of([frame]), [1 << 16]))
    assert received == frame
    assert peak < 8 * len(frame)  # the stream, its frame, and the buffer that it grew out of


def test_an_idle_connection_keeps_no_large_chunk() -> None:
    reader = FrameReader(1 << 20)
    for _ in range(50):
        feed(reader, stream_of([bytes(10_000)] * 6), [1 << 20])
    for _ in range(20):
        feed(reader, stream_of([b'small']), [100])
    assert len(reader.get_buffer()) <= SMALLEST_CHUNK
