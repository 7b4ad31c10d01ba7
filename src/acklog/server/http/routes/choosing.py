"""How a request chooses records of a group: a topic, a partition, a range or a list of offsets, or plainly all."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from acklog.broker.operations import Selection
from acklog.server.http.problems import Problem
from acklog.server.http.values import MOST_RECORDS, DryRun, Index, Offset, Paging, TopicName


class Choice(Struct, forbid_unknown_fields=True, kw_only=True):
    """Some records: of a topic, of one of its partitions, of a range of its offsets (both ends included) or of a list
    of them. Or `all`."""

    topic: TopicName | None = None
    partition: Index | None = None
    first: Offset | None = None
    last: Offset | None = None
    offsets: Annotated[list[Offset], Meta(min_length=1, max_length=MOST_RECORDS)] | None = None
    all: Annotated[bool, Meta(description='Of all topics; nothing else is said then.')] = False
    dry_run: DryRun = False


class Place(Paging):
    """Where in a group, and which part of the list."""

    topic: TopicName | None = None
    partition: Index | None = None


def selection(choice: Choice) -> Selection:
    """What it means. Raises Problem."""
    if choice.all == (choice.topic is not None):
        raise unclear('/topic', 'either a topic or all')
    if choice.topic is None and choice.partition is not None:
        raise unclear('/all', 'a partition needs a topic')
    check_offsets(choice.partition, choice.first, choice.last, choice.offsets)
    return Selection(choice.topic, choice.partition, choice.first, choice.last, choice.offsets)


def check_offsets(partition: int | None, first: int | None, last: int | None, offsets: list[int] | None) -> None:
    """Raises Problem."""
    ranged = first is not None or last is not None
    if partition is None and (ranged or offsets is not None):
        raise unclear('/partition', 'offsets need a partition')
    if ranged and offsets is not None:
        raise unclear('/offsets', 'either a range or a list')
    if first is not None and last is not None and first > last:
        raise unclear('/last', 'not before first')


def check_place(place: Place) -> None:
    """Raises Problem."""
    if place.partition is not None and place.topic is None:
        words = 'a partition needs a topic'
        raise Problem(422, words, faults=[{'parameter': 'partition', 'detail': words}])


def unclear(pointer: str, words: str) -> Problem:
    """The problem of a field that does not go with the others."""
    return Problem(422, f'{pointer}: {words}', faults=[{'pointer': pointer, 'detail': words}])
