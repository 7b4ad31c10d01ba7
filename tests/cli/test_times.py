"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from acklog.cli.times import beginning, seconds_ago

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ('text', 'seconds'),
    [
        ('90s', 90),
        ('1.5h', 5400),
        ('7d', 604_800),
        ('2026-07-01T11:59:00Z', 60),
        ('2026-07-01T13:59:00+02:00', 60),
        (str(int(NOW.timestamp() * 1000) - 5000), 5),
        ('h', None),
        ('yesterday', None),
        ('-5m', None),
    ],
)
def test_seconds_ago(text: str, seconds: float | None) -> None:
    assert seconds_ago(text, NOW) == (None if seconds is None else pytest.approx(seconds))


def test_beginning_is_what_the_config_takes() -> None:
    assert [beginning(text) for text in ('Earliest', 'latest', '15m')] == ['earliest', 'latest', 'by_duration:PT900S']
    with pytest.raises(click.BadParameter):
        beginning('soon')
