"""Records as people name them."""

from __future__ import annotations

from typing import Any

import click
import pytest

from acklog.cli.places import ALL, LAST_OFFSET, bodies, name_of, place, range_place


@pytest.mark.parametrize(
    ('text', 'requests'),
    [
        ('orders', [{'topic': 'orders'}]),
        ('orders/2', [{'topic': 'orders', 'partition': 2}]),
        ('orders[2]', [{'topic': 'orders', 'partition': 2}]),
        ('orders/2/1042', [{'topic': 'orders', 'partition': 2, 'offsets': [1042]}]),
        ('orders[2]@1042', [{'topic': 'orders', 'partition': 2, 'offsets': [1042]}]),
        ('orders/2/10-19', [{'topic': 'orders', 'partition': 2, 'first': 10, 'last': 19}]),
        ('orders/2/10-', [{'topic': 'orders', 'partition': 2, 'first': 10}]),
        ('orders/2/-19', [{'topic': 'orders', 'partition': 2, 'last': 19}]),
        (
            'o/0/9,5,20-29,9',
            [
                {'topic': 'o', 'partition': 0, 'offsets': [5, 9]},
                {'topic': 'o', 'partition': 0, 'first': 20, 'last': 29},
            ],
        ),
    ],
)
def test_places(text: str, requests: list[dict[str, Any]]) -> None:
    assert list(bodies([place(text)])) == requests


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('o/0/9223372036854775807', 'beyond the last offset'),
        (f'o/0/{"9" * 5000}', 'beyond the last offset'),
        ('o/0/0-99999999999999999999', 'beyond the last offset'),
        ('o/0/99999999999999999999-', 'beyond the last offset'),
        ('o/2147483648', 'is not a partition'),
        ('o/-1', 'is not a partition'),
        ('o/0/-', 'is not an offset'),
        ('o/0/9-5', 'ends before it begins'),
    ],
)
def test_numbers_that_nothing_has_are_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(click.BadParameter, match=words):
        place(text)


def test_leading_zeros_count_for_nothing() -> None:
    assert place(f'o/00/{"0" * 40}7') == place('o/0/7')


def test_all() -> None:
    assert list(bodies([ALL])) == [{'all': True}]


def test_one_offset_is_a_range() -> None:
    assert list(bodies([range_place('o/0/5')])) == [{'topic': 'o', 'partition': 0, 'first': 5, 'last': 5}]


@pytest.mark.parametrize(('text', 'first', 'last'), [('5-', 5, LAST_OFFSET), ('-5', 0, 5), ('5-6', 5, 6)])
def test_open_ranges_are_ranges(text: str, first: int, last: int) -> None:
    assert list(bodies([range_place(f'o/0/{text}')])) == [{'topic': 'o', 'partition': 0, 'first': first, 'last': last}]


@pytest.mark.parametrize('text', ['o', 'o/0', 'o/0/1,2', 'o/0/1,3-4'])
def test_what_is_not_one_range(text: str) -> None:
    with pytest.raises(click.BadParameter, match='not a range of offsets'):
        range_place(text)


def test_what_is_shown_can_be_given_back() -> None:
    record = {'topic': 'o', 'partition': 3, 'offset': 7}
    assert list(bodies([place(name_of(record))])) == [{'topic': 'o', 'partition': 3, 'offsets': [7]}]
