"""How long a failed record waits: the setting `acklog.retry.backoff`.

    none                  at once
    fixed:10s             always 10 s
    exponential:1s..10m   1 s, 2 s, 4 s, ... up to 10 minutes
    1s,10s,1m,10m         as listed; the last one repeats
    exponential:1s..10m~20%   and up to 20 % longer, differently for each record and attempt

Durations are a whole number and `ms`, `s`, `m`, `h` or `d`. Jitter only lengthens, since a record must never come back
earlier than said (rule 5). It is no random number but a hash of offset and attempts: core has neither chance
nor clock, and the same call gives the same answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from acklog.errors import ConfigError

NAME = 'acklog.retry.backoff'
ALLOWED = (
    "'none', 'fixed:10s', 'exponential:1s..10m' or a list '1s,10s,1m,10m', each with '~20%' behind it for jitter "
    '(0..100 %); durations are a number and ms, s, m, h or d, up to 365d'
)
UNITS = {'ms': 1, 's': 1000, 'm': 60_000, 'h': 3_600_000, 'd': 86_400_000}
LONGEST = 365 * 86_400_000
_DURATION = re.compile(r'([0-9]{1,15})(ms|s|m|h|d)')
_JITTER = re.compile(r'(.*?)\s*~\s*([0-9]{1,3})\s*%')
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in ms by number of failed attempts: `steps[attempts - 1]`, the last one repeating; no steps: no delay.

    `jitter`: up to so many percent longer (0..100).
    """

    steps: tuple[int, ...] = ()
    jitter: int = 0

    def delay(self, attempts: int, offset: int = 0) -> int:
        """ms before the next delivery of a record that has failed `attempts` times (at least 1)."""
        if not self.steps:
            return 0
        delay = self.steps[min(attempts, len(self.steps)) - 1]
        if not self.jitter or not delay:
            return delay
        share = _hash(offset, attempts) >> 32  # of 2**32
        return delay + (delay * self.jitter * share // 100 >> 32)


def _hash(offset: int, attempts: int) -> int:
    """64 well-mixed bits (the finalizer of splitmix64)."""
    mixed = (offset * 0x9E3779B97F4A7C15 + attempts * 0xD1B54A32D192ED03) & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return mixed ^ mixed >> 31


def parse(text: str, name: str = NAME) -> Backoff:
    """Read the setting `name`. Raises ConfigError, which says what is allowed."""
    body, jitter = text.strip(), 0
    if match := _JITTER.fullmatch(body):
        body, jitter = match[1], int(match[2])
    steps = _steps(body)
    if steps is None or jitter > 100:
        raise ConfigError(name, text, ALLOWED)
    return Backoff(steps, jitter)


def _steps(body: str) -> tuple[int, ...] | None:
    if body == 'none':
        return ()
    kind, _, rest = body.rpartition(':')
    if kind == 'exponential':
        first, _, last = rest.partition('..')
        return _doubling(_duration(first), _duration(last))
    if kind not in ('', 'fixed') or (kind and ',' in rest):
        return None
    steps = [_duration(part) for part in rest.split(',')]
    return None if None in steps else tuple(step for step in steps if step is not None)


def _doubling(first: int | None, last: int | None) -> tuple[int, ...] | None:
    if not first or last is None or last < first:
        return None
    steps = [first]
    while steps[-1] < last:
        steps.append(min(2 * steps[-1], last))
    return tuple(steps)


def _duration(text: str) -> int | None:
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    value = int(match[1]) * UNITS[match[2]]
    return value if value <= LONGEST else None
