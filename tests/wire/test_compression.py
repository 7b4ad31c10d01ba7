"""Compression: unpacked as packed, bounded in size, clear about what is missing."""

from __future__ import annotations

import contextlib
import gzip
import os
import sys
import time

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acklog.errors import CorruptBatch
from acklog.wire import compression

from .messages import peak_of

PACKED = [name for name in compression.NAMES if name != 'none']


@pytest.mark.parametrize('name', compression.NAMES)
@settings(deadline=None, max_examples=30)
@given(pattern=st.binary(max_size=50), times=st.integers(0, 3000))
def test_unpacked_as_packed(name: str, pattern: bytes, times: int) -> None:
    data = pattern * times
    packed = compression.compress(name, data)
    assert compression.decompress(name, memoryview(packed), len(data)) == data
    if data and name != 'none':
        with pytest.raises(CorruptBatch):
            compression.decompress(name, packed, len(data) - 1)


@pytest.mark.parametrize('name', PACKED)
def test_a_bomb_costs_no_more_than_its_limit(name: str) -> None:
    bomb = compression.compress(name, bytes(64 << 20))

    def unpack() -> None:
        with pytest.raises(CorruptBatch, match='unpacks to more than'):
            compression.decompress(name, bomb, 1 << 20)

    assert len(bomb) < 4 << 20
    _, peak = peak_of(unpack)
    assert peak < (5 << 20) + len(bomb)


@pytest.mark.parametrize('name', PACKED)
@settings(deadline=None, max_examples=50)
@given(garbage=st.binary(max_size=60), cut=st.integers(0, 40))
def test_what_is_broken_is_refused(name: str, garbage: bytes, cut: int) -> None:
    packed = compression.compress(name, b'0123456789' * 10)
    for data in (garbage, packed[:cut], packed[:-1] + garbage):
        with contextlib.suppress(CorruptBatch):
            compression.decompress(name, data, 1 << 16)


def test_many_gzip_members_cost_no_more_each() -> None:
    """What lies behind a member must not be copied for each."""
    sizes = [0, 1, 16 << 10, 100_000, 0]
    packed = b''.join(gzip.compress(os.urandom(size)) for size in sizes)
    assert len(compression.decompress('gzip', packed, 1 << 20)) == sum(sizes)
    with pytest.raises(CorruptBatch, match='too early'):
        compression.decompress('gzip', packed[:-1], 1 << 20)
    begun = time.process_time()
    assert compression.decompress('gzip', gzip.compress(b'') * 200_000 + gzip.compress(b'end'), 1 << 20) == b'end'
    assert time.process_time() - begun < 2


def test_snappy_comes_bare_or_in_blocks() -> None:
    data = bytes(range(256)) * 1000
    assert compression.decompress('snappy', bytes(cramjam.snappy.compress_raw(data)), len(data)) == data
    assert compression.compress('snappy', data).startswith(b'\x82SNAPPY\0')


@pytest.mark.parametrize('name', ['snappy', 'lz4', 'zstd'])
def test_a_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'cramjam', None)
    for call in (lambda: compression.compress(name, b''), lambda: compression.decompress(name, b'', 1)):
        with pytest.raises(compression.CompressionUnavailable, match=f'{name} needs the package cramjam'):
            call()
    assert compression.decompress('gzip', compression.compress('gzip', b'works'), 5) == b'works'


def test_an_unknown_compression() -> None:
    with pytest.raises(ValueError, match='none, gzip, snappy, lz4, zstd'):
        compression.compress('brotli', b'')


def test_lz4_blocks_are_independent_as_java_needs_them() -> None:
    flags = compression.compress('lz4', b'x' * 200_000)[4]
    assert flags & 0x20
