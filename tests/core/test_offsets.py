from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from acklog.core import offsets as cut
from acklog.core.offsets import above, below, chosen, lowest, pieces, ranges, span, within

FAR = 10**15  # a bitmap of everything up to here would need more memory than there is
SETS = st.sets(st.integers(0, 40) | st.integers(FAR, FAR + 40)).map(BitMap64)
PLACES = st.integers(0, 45) | st.integers(FAR - 3, FAR + 45)


@pytest.fixture(
    params=[(cut.WIDE, cut.FEW), (4, 2)], ids=['as it is', 'with small bounds'], autouse=True, scope='module'
)
def bounds(request: pytest.FixtureRequest) -> object:
    """Both ways of cutting."""
    before = cut.WIDE, cut.FEW
    cut.WIDE, cut.FEW = request.param
    yield
    cut.WIDE, cut.FEW = before


@given(SETS)
def test_ranges_are_the_runs(offsets: BitMap64) -> None:
    runs = ranges(offsets)
    assert [o for first, last in runs for o in range(first, last + 1)] == list(offsets)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(runs))


@given(SETS, PLACES, PLACES)
def test_cuts(offsets: BitMap64, first: int, last: int) -> None:
    assert list(within(offsets, first, last)) == [o for o in offsets if first <= o <= last]
    assert list(below(offsets, first)) == [o for o in offsets if o < first]
    assert list(above(offsets, first)) == [o for o in offsets if o >= first]


@given(SETS, st.integers(1, 20))
def test_the_lowest(offsets: BitMap64, count: int) -> None:
    assert list(lowest(offsets, count)) == list(offsets)[:count]


def test_a_cut_is_a_set_of_its_own() -> None:
    offsets = span(3, 5)
    for part in (lowest(offsets, 5), within(offsets, 0, 9), *pieces(offsets, 1000)):
        part.clear()
    assert list(offsets) == [3, 4, 5]


@given(SETS, SETS, PLACES, PLACES)
def test_chosen(among: BitMap64, named: BitMap64, first: int, last: int) -> None:
    assert chosen(named, among) == chosen([-1, *named], among) == named & among
    assert list(chosen(range(first, last), among)) == [o for o in among if first <= o < last]


def test_pieces_are_small_and_all() -> None:
    offsets = BitMap64(range(0, 2_000_000, 3))
    parts = list(pieces(offsets, 50_000))
    assert max(len(part.serialize()) for part in parts) <= 50_000
    assert BitMap64().union(*parts) == offsets
    assert sum(map(len, parts)) == len(offsets)
