"""Records as people name them: `orders`, `orders/2`, `orders/2/1042`, `orders/2/1000-1099`, `orders/2/3,5,9-12`.

What `acklog` prints can be given back. `orders[2]@1042`, as other tools for Kafka write it, is understood too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import click

METAVAR = 'TOPIC[/PARTITION[/OFFSETS]]'
NAMING = (
    'Records are named as tables show them: orders (all of a topic), orders/2, orders/2/1042, orders/2/1000-1099, '
    'orders/2/3,5,9-12.'
)

_BRACKETS = re.compile(r'([^/\[\]]+)\[(\d+)\](?:@(.+))?')
_RANGE = re.compile(r'([0-9]*)-([0-9]*)')
_NUMBER = re.compile(r'[0-9]+')

LAST_OFFSET = (1 << 62) - 1  # the server takes none above
MOST_PARTITIONS = (1 << 31) - 1  # no partition has a greater number


class Place(NamedTuple):
    """A topic, or one of its partitions, or offsets there: `offsets` one by one and `ranges` (first, last; both ends
    included, None without bound). `topic` None: all there is."""

    topic: str | None
    partition: int | None = None
    offsets: tuple[int, ...] = ()
    ranges: tuple[tuple[int | None, int | None], ...] = ()


ALL = Place(None)


def place(text: str) -> Place:
    """For `type=` of click's parameters: a place with or without partition and offsets."""
    match = _BRACKETS.fullmatch(text)
    topic, partition, offsets = match.groups() if match else (*text.split('/', 2), None, None)[:3]
    if not topic:
        raise click.BadParameter(f'{text!r} is not {METAVAR}')
    if partition is None:
        return Place(topic)
    if not _NUMBER.fullmatch(partition) or not _at_most(MOST_PARTITIONS, partition):
        raise click.BadParameter(f'{text!r}: {partition!r} is not a partition')
    return Place(topic, int(partition), *(((), ()) if offsets is None else _offsets(text, offsets)))


def partition_place(text: str) -> Place:
    """For `type=`: a topic, or one of its partitions."""
    found = place(text)
    if found.offsets or found.ranges:
        raise click.BadParameter(f'{text!r} is not TOPIC[/PARTITION]: no offsets here')
    return found


def record_place(text: str) -> Place:
    """For `type=`: one record."""
    found = place(text)
    if len(found.offsets) != 1 or found.ranges:
        raise click.BadParameter(f'{text!r} is not one record: TOPIC/PARTITION/OFFSET')
    return found


def range_place(text: str) -> Place:
    """For `type=`: a range of offsets, or one offset."""
    found = place(text)
    ranges = found.ranges + tuple((offset, offset) for offset in found.offsets)
    if len(ranges) != 1:
        raise click.BadParameter(f'{text!r} is not a range of offsets: TOPIC/PARTITION/FIRST-LAST')
    ((first, last),) = ranges
    bounds = (0 if first is None else first, LAST_OFFSET if last is None else last)
    return found._replace(offsets=(), ranges=(bounds,))


def _offsets(text: str, offsets: str) -> tuple[tuple[int, ...], tuple[tuple[int | None, int | None], ...]]:
    single: list[int] = []
    ranges: list[tuple[int | None, int | None]] = []
    for part in offsets.split(','):
        bounds = _RANGE.fullmatch(part)
        if not _at_most(LAST_OFFSET, *part.split('-')):
            raise click.BadParameter(f'{text!r}: {part!r} goes beyond the last offset there can be, {LAST_OFFSET}')
        if _NUMBER.fullmatch(part):
            single.append(int(part))
        elif bounds and part != '-':
            first, last = (int(bound) if bound else None for bound in bounds.groups())
            if first is not None and last is not None and first > last:
                raise click.BadParameter(f'{text!r}: {part!r} ends before it begins')
            ranges.append((first, last))
        else:
            raise click.BadParameter(f'{text!r}: {part!r} is not an offset or a range of them')
    return tuple(single), tuple(ranges)


def _at_most(most: int, *numbers: str) -> bool:
    """Whether none of these is a greater number. As text: a number of any length may stand there."""
    digits = (number.lstrip('0') for number in numbers if _NUMBER.fullmatch(number))
    return all((len(each), each) <= (len(str(most)), str(most)) for each in digits)


def chosen(places: tuple[Place, ...], everything: bool) -> tuple[Place, ...]:
    """The places, or `ALL` where `--all` was said; one of both has to be."""
    if bool(places) == everything:
        raise click.UsageError(
            f'Say which records, as {METAVAR}, or --all.' if not places else 'Either places or --all.'
        )
    return places or (ALL,)


def bodies(places: Iterable[Place]) -> Iterator[dict[str, Any]]:
    """The fields of the API's requests that choose these records, one request for each."""
    for where in places:
        if where.topic is None:
            yield {'all': True}
            continue
        base: dict[str, Any] = {'topic': where.topic}
        if where.partition is not None:
            base['partition'] = where.partition
        if where.offsets:
            yield {**base, 'offsets': sorted(set(where.offsets))}
        for first, last in where.ranges:
            bounds = {'first': first, 'last': last}
            yield {**base, **{name: bound for name, bound in bounds.items() if bound is not None}}
        if not where.offsets and not where.ranges:
            yield base


def name_of(item: dict[str, Any]) -> str:
    """A record of a list, as places are written."""
    return f'{item["topic"]}/{item["partition"]}/{item["offset"]}'
