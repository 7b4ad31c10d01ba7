"""The bytes of events: everything comes back, bytes are what the format says, anything else is Damaged."""

from __future__ import annotations

from array import array
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from acklog.broker.journal import event_codec
from acklog.broker.journal.event_codec import _EVENTS, _WRITERS, FORMAT, decode, encode
from acklog.broker.journal.fields import DUES, INT, LATER, OFFSETS, TEXT, Field, Reader, Writer
from acklog.core import events as ev
from acklog.core.kept import Began, KeptLock
from acklog.core.kinds import Ack, Until
from acklog.core.offsets import span
from acklog.core.share_partition import ShareConfig, SharePartition
from acklog.errors import Damaged

INTS = st.integers(-(1 << 63), (1 << 63) - 1)
PLACES = st.integers(0, 300) | st.integers(0, (1 << 63) - 1)
SETS = st.builds(span, st.integers(0, 1 << 40), st.integers(0, 1 << 20)) | st.sets(PLACES, max_size=50).map(BitMap64)
TIMES = INTS | st.lists(INTS, max_size=30).map(lambda times: array('q', times))
FIELDS: dict[int, st.SearchStrategy[Any]] = {
    id(INT): INTS,
    id(TEXT): st.text(max_size=40),
    id(OFFSETS): SETS,
    id(DUES): st.none() | TIMES,
    id(LATER): st.none() | st.tuples(SETS.filter(bool), TIMES),
}


def values(field: Field) -> st.SearchStrategy[Any]:
    """What a field may hold; a choice is read from its bytes."""
    if id(field) in FIELDS:
        return FIELDS[id(field)]
    choices = []
    for byte in range(256):
        try:
            choices.append(field.get(Reader((byte,)), 0)[0])
        except IndexError:
            break
    return st.sampled_from(choices)


EVENTS = st.one_of(
    [st.tuples(*map(values, fields)).map(lambda told, make=make: make(*told)) for make, fields in _EVENTS.values()]
)


TAKEN = st.tuples(*map(values, _EVENTS[1][1])).map(lambda told: ev.Taken(*told))


@settings(max_examples=500, deadline=None)
@given(st.lists(EVENTS, max_size=6))
def test_everything_comes_back(events: list[ev.Event]) -> None:
    back = decode(encode(events))
    assert back == events
    assert [type(event) for event in back] == [type(event) for event in events]


@settings(max_examples=300, deadline=None)
@given(st.lists(TAKEN, min_size=1, max_size=4))
def test_what_is_put_by_hand_has_the_bytes_of_its_fields(events: list[ev.Event]) -> None:
    out = Writer((FORMAT,))
    for event in events:
        number, puts = _WRITERS[type(event)]
        out.append(number)
        for put, value in zip(puts, event, strict=True):
            put(out, value)
    assert encode(events) == out


def test_every_event_has_a_number() -> None:
    assert {make for make, _ in _EVENTS.values()} == set(ev.Event.__args__)


@pytest.mark.parametrize(
    ('event', 'data'),
    [
        (ev.Settled(span(5, 5)), '01 02 00 0000000000000005'),
        (ev.Settled(span(5, 504)), '01 02 01 0000000000000005 000001f4'),
        (ev.Settled(BitMap64([1, 3])), '01 02 02 00000020 ' + BitMap64([1, 3]).serialize().hex()),
        (ev.Settled(BitMap64()), '01 02 02 00000000'),
        (ev.Renewed(span(5, 5), 1 << 40), '01 08 00 0000000000000005 0000010000000000'),
        (ev.Pended('mé', Ack.REJECT, span(5, 5)), '01 0a 00000003 6dc3a9 03 00 0000000000000005'),
        (ev.Sought(2, 9), '01 10 0000000000000002 0000000000000009'),
        (ev.LogStarted(9), '01 11 0000000000000009'),
        (ev.ClockStepped(1 << 40, -5), '01 14 0000010000000000 fffffffffffffffb'),
        (ev.Deferred(span(5, 5), 1 << 40, Until.DELAY), '01 1a 00 0000000000000005 0000010000000000 00'),
        (Began(1, 2, 3, 4), '01 40 0000000000000001 0000000000000002 0000000000000003 0000000000000004'),
    ],
)
def test_bytes(event: ev.Event, data: str) -> None:
    """These stay as they are: older journals hold them."""
    assert encode([event]).hex() == data.replace(' ', '')


