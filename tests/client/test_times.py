"""Delays and instants as programs name them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from acklog.client.times import instant, milliseconds


def test_as_they_are_sent() -> None:
    assert [milliseconds(each) for each in (0, 1.5, timedelta(days=1), 1e12)] == [0, 1500, 86_400_000, 10**15]
    assert instant(1_782_907_200_000) == instant(datetime(2026, 7, 1, 12, tzinfo=UTC)) == 1_782_907_200_000


@pytest.mark.parametrize('delay', [-1, -0.001, float('nan'), float('inf'), 1e300, timedelta(seconds=-1)])
def test_no_delays(delay: Any) -> None:
    with pytest.raises(ValueError, match=r'delay|ago'):
        milliseconds(delay)


WITHOUT_ZONE = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    'when', [-1, 1 << 62, 1 << 70, WITHOUT_ZONE, datetime(1969, 1, 1, tzinfo=UTC), 1.5, float('nan'), 'now', None]
)
def test_no_instants(when: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r'instant|zone|neither'):
        instant(when)
