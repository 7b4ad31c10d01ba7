"""Lists of outside clients' tests, as files that people keep:

    # a comment
    [why, in words]
    SUITE NODE-ID

A line in brackets is the reason for those below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class ListedTest(NamedTuple):
    """One test of a suite. `id`: as pytest takes it on its command line; `reason`: '' where none is given."""

    suite: str
    id: str
    reason: str


def read_tests(path: Path) -> list[ListedTest]:
    """The tests that a file lists, in order. Raises ValueError, with the line, for one that is none."""
    found: list[ListedTest] = []
    reason = ''
    for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
        line = line.strip()
        if not line or line.startswith('#'):
            continue
        if line.startswith('[') and line.endswith(']'):
            reason = line[1:-1].strip()
            continue
        suite, _, test = line.partition(' ')
        if '::' not in test:
            raise ValueError(f'{path}, line {number}: not SUITE NODE-ID: {line}')
        found.append(ListedTest(suite, test.strip(), reason))
    return found


def by_suite(tests: Sequence[ListedTest]) -> Mapping[str, Sequence[ListedTest]]:
    """The tests of each suite, suites in the order of their first one."""
    suites: dict[str, list[ListedTest]] = {}
    for test in tests:
        suites.setdefault(test.suite, []).append(test)
    return suites
