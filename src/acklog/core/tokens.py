"""Settling records by the number of the lock that holds them, for protocols that have it: each stands alone.

Strategy: what was settled so is remembered by lock and kind, the newest few thousand locks of a share partition, in the
journal like everything else; so a repeat gives the same answer, over a restart too. What its lock does not hold any
more and what is not remembered has been lost to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core.apply import record
from acklog.core.kinds import Ack
from acklog.core.share_partition import SharePartition
from acklog.core.state import ShareState

Outcome = Literal['ok', 'renewed', 'lost', 'settled']
_Said = tuple[int, int, int, int | None, str | None]  # offset, offset, kind, at, words


class TokenAck(NamedTuple):
    """What became of the record at `offset`, held under `lock`. `at` (ms) is for a release, `words` for that and a
    rejection."""

    offset: int
    lock: int
    kind: Ack
    at: int | None = None
    words: str | None = None


class Held(NamedTuple):
    """What of one lock is to be settled: its member, and what became of each."""

    member: str
    acks: list[_Said]


def settle(partition: SharePartition, now: int, acks: Sequence[TokenAck]) -> list[Outcome]:
    """Settle each of `acks` that its lock still holds: 'ok', 'renewed' or, where it does not, 'lost'. One that was
    settled before gives the same answer, or 'settled' if it was in another way."""
    partition.advance(now)
    outcomes, todo = _judge(partition.state, acks)
    remembered = _answered(todo)
    for lock, held in todo.items():
        partition.acknowledge(now, held.member, held.acks, lock=lock)
    for event in remembered:
        record(partition.state, event)
    return outcomes


def _judge(state: ShareState, acks: Sequence[TokenAck]) -> tuple[list[Outcome], dict[int, Held]]:
    """The outcome of each, and what of it is to be done, by lock. 'settled': it was, in another way."""
    outcomes: list[Outcome] = []
    todo: dict[int, Held] = {}
    acks_of: dict[int, dict[int, _Said]] = {}  # by lock and offset
    said: dict[tuple[int, int], Ack] = {}
    for ack in acks:
        key = ack.offset, ack.lock
        lock = state.locks.of(ack.offset)
        if lock is None or lock.number != ack.lock:
            outcomes.append(_repeated(state, ack))
        elif key in said and said[key] is not Ack.RENEW:
            outcomes.append('ok' if said[key] is ack.kind else 'settled')
        else:
            if key in said:  # renewed before in the same request: what follows is what counts
                del acks_of[ack.lock][ack.offset]
            said[key] = ack.kind
            outcomes.append('renewed' if ack.kind is Ack.RENEW else 'ok')
            if ack.lock not in todo:
                todo[ack.lock], acks_of[ack.lock] = Held(lock.member, []), {}
            acks_of[ack.lock][ack.offset] = (ack.offset, ack.offset, ack.kind, ack.at, ack.words)
    for number, held in todo.items():
        held.acks.extend(acks_of[number].values())
    return outcomes, todo


def _repeated(state: ShareState, ack: TokenAck) -> Outcome:
    for kind in (Ack.ACCEPT, Ack.RELEASE, Ack.REJECT):
        offsets = state.answered.get((ack.lock, kind))
        if offsets is not None and ack.offset in offsets:
            return 'ok' if kind == ack.kind else 'settled'
    return 'lost'


def _answered(todo: dict[int, Held]) -> list[ev.Answered]:
    """What is to be remembered of what is to be done."""
    result = []
    for lock, held in todo.items():
        by_kind: dict[int, list[int]] = {}
        for offset, _, kind, _, _ in held.acks:
            by_kind.setdefault(kind, []).append(offset)
        result += [
            ev.Answered(lock, Ack(kind), BitMap64(offsets)) for kind, offsets in by_kind.items() if kind != Ack.RENEW
        ]
    return result
