"""Checks of single values beyond a range or a choice. Each returns what is allowed, or None when all is well."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from acklog.broker.configs import thresholds
from acklog.broker.configs.definitions import Value
from acklog.core import backoff
from acklog.errors import ConfigError

if TYPE_CHECKING:
    from acklog.broker.configs.values import Readable

# As java.time.Duration.parse, which Kafka uses: P1DT2H3M4.5S; no negative parts.
DURATION = re.compile(
    r'P(?:(?P<days>\d{1,9})D)?(?:T(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?'
    r'(?:(?P<seconds>\d{1,12})(?:[.,](?P<fraction>\d{0,9}))?S)?)?',
    re.IGNORECASE,
)
BY_DURATION = 'by_duration:'


def directory(value: Value) -> str | None:
    """Of any name, but it has one."""
    return None if value else 'must be the name of a directory'


def cleanup_policy(value: Value) -> str | None:
    """`delete`, or nothing (keep everything); `compact` does not exist yet."""
    assert isinstance(value, tuple)
    if 'compact' in value:
        return 'must be delete, or empty to keep everything: compact is not supported by acklog yet'
    return None if set(value) <= {'delete'} else 'must be delete, or empty to keep everything'


def not_one_replica(value: Value) -> str | None:
    """There is one replica: a higher number would refuse every publish with acks=all."""
    return None if value == 1 else 'must be 1: acklog keeps one replica of a partition'


def backoff_text(value: Value) -> str | None:
    """As `acklog.core.backoff` reads it."""
    try:
        backoff.parse(str(value))
    except ConfigError as error:
        return error.allowed
    return None


def pause_threshold(value: Value) -> str | None:
    """As `acklog.broker.configs.thresholds` reads it."""
    try:
        thresholds.parse(str(value))
    except ConfigError as error:
        return error.allowed
    return None


def offset_reset(value: Value) -> str | None:
    """Where a share group begins on a partition (KIP-932, KIP-1106)."""
    if value in ('earliest', 'latest'):
        return None
    text = str(value)
    if text.startswith(BY_DURATION) and duration_ms(text.removeprefix(BY_DURATION)) is not None:
        return None
    return "must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'"


def duration_ms(text: str) -> int | None:
    """An ISO 8601 duration in milliseconds; None when it is none."""
    match = DURATION.fullmatch(text)
    if match is None or not any(part for part in match.groups()) or text[-1] in 'Tt':
        return None
    days, hours, minutes, seconds = (int(match[part] or 0) for part in ('days', 'hours', 'minutes', 'seconds'))
    fraction = int((match['fraction'] or '').ljust(9, '0')[:3] or 0)
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + fraction


def check_endless(configs: Readable, limit: str) -> None:
    """Without a limit of attempts a record that always fails would go round at full speed. Raises ConfigError."""
    if configs.integer(limit) < 0 and not backoff.parse(configs.text('acklog.retry.backoff')).steps:
        raise ConfigError(limit, -1, 'may be -1 (without limit) only where acklog.retry.backoff is not none')
