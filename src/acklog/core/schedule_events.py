"""What has happened to the schedule of a partition: the values that the journal of scheduled records keeps.

Strategy: as in `events.py` an event says the outcome. The log itself is the truth about what was published; these are
what a journal keeps so that little of the log has to be read again, and what the log cannot say. One may be folded
twice.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from pyroaring import BitMap64


class Looks(NamedTuple):
    """From offset `at` on the records of the log are looked into (`on`), or not any more."""

    on: bool
    at: int


class Found(NamedTuple):
    """From `first` up to, not including, `stop` these are published for later, and these are cancelled; no others."""

    first: int
    stop: int
    offsets: BitMap64
    dues: array[int]  # in order of the offsets; ms
    cancelled: BitMap64


class Moved(NamedTuple):
    """These are for another instant (ms): for all groups, or for that one (its incarnation)."""

    offsets: BitMap64
    due: int
    group: int | None = None


class Cancelled(NamedTuple):
    """These are not to be delivered: to any group, or to that one (its incarnation)."""

    offsets: BitMap64
    group: int | None = None


class Cut(NamedTuple):
    """The log came back with this end."""

    end: int


Event = Looks | Found | Moved | Cancelled | Cut
