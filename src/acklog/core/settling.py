"""What an acknowledgement does to records, once it has been checked: at once, or when a transaction ends.

Strategy: inside a transaction records are pending, by member and kind; a release's time is a deferral meanwhile, which
the failed delivery finds when the transaction commits.
"""

from __future__ import annotations

from pyroaring import BitMap64

from acklog.core import events as ev
from acklog.core.acknowledge import Settlement
from acklog.core.apply import record
from acklog.core.failing import REJECTED, fail, instant_of
from acklog.core.kinds import Ack, Cause, Return, When
from acklog.core.offsets import span
from acklog.core.share_config import ShareConfig
from acklog.core.state import ShareState
from acklog.errors import InvalidRecordState

_DONE, _RELEASE, _REJECT = (Ack.ACCEPT, Ack.GAP), Ack.RELEASE, Ack.REJECT  # looked up in the enum each costs 60 ns


def settle_all(state: ShareState, config: ShareConfig, member: str, settlement: Settlement, now: int) -> None:
    """At once."""
    for (kind, at), offsets in settlement.groups.items():
        _settle(state, config, member, kind, offsets, now, at)
    if settlement.times:
        fail(state, config, BitMap64(settlement.times), Cause.RELEASED, now, settlement.times)
    for offsets, words in settlement.said:
        record(state, ev.Said(offsets, words))


def pend_all(state: ShareState, config: ShareConfig, member: str, settlement: Settlement, now: int) -> None:
    """When the member's transaction ends; but it renews at once."""
    for (kind, at), offsets in settlement.groups.items():
        if kind == Ack.RENEW:
            _settle(state, config, member, kind, offsets, now, at)
        else:
            _pend(state, member, Ack(kind), offsets, at, now + config.cut_ms)
    for offset, at in settlement.times.items():
        _pend(state, member, Ack.RELEASE, span(offset, offset), at, now + config.cut_ms)


def _settle(
    state: ShareState, config: ShareConfig, member: str, kind: int, offsets: BitMap64, now: int, at: When | None
) -> None:
    """Acquired or pending ones were acknowledged so; `at`: of a release, not before."""
    if kind in _DONE:
        record(state, ev.Settled(offsets))
    elif kind == _RELEASE:
        fail(state, config, offsets, Cause.RELEASED, now, at)
    elif kind == _REJECT:
        record(state, ev.Died(offsets, REJECTED, config.dead_letter_topic, False, now, member))
    else:
        record(state, ev.Renewed(offsets, now + config.lock_ms))


def _pend(state: ShareState, member: str, kind: Ack, offsets: BitMap64, at: When | None, since: int) -> None:
    if kind is Ack.RELEASE and at is not None:
        record(state, ev.Deferred(offsets, *instant_of(at, since)))
    record(state, ev.Pended(member, kind, offsets))


def end_transaction(state: ShareState, config: ShareConfig, member: str, commit: bool, now: int) -> None:
    """What the member acknowledged in it happens, or comes back unattempted."""
    for (holder, kind), offsets in list(state.pending.items()):
        if holder == member and commit:
            _settle(state, config, member, kind, offsets.copy(), now, None)
        elif holder == member:
            record(state, ev.Returned(offsets.copy(), Return.ABORTED))


def defer(state: ShareState, since: int, offset: int, at: When, deliveries: int | None) -> None:
    """If the current delivery fails, no earlier than `at`, of which a delay counts from `since`. Raises
    InvalidRecordState."""
    if offset < 0 or state.locks.of(offset) is None or deliveries not in (None, state.history.deliveries.of(offset)):
        raise InvalidRecordState(f'offset {offset}: held by nobody, or not in that delivery')
    record(state, ev.Deferred(span(offset, offset), *instant_of(at, since)))
