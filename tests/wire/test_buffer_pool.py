"""Buffers of large frames are used again, and nobody who still looks at a frame notices."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acklog.wire.buffer_pool import KEPT, SIZE, BufferPool
from acklog.wire.stream import LARGEST_CHUNK, FrameReader

from .test_stream import contents, feed, stream_of

sizes = st.sampled_from(
    [0, 10, LARGEST_CHUNK - 5, LARGEST_CHUNK - 4, LARGEST_CHUNK - 3, LARGEST_CHUNK, LARGEST_CHUNK + 1, 150_000,
     SIZE // 2, SIZE // 2 + 1, SIZE - 1, SIZE, SIZE + 1]
)  # fmt: skip
AFTERWARDS = ['back', 'back', 'back', 'held', 'a part held', 'dropped']


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(sizes, st.sampled_from(AFTERWARDS)), max_size=25),
    st.lists(st.integers(1, 1 << 18), min_size=1, max_size=4),
    st.integers(1, 3),
)
def test_frames_that_are_held_stay_as_they_are(
    frames: list[tuple[int, str]], pieces: list[int], connections: int
) -> None:
    pool = BufferPool()
    readers = [FrameReader(4 * SIZE, pool) for _ in range(connections)]
    held: list[tuple[memoryview, bytes]] = []
    for number, (size, afterwards) in enumerate(frames, 1):
        sent = contents(size, number)
        [frame] = feed(readers[number % connections], stream_of([sent]), pieces)
        assert frame == sent
        if afterwards == 'held':
            held.append((frame, sent))
        elif afterwards == 'a part held':
            held.append((frame[size // 3 : size // 2], sent[size // 3 : size // 2]))
        if afterwards.startswith(('back', 'a part')) and size > LARGEST_CHUNK:
            pool.give_back(frame)
    assert all(view == sent for view, sent in held)


@pytest.mark.parametrize('size', [SIZE // 2 + 1, 600_000, 1 << 20, SIZE])
@pytest.mark.parametrize('piece', [1 << 12, 1 << 16, 1 << 18])
def test_a_client_that_keeps_up_needs_one_buffer(size: int, piece: int) -> None:
    pool, buffers = BufferPool(), set()
    reader = FrameReader(4 * SIZE, pool)
    for number in range(5):
        [frame] = feed(reader, stream_of([contents(size, number)]), [piece])
        buffers.add(id(frame.obj))
        pool.give_back(frame)
    assert len(buffers) == 1


@pytest.mark.parametrize(
    'size', [LARGEST_CHUNK + 1, 150_000, 280_000, SIZE // 2, SIZE // 2 + 1, 1 << 20, SIZE, SIZE + 1]
)
@pytest.mark.parametrize('piece', [1 << 12, 70_000, 1 << 18])
def test_a_new_buffer_is_at_most_twice_the_frame(size: int, piece: int) -> None:
    [frame] = feed(FrameReader(4 * SIZE, BufferPool()), stream_of([contents(size, 1)]), [piece])
    assert len(frame.obj) < 2 * size  # type: ignore[arg-type]


def test_what_is_kept_is_bounded() -> None:
    pool = BufferPool()
    for frame in [memoryview(bytearray(SIZE)) for _ in range(KEPT + 3)]:
        pool.give_back(frame)
    assert len(list(iter(pool.take, None))) == KEPT


@pytest.mark.parametrize('buffer', [bytes(SIZE), bytearray(SIZE - 1), bytearray(SIZE + 1), bytearray(0)])
def test_other_buffers_are_not_kept(buffer: bytes | bytearray) -> None:
    pool = BufferPool()
    pool.give_back(memoryview(buffer))
    assert pool.take() is None