@pytest.mark.parametrize(
    ('data', 'event'),
    [
        ('01 09 00 0000000000000005 0000010000000000', ev.Deferred(span(5, 5), 1 << 40, Until.NAMED)),
        ('01 05 00 0000000000000005 00000001 6d 00 01', ev.Died(span(5, 5), 'm', False, True)),
        ('01 0c 00 0000000000000005', ev.Redriven(span(5, 5))),
        (
            '01 43 0000000000000001 00000001 6d 0000010000000000 00 0000000000000005',
            KeptLock(1, 'm', 1 << 40, span(5, 5)),
        ),
    ],
)
def test_what_is_not_written_any_more_is_read(data: str, event: ev.Event) -> None:
    back = decode(bytes.fromhex(data))
    assert back == [event]
    assert encode(back) != bytes.fromhex(data)


@given(st.lists(EVENTS, min_size=1, max_size=3))
def test_cut_anywhere_it_is_damaged_or_whole_events(events: list[ev.Event]) -> None:
    data = encode(events)
    whole = {len(encode(events[:count])): count for count in range(len(events) + 1)}
    for size in [*range(min(len(data), 60)), len(data) - 1]:
        if size in whole:
            assert decode(data[:size]) == events[: whole[size]]
        else:
            with pytest.raises(Damaged):
                decode(data[:size])


@pytest.mark.parametrize(
    ('data', 'why'),
    [
        (b'', 'index out of range'),
        (b'\x02', 'format 2; this version of acklog reads 1'),
        (b'\x01\xff', '255'),
        (b'\x01\x02\x09', 'offsets of form 9'),
        (b'\x01\x02\x02\xff\xff\xff\xffabc', 'bytes are missing'),
        (b'\x01\x02\x02\x00\x00\x00\x03abc', 'Could not deserialize'),
        (b'\x01\x0a\x00\x00\x00\x01\xff\x03\x00' + bytes(8), 'decode'),
    ],
)
def test_damage_is_named(data: bytes, why: str) -> None:
    with pytest.raises(Damaged, match=why):
        decode(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_events_or_damaged(data: bytes) -> None:
    with suppress(Damaged):
        decode(bytes([event_codec.FORMAT]) + data)


def test_a_million_holes_are_small_in_a_whole_snapshot() -> None:
    state = SharePartition(ShareConfig(max_in_flight=3_000_000))
    reservation = state.reserve(0, 'm', 2_000_000, False, 2_000_000)
    assert reservation is not None
    state.acquire(0, reservation, [(0, 1_999_999, False)])
    state.acknowledge(0, 'm', [(0, 1_999_999, bytes(1 + o % 2 for o in range(2_000_000)))])
    reservation = state.reserve(0, 'm', 1000, True, 2_000_000)
    assert reservation is not None
    state.acquire(0, reservation, [(0, 1_999_999, False)])
    data = encode(state.snapshot())
    assert len(data) < 300_000
    copy = SharePartition(ShareConfig())
    for event in decode(data):
        copy.fold(event)
    assert copy.status.counts() == state.status.counts() == (999_000, 0, 1000, 0, 0, 0)
    assert [copy.status.record(o) for o in (1, 1001, 4001, 1_999_999)] == [
        state.status.record(o) for o in (1, 1001, 4001, 1_999_999)
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60_000), st.integers(0, 30_000)), max_size=8))
def test_large_sets_come_back_however_like_they_are(changes: list[tuple[int, int, int]]) -> None:
    sets = [BitMap64(range(0, 100_000, step)) for step in (2, 3, 7)]
    events = []
    for which, first, length in changes:
        sets[which].flip_inplace(first, first + length)
        events.append(ev.Settled(sets[which].copy()))
    assert decode(encode(events)) == events


def test_a_difference_from_nothing_is_damaged() -> None:
    with pytest.raises(Damaged, match='index out of range'):
        decode(bytes.fromhex('01 02 03 00 02 00000000'))
