"""The header that says from when on a record may be delivered, found in whole batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lines import at_most

from acklog.errors import CorruptBatch
from acklog.wire import deliver_at
from acklog.wire.compression import NAMES
from acklog.wire.deliver_at import NAME, BadInstant
from acklog.wire.record_batch import HEADER_SIZE, Header, NewRecord, build, read_header
from acklog.wire.records import varint

NOW = 1_700_000_000_000
name = NAME.encode()


def instants(data: bytes | bytearray, position: int, header: Header) -> Sequence[tuple[int, int]]:
    """What it finds, without anybody who would have a turn."""
    looking: Any = deliver_at.instants(data, position, header)
    while True:
        try:
            next(looking)
        except StopIteration as stop:
            found: Sequence[tuple[int, int]] = stop.value
            return found


# the name may stand anywhere: as another header's value, within a name, in keys and values
words = st.binary(max_size=6) | st.sampled_from([name, b'x' + name, name * 3])
others = st.tuples(st.text(max_size=4) | st.sampled_from([NAME + 's', NAME.upper()]), st.none() | words)


@st.composite
def records(draw: st.DrawFn) -> tuple[NewRecord, int | None]:
    """A record, and the instant that it names."""
    headers = draw(st.lists(others, max_size=3))
    due = draw(st.none() | st.integers(0, (1 << 63) - 1))
    if due is not None:
        headers.insert(draw(st.integers(0, len(headers))), (NAME, b'%d' % due))
    timestamp = draw(st.none() | st.integers(0, 1 << 62))
    return NewRecord(draw(st.none() | words), draw(st.none() | words), headers, timestamp), due


@given(st.lists(records(), min_size=1, max_size=8), st.sampled_from(NAMES))
def test_the_instants_of_a_batch(some: list[tuple[NewRecord, int | None]], compression: str) -> None:
    data = build([record for record, _ in some], timestamp=NOW, compression=compression)
    expected = [(delta, due) for delta, (_, due) in enumerate(some) if due is not None]
    assert list(instants(data, 0, read_header(data))) == expected


def with_body(body: bytes, count: int) -> bytes:
    made = bytearray(build([b''], timestamp=NOW)[:HEADER_SIZE] + body)
    made[8:12] = (len(made) - 12).to_bytes(4)
    made[57:61] = count.to_bytes(4)
    made[23:27] = (count - 1).to_bytes(4)
    return bytes(made)


parts = st.sampled_from(
    [name, b'\x00', b'\x01', b'\x85\x80\x00', b'\xff' * 12, varint(10**6), varint(1 << 60), b'\x22' + name]
)


@given(st.lists(parts | st.binary(max_size=8), max_size=30).map(b''.join), st.integers(1, 30) | st.just((1 << 31) - 1))
def test_any_bytes_in_the_place_of_records(body: bytes, count: int) -> None:
    data = with_body(body, count)
    try:
        with at_most(lines=10_000):
            found = instants(data, 0, read_header(data))
    except (CorruptBatch, BadInstant):
        found = []
    assert [delta for delta, _ in found] == sorted({delta for delta, _ in found})


def test_a_record_that_claims_the_headers_of_all_behind_it() -> None:
    """Each would have the rest of the batch gone through: a thousand times 100,000 headers."""
    record = b'\0\0\0' + varint(len(name)) + name + b'\1' + varint(100_000)
    data = with_body((varint(len(record)) + record) * 1000 + bytes(300_000), 1000)
    with pytest.raises(CorruptBatch, match='100000 headers in'), at_most(lines=1000):
        instants(data, 0, read_header(data))


def test_records_that_are_too_short_to_be_any() -> None:
    """There would be one for each byte: sixteen million, out of some hundred that are sent."""
    data = with_body(bytes(1000) + name, 1000)
    with pytest.raises(CorruptBatch, match='a record of 0 bytes'), at_most(lines=1000):
        instants(data, 0, read_header(data))
