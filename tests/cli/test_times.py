"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from acklog.cli.output import as_local_time, as_time
from acklog.cli.times import LAST, beginning, instant_ago, instant_ahead, instants_ahead, seconds_ago

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
        ('1e5d', None),
        ('1.5.5h', None),
        ('9' * 400 + 'd', None),
        ('\u0663h', None),
    ],
)
def test_seconds_ago(text: str, seconds: float | None) -> None:
    assert seconds_ago(text, NOW) == (None if seconds is None else pytest.approx(seconds))


def test_beginning_is_what_the_config_takes() -> None:
    assert [beginning(text) for text in ('Earliest', 'latest', '15m')] == ['earliest', 'latest', 'by_duration:PT900S']
    with pytest.raises(click.BadParameter):
        beginning('soon')
    with pytest.raises(click.BadParameter, match='before 1970'):
        beginning('99999999d')


@pytest.mark.parametrize(('text', 'seconds'), [('90s', 90), ('2h', 7200), ('7d', 604_800)])
def test_how_long_ago_and_how_long_from_now(text: str, seconds: int) -> None:
    now = datetime.now(UTC).timestamp() * 1000
    assert instant_ago(text) == pytest.approx(now - seconds * 1000, abs=60_000)
    assert instant_ahead(text) == pytest.approx(now + seconds * 1000, abs=60_000)


def test_instants_are_the_same_both_ways() -> None:
    for text, instant in (
        ('2026-07-01T12:00Z', 1_782_907_200_000),
        ('2026-07-01T14:00:00.250+02:00', 1_782_907_200_250),
        ('1782907200001', 1_782_907_200_001),
        ('2100-01-01T00:00Z', 4_102_444_800_000),
    ):
        assert instant_ago(text) == instant_ahead(text) == instant
    for text in ('soon', '', '9' * 30, '10000-01-01'):
        with pytest.raises(click.BadParameter, match='is not a time from now'):
            instant_ahead(text)
    for text in ('1969-01-01', '9999w', '0001-01-02T00:00+14:00'):
        with pytest.raises(click.BadParameter, match='before 1970'):
            instant_ago(text)


@pytest.mark.parametrize('instant', [253_402_300_800_000, 255_198_387_164_415, (1 << 62) - 1, (1 << 63) - 1])
def test_times_past_the_year_9999_are_shown_as_their_number(instant: int) -> None:
    assert as_time(instant) == as_local_time(instant) == str(instant)
    if instant < 10**18:
        assert instants_ahead(str(instant))() == instant
        for at_the_api in (instant_ago, instant_ahead):  # which takes none of them
            with pytest.raises(click.BadParameter, match='after the year 9999'):
                at_the_api(str(instant))
    assert instant_ahead(str(LAST)) == LAST


@pytest.mark.parametrize('instant', [0, 1_782_907_200_250, 253_402_300_799_999])
def test_times_that_are_shown_can_be_given_back(instant: int) -> None:
    shown = as_local_time(instant)
    assert shown is not None
    assert datetime.fromisoformat(shown).tzinfo is not None
    if instant:
        assert instant_ahead(shown) == instant
