"""Records as people name them."""

from __future__ import annotations

from typing import Any

import pytest

from acklog.cli.places import ALL, bodies, name_of, place, range_place


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


def test_all() -> None:
    assert list(bodies([ALL])) == [{'all': True}]


def test_one_offset_is_a_range() -> None:
    assert list(bodies([range_place('o/0/5')])) == [{'topic': 'o', 'partition': 0, 'first': 5, 'last': 5}]


def test_what_is_shown_can_be_given_back() -> None:
    record = {'topic': 'o', 'partition': 3, 'offset': 7}
    assert list(bodies([place(name_of(record))])) == [{'topic': 'o', 'partition': 3, 'offsets': [7]}]
