"""A bound for what a piece of code costs that is the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def at_most(lines: int) -> Iterator[None]:
    """What is called inside may run so many lines of Python; AssertionError where it would run more."""
    left = lines

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        left -= event == 'line'
        if left < 0:
            raise AssertionError(f'more than {lines} lines, in {frame.f_code.co_qualname}')
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(before)
