"""Deaths, against a dict of them."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from acklog.core import burials as module
from acklog.core.burials import Burials, Death

OFFSETS = st.sets(st.integers(0, 60), min_size=1, max_size=12)
CALLS = st.lists(
    st.tuples(st.sampled_from(['die', 'die', 'die each', 'leave', 'snapshot']), OFFSETS, st.sampled_from('abc')),
    max_size=40,
)


@settings(deadline=None)
@given(CALLS)
def test_any_calls(calls: list[tuple[str, set[int], str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, 'GROUP', 6)
        patch.setattr(module, 'RECENT', 8)
        ours, theirs = Burials(), {}
        for now, (call, offsets, member) in enumerate(calls):
            chosen = BitMap64(offsets) & BitMap64(theirs) if call == 'leave' else BitMap64(offsets - set(theirs))
            if call == 'leave':
                ours.remove(chosen)
                theirs = {offset: death for offset, death in theirs.items() if offset not in chosen}
            elif call == 'snapshot':
                copy = Burials()
                for at, those, who in ours.items():
                    copy.put(those, at, who)
                ours = copy
            elif chosen:
                ats = [now + (offset % 3 if call == 'die each' else 0) for offset in chosen]
                ours.put(chosen, now if call == 'die' else array('q', ats), member)
                theirs.update({offset: Death(at, member) for offset, at in zip(chosen, ats, strict=True)})
            agree(ours, theirs)


def agree(ours: Burials, theirs: dict[int, Death]) -> None:
    everything = BitMap64(range(61))
    assert bool(ours) == bool(theirs)
    assert [ours.of(offset) for offset in everything] == [theirs.get(offset) for offset in everything]
    assert ours.among(everything) == theirs
    for bound in (0, 3, 10, 50):
        assert set(ours.before(bound)) == {offset for offset, death in theirs.items() if death.at < bound}


def test_deaths_one_by_one_are_small() -> None:
    """Below 30 bytes each."""
    burials = Burials()
    count = 100_000
    for offset in range(count):
        burials.put(BitMap64([offset * 3]), 1_700_000_000_000 + offset, f'member-{offset % 20}')
    size = sum(
        burial.keys.itemsize * len(burial.keys) * 2 + 4 * len(burial.whose) + len(burial.offsets.serialize())
        for burial in burials._burials
    )
    assert size < 30 * count
    assert burials.of(3 * 77_777) == Death(1_700_000_077_777, 'member-17')
