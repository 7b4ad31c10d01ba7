"""Requests of the codecs written by hand name no more topics and partitions than there can be: for each there is much
more to do than its few bytes say. What there can be, they may name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from acklog.errors import ProtocolError
from acklog.wire import fetch, produce, share_acknowledge, share_fetch

ID = bytes(range(16))
THERE_MAY_BE, TOO_MANY = 20_000, 50_001

Made = Callable[[list[tuple[int, list[int]]]], Any]  # of the partitions of each topic, by its number


def of_produce(topics: list[tuple[int, list[int]]]) -> produce.Request:
    return produce.Request(
        1, 0, None, [produce.Topic('t', None, [produce.Partition(i, None) for i in each]) for _, each in topics]
    )


def of_fetch(topics: list[tuple[int, list[int]]]) -> fetch.Request:
    return fetch.Request(
        0, 0, 0, topics=[fetch.Topic('t', None, [fetch.Partition(i, 0, 0) for i in each]) for _, each in topics]
    )


def shared(topics: list[tuple[int, list[int]]]) -> list[share_fetch.Topic]:
    """With an acknowledgement that is not of the shortest form for each partition."""
    acks = [(0, 1, b'\1', None)]
    return [share_fetch.Topic(ID, [share_fetch.Partition(i, acks) for i in each]) for _, each in topics]


def of_share_fetch(topics: list[tuple[int, list[int]]]) -> share_fetch.Request:
    return share_fetch.Request('g', 'm', 0, 0, 0, 0, 0, 0, 0, False, shared(topics), ())


def of_share_acknowledge(topics: list[tuple[int, list[int]]]) -> share_acknowledge.Request:
    return share_acknowledge.Request('g', 'm', 0, False, shared(topics))


CODECS = [(produce, 9, of_produce), (fetch, 12, of_fetch), (share_fetch, 1, of_share_fetch)]
CODECS += [(share_acknowledge, 1, of_share_acknowledge)]


@pytest.mark.parametrize(('codec', 'version', 'made'), CODECS, ids=lambda each: getattr(each, '__name__', ''))
def test_partitions_of_one_topic_or_each_of_its_own(codec: Any, version: int, made: Made) -> None:
    def decoded(topics: list[tuple[int, list[int]]]) -> Any:
        return codec.decode_request(version, b''.join(codec.encode_request(version, made(topics))))

    indexes = list(range(THERE_MAY_BE))
    assert [each.index for each in decoded([(0, indexes)]).topics[0].partitions] == indexes
    assert len(decoded([(number, [0]) for number in indexes]).topics) == THERE_MAY_BE
    for too_many in ([(0, list(range(TOO_MANY)))], [(number, []) for number in range(TOO_MANY)]):
        with pytest.raises(ProtocolError, match='more elements than a message may have'):
            decoded(too_many)
