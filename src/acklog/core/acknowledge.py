"""Checking a request's acknowledgements as a whole (rule 3).

Strategy: three forms come in, all without an object per record: ranges `(first, last, kind)`, the same with a release
time, and a range with a kind for each offset, as Kafka's protocol has it. Checking a range is counting: as many held
as there are records left. The common shape of many acknowledgements, single offsets of alternating kinds, is handled
in columns, and so are releases with a time each. The outcome is a set of offsets for each kind and release time;
nothing has been changed by then.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress

from pyroaring import BitMap64

from acklog.core.kinds import Ack, When
from acklog.core.offsets import WIDE, within
from acklog.core.state import ShareState
from acklog.errors import InvalidRecordState

Kinds = int | bytes  # one Ack for a whole range, or one for each offset of it
Acknowledgement = (
    tuple[int, int, Kinds] | tuple[int, int, Kinds, When | None] | tuple[int, int, Kinds, When | None, str | None]
)

_MASKS = [bytes(int(byte == kind) for byte in range(256)) for kind in Ack]
_HIGHEST_KIND = max(Ack)
COLUMNS = 4  # from so many acknowledgements on, columns are faster


class Settlement:
    """What a request's acknowledgements come to.

    `groups`: offsets by kind and release time; `times`: release times of single offsets that are in no group; `said`:
    offsets whose holder said something about them.
    """

    __slots__ = ('groups', 'said', 'times')

    def __init__(self) -> None:
        self.groups: dict[tuple[int, When | None], BitMap64] = {}
        self.times: dict[int, When] = {}
        self.said: list[tuple[BitMap64, str]] = []

    def chosen(self, kind: int, at: When | None) -> BitMap64:
        """The group of these, empty if it is new."""
        key = kind, at if kind == Ack.RELEASE else None
        offsets = self.groups.get(key)
        if offsets is None:
            offsets = self.groups[key] = BitMap64()
        return offsets


def check(
    state: ShareState, member: str, acks: Sequence[Acknowledgement], at: When | None, lock: int | None
) -> Settlement:
    """What `acks` come to. Raises InvalidRecordState when any of them names what `member` does not hold (under `lock`).

    Done offsets in a range with held ones are passed over, and so is a range named as GAP.
    """
    held = state.locks.held.get(member)
    if held is None:
        held = BitMap64()
    if lock is not None:
        held = state.locks.under(lock, _named(acks, held))
    if len(acks) == 1 and len(acks[0]) < 5 and isinstance(acks[0][2], int):
        return _single(state, held, acks[0], at)
    if len(acks) >= COLUMNS:
        settlement = _columns(held, acks, at)
        if settlement is not None:
            return settlement
    return _one_by_one(state, held, acks, at)


def _single(state: ShareState, held: BitMap64, ack: Acknowledgement, at: When | None) -> Settlement:
    """One range of one kind, which is what is asked most often: nothing to collect."""
    first, last, kinds = ack[0], ack[1], ack[2]
    assert isinstance(kinds, int)
    settlement = Settlement()
    if _check_range(state, held, first, last, kinds):
        when = at if len(ack) == 3 or ack[3] is None else ack[3]
        settlement.groups[kinds, when if kinds == Ack.RELEASE else None] = within(held, first, last)
    return settlement


def _named(acks: Sequence[Acknowledgement], held: BitMap64) -> BitMap64:
    result = BitMap64()
    for ack in acks:
        if 0 <= ack[0] <= ack[1]:
            result |= within(held, ack[0], ack[1])
    return result


def _columns(held: BitMap64, acks: Sequence[Acknowledgement], at: When | None) -> Settlement | None:
    """All held, none twice, and single offsets, all with times of their own and released, or all without; or short
    ranges among them, all of one kind, without times. None where it is anything else."""
    try:
        firsts, lasts, kinds, *times = zip(*acks, strict=True)
        if len(times) > 1:
            return None
        column = bytes(kinds)
        offsets = BitMap64(array('Q', firsts))
        alike, count = column.count(column[0]) == len(column), len(firsts)
        if firsts != lasts:
            count += sum(lasts) - sum(firsts)
            if times or not alike or not _add_ranges(offsets, firsts, lasts):
                return None
    except (ValueError, TypeError, OverflowError):
        return None
    if len(offsets) != count or not offsets <= held or max(column) > _HIGHEST_KIND:
        return None
    settlement = Settlement()
    if times:
        if not alike or column[0] != Ack.RELEASE or None in times[0]:
            return None
        _timed(settlement, dict(zip(firsts, times[0], strict=True)))
        return settlement
    for kind in set(column):
        if alike:
            settlement.groups[kind, at] = offsets
        else:
            settlement.groups[kind, at] = BitMap64(array('Q', compress(firsts, column.translate(_MASKS[kind]))))
    return settlement


def _add_ranges(offsets: BitMap64, firsts: Sequence[int], lasts: Sequence[int]) -> bool:
    """Add what lies behind the first of each range; False if one is none, or too long for this."""
    for first, last in zip(firsts, lasts, strict=True):
        if last != first:
            if not 0 < last - first < WIDE:
                return False
            offsets.add_range(first + 1, last + 1)
    return True


def _timed(settlement: Settlement, times: dict[int, When]) -> None:
    """Single offsets that are released, each with a time; most are alike, or none."""
    if len(set(times.values())) > 1:
        settlement.times = times
        return
    for offset, when in times.items():
        settlement.chosen(Ack.RELEASE, when).add(offset)


def _one_by_one(state: ShareState, held: BitMap64, acks: Sequence[Acknowledgement], at: When | None) -> Settlement:
    settlement = Settlement()
    times: dict[int, When] = {}
    count = 0
    for ack in acks:
        first, last, kinds = ack[0], ack[1], ack[2]
        count += _check_range(state, held, first, last, kinds)
        when = at if len(ack) == 3 or ack[3] is None else ack[3]
        if len(ack) == 5 and ack[4]:
            _say(settlement, held, first, last, kinds, ack[4])
        if not isinstance(kinds, int):
            _spread(settlement, first, last, kinds, when)
        elif first == last and kinds == Ack.RELEASE and when is not None and first not in times:
            times[first] = when
        elif last - first < WIDE:
            settlement.chosen(kinds, when).add_range(first, last + 1)
        else:
            offsets = settlement.chosen(kinds, when)
            offsets |= within(held, first, last)
    _timed(settlement, times)
    total = BitMap64(settlement.times)
    for offsets in settlement.groups.values():
        offsets &= held
        total |= offsets
    if len(total) != count:
        raise InvalidRecordState('a record is acknowledged twice')
    settlement.groups = {key: offsets for key, offsets in settlement.groups.items() if offsets}
    return settlement


def _say(settlement: Settlement, held: BitMap64, first: int, last: int, kinds: Kinds, words: str) -> None:
    """Words count for what is handed back."""
    offsets = within(held, first, last)
    if not isinstance(kinds, int):
        back = [kind in (Ack.RELEASE, Ack.REJECT) for kind in kinds]
        offsets &= BitMap64(array('Q', compress(range(first, last + 1), back)))
    elif kinds not in (Ack.RELEASE, Ack.REJECT):
        return
    if offsets:
        settlement.said.append((offsets, words))


def _offsets(first: int, last: int) -> str:
    return f'offset {first}' if first == last else f'offsets {first} to {last}, or some of them'


def _check_range(state: ShareState, held: BitMap64, first: int, last: int, kinds: Kinds) -> int:
    """How many of the range are held; raises where it names anything that is neither held nor done."""
    if not 0 <= first <= last < state.end:
        raise InvalidRecordState(
            f'{_offsets(first, last)}: nothing has been taken from the log there, which was read to {state.end}'
        )
    after = last + 1
    here = held.range_cardinality(first, after)
    if here != state.owed.range_cardinality(first, after) or (
        state.dead and state.dead.range_cardinality(first, after)
    ):
        raise InvalidRecordState(f'{_offsets(first, last)}: held by another member, by an older lock, or by nobody')
    if isinstance(kinds, int):
        bad, gap = not 0 <= kinds <= _HIGHEST_KIND, kinds == Ack.GAP
    else:
        bad, gap = len(kinds) != after - first or max(kinds) > _HIGHEST_KIND, not any(kinds)
    if bad:
        raise InvalidRecordState(f'{_offsets(first, last)}: unknown kinds of acknowledgement, or not one each')
    if not here and not gap:
        raise InvalidRecordState(f'{_offsets(first, last)}: done already')
    return here


def _spread(settlement: Settlement, first: int, last: int, kinds: bytes, at: When | None) -> None:
    offsets = range(first, last + 1)
    for kind in set(kinds):
        if kinds.count(kind) == len(kinds):
            settlement.chosen(kind, at).add_range(first, last + 1)
        else:
            chosen = settlement.chosen(kind, at)
            chosen |= BitMap64(array('Q', compress(offsets, kinds.translate(_MASKS[kind]))))
