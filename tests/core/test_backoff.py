from __future__ import annotations

import pytest

from acklog.core.backoff import Backoff, parse
from acklog.errors import ConfigError

MINUTE = 60_000


@pytest.mark.parametrize(
    ('text', 'delays'),
    [
        ('none', [0, 0, 0]),
        ('fixed:10s', [10_000, 10_000, 10_000]),
        (
            'exponential:1s..10m',
            [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 600_000, 600_000],
        ),
        ('exponential:5s..5s', [5000, 5000]),
        ('1s,10s,1m,10m', [1000, 10_000, MINUTE, 10 * MINUTE, 10 * MINUTE]),
        ('250ms', [250, 250]),
        (' 1s, 2h , 1d ', [1000, 120 * MINUTE, 1440 * MINUTE]),
        ('fixed:0s', [0]),
    ],
)
def test_delays(text: str, delays: list[int]) -> None:
    backoff = parse(text)
    assert [backoff.delay(attempts) for attempts in range(1, len(delays) + 1)] == delays


@pytest.mark.parametrize('text', ['fixed:10s~20%', 'fixed:10s ~20%', 'fixed:10s ~ 20 %', '10s~20%'])
def test_jitter_lengthens_by_up_to_its_share(text: str) -> None:
    backoff = parse(text)
    delays = [backoff.delay(1, offset) for offset in range(2000)]
    assert min(delays) >= 10_000
    assert max(delays) <= 12_000
    assert len(set(delays)) > 1000
    assert 10_900 < sum(delays) / len(delays) < 11_100


def test_jitter_is_no_chance() -> None:
    backoff = Backoff((10_000,), 50)
    assert backoff.delay(1, 7) == backoff.delay(1, 7)
    assert len({backoff.delay(1, 7), backoff.delay(2, 7), backoff.delay(1, 8)}) == 3


@pytest.mark.parametrize(
    'text',
    [
        *[
            '',
            'never',
            '10',
            '10 s',
            '-1s',
            '1.5s',
            '1w',
            'fixed',
            'fixed:',
            'fixed:1s,2s',
            'fixed:x',
            '1s,',
            ',1s',
            '1s;2s',
        ],
        *['exponential:', 'exponential:1s', 'exponential:10m..1s', 'exponential:0s..1s', 'exponential:1s...2s'],
        *['linear:1s..2s', 'fixed:1s~', 'fixed:1s~101%', 'fixed:1s~20', 'fixed:1s~-5%', '366d', '9999999999999999999s'],
        *['none:1s', 'fixed:fixed:1s', '\u0661s'],
    ],
)
def test_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ConfigError, match=r'acklog\.retry\.backoff=.* is not allowed: .*fixed:10s') as refused:
        parse(text)
    assert (refused.value.name, refused.value.value) == ('acklog.retry.backoff', text)
