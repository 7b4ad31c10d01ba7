"""How much of the latest records may die: read from its setting, and counted."""

from __future__ import annotations

import pytest

from acklog.broker.configs.thresholds import Threshold, parse
from acklog.broker.groups.poison import Watch
from acklog.core import events as ev
from acklog.core.failing import GIVEN_UP, TOO_LONG
from acklog.core.kinds import Cause
from acklog.core.offsets import span
from acklog.errors import ConfigError


@pytest.mark.parametrize(
    ('text', 'threshold'),
    [
        ('', None),
        ('50%/100', Threshold(50, 100)),
        (' 1 % / 1 ', Threshold(1, 1)),
        ('100%/1000000', Threshold(100, 10**6)),
    ],
)
def test_thresholds(text: str, threshold: Threshold | None) -> None:
    assert parse(text) == threshold


@pytest.mark.parametrize('text', ['0%/5', '101%/5', '50%/0', '50%/1000001', '50/100', '50%', 'half', '-1%/5'])
def test_what_is_no_threshold(text: str) -> None:
    with pytest.raises(ConfigError, match='50%/100'):
        parse(text)


def event(call: str) -> ev.Event:
    """'3 done', '2 dead', '1 too long', '4 given up', '5 released'."""
    count, _, what = call.partition(' ')
    offsets = span(0, int(count) - 1)
    return {
        'done': ev.Settled(offsets),
        'dead': ev.Died(offsets, 'rejected', False, False),
        'too long': ev.GivenUp(0, offsets, TOO_LONG, False),
        'given up': ev.GivenUp(0, offsets, GIVEN_UP, False),
        'released': ev.Failed(offsets, Cause.RELEASED),
    }[what]


@pytest.mark.parametrize(
    ('calls', 'pauses'),
    [
        (['9 dead'], False),  # there were not ten yet
        (['10 dead'], True),
        (['5 done', '5 dead'], True),
        (['100 done', '5 dead'], True),  # of the last ten
        (['6 done', '4 dead'], False),
        (['4 dead', '6 done', '1 done', '1 dead'], False),
        (['5 dead', '5 done'], False),  # it was no death that made it so
        (['5 dead', '4 done', '1 too long'], True),
        (['5 done', '50 given up', '50 released', '4 dead'], False),
        (['5 done', '5 dead', '9 dead'], False),  # it began anew
    ],
)
def test_what_pauses(calls: list[str], pauses: bool) -> None:
    watch = Watch(Threshold(50, 10))
    reasons = [watch.see([event(call)]) for call in calls]
    assert (reasons[-1] is not None) == pauses


def test_a_reason_says_what_it_saw() -> None:
    reason = Watch(Threshold(50, 10)).see([event('4 done'), event('6 dead')])
    assert reason == '6 of the last 10 records died (acklog.dead.pause.threshold=50%/10)'
