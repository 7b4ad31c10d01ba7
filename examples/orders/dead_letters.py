"""What a person does about dead orders, over HTTP with nothing but the standard library.

`acklog dead list charging` and `acklog dead redrive charging --all` do the same at a terminal.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen

from .orders import CHARGING


def dead_orders(http: str) -> list[dict[str, Any]]:
    """The dead records of the group, each with topic, partition, offset, reason, words, attempts."""
    with urlopen(f'{http}/v1/groups/{CHARGING}/dead', timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)['items']
    return found


def redrive(http: str) -> int:
    """All of them come again, as if never delivered. Returns how many."""
    request = Request(f'{http}/v1/groups/{CHARGING}/dead/redrive', method='POST')
    request.add_header('Content-Type', 'application/json')
    with urlopen(request, json.dumps({'all': True}).encode(), timeout=10) as answer:
        return int(json.load(answer)['records'])
