"""Compression of record batches: gzip, snappy, lz4, zstd, each bounded in what it unpacks to.

The server passes batches on as they are; only clients, and the server when it must look into a batch (a dead letter, a
lookup by timestamp), come here. gzip is in the standard library; the others come from the package `cramjam`, imported
at first use, and a clear error says so when it is missing.

A few bytes can unpack to gigabytes, so nobody unpacks without a limit: gzip stops at it, snappy says its size
beforehand, and lz4 and zstd unpack into a buffer that grows up to the limit and no further.

Snappy comes in two forms: bare, and in the blocks of the `xerial` stream that Java's clients write; both are read, the
second is written.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from acklog.errors import CorruptBatch
from acklog.wire.primitives import Buffer

NAMES = ('none', 'gzip', 'snappy', 'lz4', 'zstd')  # by their number in a batch's attributes

_XERIAL = b'\x82SNAPPY\x00'
_XERIAL_HEAD = _XERIAL + struct.pack('>ii', 1, 1)
_XERIAL_BLOCK = 32 << 10
_GZIP_STEP = 16 << 10  # bytes: what is left of them behind a member is copied, so it must not be all the rest
_INT = struct.Struct('>i')


class CompressionUnavailable(RuntimeError):
    """The package that this compression needs is not installed."""


def compress(name: str, data: Buffer) -> bytes:
    """`data` compressed. `name`: one of `NAMES`. Raises CompressionUnavailable, ValueError for another name."""
    if name == 'none':
        return bytes(data)
    if name == 'gzip':
        packer = zlib.compressobj(wbits=31)
        return packer.compress(data) + packer.flush()
    if name == 'snappy':
        return _snappy_blocks(_cramjam('snappy').snappy, bytes(data))
    if name == 'lz4':
        return _lz4_independent(_cramjam('lz4').lz4, bytes(data))
    if name == 'zstd':
        return bytes(_cramjam('zstd').zstd.compress(bytes(data)))
    raise ValueError(f'no such compression: {name!r}; there are {", ".join(NAMES)}')


def _lz4_independent(lz4: Any, data: bytes) -> bytes:
    """Java's clients and brokers refuse blocks that lean on earlier ones (KafkaLZ4BlockInputStream)."""
    packer = lz4.Compressor(block_linked=False)
    packer.compress(data)
    return bytes(packer.finish())


def decompress(name: str, data: Buffer, max_bytes: int) -> Buffer:
    """`data` unpacked, at most `max_bytes` of it.

    Raises CorruptBatch when it is broken or would be larger, CompressionUnavailable.
    """
    if name == 'none':
        return data
    if name == 'gzip':
        return _gunzip(data, max_bytes)
    module = _cramjam(name)
    try:
        if name == 'snappy':
            return _unsnappy(module.snappy, bytes(data), max_bytes)
        codec = module.lz4 if name == 'lz4' else module.zstd
        return _growing(codec.decompress_into, bytes(data), max_bytes)
    except module.DecompressionError as error:
        raise CorruptBatch(f'{name} data is broken: {error}') from None


def _too_large(name: str, max_bytes: int) -> CorruptBatch:
    return CorruptBatch(f'{name} data unpacks to more than {max_bytes} bytes')


def _cramjam(name: str) -> Any:
    try:
        import cramjam
    except ImportError:
        raise CompressionUnavailable(
            f'{name} needs the package cramjam, which is not installed: pip install cramjam'
        ) from None
    return cramjam


def _gunzip(data: Buffer, max_bytes: int) -> bytes:
    pieces, size, position = [], 0, 0
    view = memoryview(data)
    try:
        while position < len(view):  # a gzip file may have several members
            unpacker = zlib.decompressobj(wbits=31)
            step = _GZIP_STEP
            while not unpacker.eof:
                if position == len(view):
                    raise CorruptBatch('gzip data ends too early')
                given = view[position : position + step]
                piece = unpacker.decompress(given, max_bytes - size + 1)
                size += len(piece)
                if size > max_bytes:
                    raise _too_large('gzip', max_bytes)
                pieces.append(piece)
                position += len(given) - len(unpacker.unused_data)
                step *= 4
    except zlib.error as error:
        raise CorruptBatch(f'gzip data is broken: {error}') from None
    return pieces[0] if len(pieces) == 1 else b''.join(pieces)


def _growing(into: Callable[[bytes, bytearray], int], data: bytes, max_bytes: int) -> memoryview:
    """Unpack into a buffer that is enlarged fourfold until it is enough; only its size is told by what it raises."""
    size = min(max_bytes, max(4096, 8 * len(data)))
    while True:
        unpacked = bytearray(size)
        try:
            return memoryview(unpacked)[: into(data, unpacked)]
        except Exception as error:  # cramjam's own, told apart by its words only
            if 'whole buffer' not in str(error):
                raise
            if size == max_bytes:
                raise CorruptBatch(f'the data unpacks to more than {max_bytes} bytes') from None
        size = min(max_bytes, 4 * size)


def _snappy_blocks(snappy: Any, data: bytes) -> bytes:
    out = bytearray(_XERIAL_HEAD)
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        out += _INT.pack(len(block))
        out += block
    return bytes(out)


def _unsnappy(snappy: Any, data: bytes, max_bytes: int) -> bytes:
    if not data.startswith(_XERIAL):
        return _unsnappy_block(snappy, data, max_bytes)
    unpacked = bytearray()
    position = len(_XERIAL_HEAD)
    while position < len(data):
        if position + 4 > len(data):
            raise CorruptBatch('snappy data ends in the length of a block')
        (size,) = _INT.unpack_from(data, position)
        position += 4
        if not 0 <= size <= len(data) - position:
            raise CorruptBatch(f'a snappy block of {size} bytes in {len(data) - position}')
        unpacked += _unsnappy_block(snappy, data[position : position + size], max_bytes - len(unpacked))
        position += size
    return bytes(unpacked)


def _unsnappy_block(snappy: Any, data: bytes, max_bytes: int) -> bytes:
    if snappy.decompress_raw_len(data) > max_bytes:
        raise _too_large('snappy', max_bytes)
    return bytes(snappy.decompress_raw(data))
