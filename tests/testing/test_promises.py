"""What is found in diaries of a group that releases until a time, rejects, redrives and seeks."""

from __future__ import annotations

from acklog.testing.diary import Entry, What
from acklog.testing.promises import Events, Findings, Promises, Span

PUBLISHED = ('p', Entry('confirmed', 0.0, 0, [7], [70]))

Told = tuple[str, Entry]


def got(who: str, at: float, nth: int = 1) -> Told:
    return who, Entry('delivered', at, 0, [7], [70], [nth])


def said(who: str, what: What, at: float, nth: int = 1, words: str = '', due: float = 0.0) -> Told:
    return who, Entry(what, at, -1, [7], (), [nth], words, [due] if due else [])


def accepted(who: str, at: float, nth: int = 1) -> list[Told]:
    return [said(who, 'accepting', at, nth), said(who, 'accepted', at + 0.1, nth)]


def rejected(who: str, at: float, nth: int = 1) -> list[Told]:
    return [said(who, 'rejecting', at, nth), said(who, 'rejected', at + 0.1, nth)]


def released(who: str, at: float, due: float) -> list[Told]:
    return [said(who, 'releasing', at, 1, 'at', due), said(who, 'released', at + 0.1, 1, 'at', due)]


def found(*told: Told, events: Events | None = None) -> Findings:
    return Promises(events or Events()).read([PUBLISHED, *told])


def test_all_is_well() -> None:
    findings = found(got('a', 1), *released('a', 2, due=5), got('b', 5.25, 2), *accepted('b', 6, 2))
    assert findings.ok and findings.named_times == 1 and findings.lateness == [0.25]


def test_early() -> None:
    assert found(got('a', 1), *released('a', 2, due=5), got('b', 4.9, 2), *accepted('b', 6, 2)).early == {7}


def test_an_instant_comes_sooner_when_the_wall_clock_was_set_and_a_delay_does_not() -> None:
    def early(kind: str, comes: float) -> set[int]:
        ending = [said('a', 'releasing', 2, 1, kind, 5), said('a', 'released', 2.1, 1, kind, 5)]
        return found(got('a', 1), *ending, got('b', comes, 2), *accepted('b', 6, 2), events=Events(clock_set_s=2)).early

    assert early('at', 3.1) == set()
    assert early('at', 2.9) == {7}
    assert early('after', 3.1) == {7}


def test_a_release_that_was_not_confirmed_promises_nothing() -> None:
    findings = found(got('a', 1), *released('a', 2, due=5)[:1], got('b', 3, 2), *accepted('b', 6, 2))
    assert findings.ok and findings.named_times == 0


def test_lost_and_delivered_after_its_accept() -> None:
    assert found().verdict.lost == 1
    findings = found(got('a', 1), *accepted('a', 2), got('b', 3, 2), *accepted('b', 4, 2))
    assert findings.verdict.again_after_accept == 1
    assert findings.wrong() == {'again': [7]}


def test_after_a_seek_it_may_come_again_and_has_to_be_accepted_again() -> None:
    events = Events(seeks=[Span(5, 6)])
    once = [got('a', 1), *accepted('a', 2), got('b', 7)]
    assert found(*once, *accepted('b', 8), events=events).ok
    assert found(*once, events=events).verdict.lost == 1


def test_rejected_and_redriven() -> None:
    dead = [got('a', 1), *rejected('a', 2)]
    again = [got('b', 7), *accepted('b', 8)]
    findings = found(*dead, *again, events=Events(redrives=[Span(5, 6)]))
    assert findings.ok and findings.rejected == 1
    assert found(*dead, events=Events(redrives=[Span(5, 6)])).verdict.lost == 1


def test_rejected_and_delivered_again_by_itself() -> None:
    findings = found(got('a', 1), *rejected('a', 2), got('b', 7, 2), *accepted('b', 8, 2))
    assert findings.again_after_reject == {7}


def test_held_by_two() -> None:
    told = [got('a', 1), got('b', 2, 2), *accepted('b', 3, 2)]
    assert found(*told).held_by_two == {7}
    assert found(*told, events=Events(killed={'a': 1.5})).ok
    assert found(*told, events=Events(downs=[Span(1.2, 1.4)])).ok
    assert found(*told, events=Events(lock_s=1.5)).ok  # the lock may have run out
    assert found(got('a', 1), said('a', 'releasing', 1.5), *told[1:]).ok
