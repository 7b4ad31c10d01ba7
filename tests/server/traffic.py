"""The usual requests, as few words."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tests.server.raw import CREATE_TOPICS, PRODUCE, SHARE_ACKNOWLEDGE, SHARE_FETCH, SHARE_HEARTBEAT, Raw

from acklog.wire.record_batch import build

FETCH_VERSION = 11
PRODUCE_VERSION = 9


@functools.cache
def batch(size: int, records: int = 1) -> bytes:
    """A record batch of about `size` bytes."""
    return bytes(build([(None, b'x' * (size // records), [])] * records, timestamp=1_700_000_000_000))


async def create(raw: Raw, name: str, partitions: int = 1) -> UUID:
    """A topic; its id."""
    topic = {'name': name, 'num_partitions': partitions, 'replication_factor': -1}
    answer = await raw.call(CREATE_TOPICS, 7, {'topics': [topic], 'timeout': 1000})
    assert answer['topics'][0]['error_code'] == 0
    found = answer['topics'][0]['topic_id']
    assert isinstance(found, UUID)
    return found


async def until_created(raw: Raw, name: str, seconds: float = 5) -> None:
    """A topic can be created in that time, so the catalog is well again."""
    topics = [{'name': name, 'num_partitions': 1, 'replication_factor': -1}]
    async with asyncio.timeout(seconds):
        while True:
            answer = await raw.call(CREATE_TOPICS, 7, {'topics': topics, 'timeout': 1000})
            if answer['topics'][0]['error_code'] == 0:
                return
            await asyncio.sleep(0.02)


def produce(name: str, records: bytes, *, index: int = 0, acks: int = 1) -> dict[str, Any]:
    partition = {'index': index, 'records': records}
    return {'acks': acks, 'timeout': 1000, 'topic_data': [{'name': name, 'partition_data': [partition]}]}


async def publish(raw: Raw, name: str, records: bytes, *, index: int = 0, acks: int = 1) -> int:
    """The error code."""
    answer = await raw.call(PRODUCE, PRODUCE_VERSION, produce(name, records, index=index, acks=acks))
    code = answer['responses'][0]['partition_responses'][0]['error_code']
    assert isinstance(code, int)
    return code


def fetch(
    name: str, offset: int = 0, *, index: int = 0, wait: int = 0, min_bytes: int = 1, max_bytes: int = 1 << 30
) -> dict[str, Any]:
    partition = {'partition': index, 'fetch_offset': offset, 'partition_max_bytes': max_bytes}
    topics = [{'topic': name, 'partitions': [partition]}]
    return {'max_wait': wait, 'min_bytes': min_bytes, 'max_bytes': max_bytes, 'topics': topics, 'rack_id': ''}


async def join(raw: Raw, group: str, member: str, *names: str) -> None:
    """A member of a share group."""
    fields = {'group_id': group, 'member_id': member, 'member_epoch': 0, 'subscribed_topic_names': names}
    assert (await raw.call(SHARE_HEARTBEAT, 1, fields))['error_code'] == 0


def share_fetch(
    group: str,
    member: str,
    epoch: int,
    topic: UUID,
    partitions: Sequence[int] = (0,),
    *,
    wait: int = 0,
    records: int = 500,
    accept: Sequence[tuple[int, int, int]] = (),
) -> dict[str, Any]:
    """`accept`: (partition, first, last) each."""
    return {
        'group_id': group,
        'member_id': member,
        'share_session_epoch': epoch,
        'max_wait': wait,
        'min_bytes': 1,
        'max_bytes': 1 << 30,
        'max_records': records,
        'batch_size': records,
        'topics': [{'topic_id': topic, 'partitions': [_acknowledged(index, accept) for index in partitions]}],
    }


def _acknowledged(index: int, accept: Sequence[tuple[int, int, int]]) -> dict[str, Any]:
    batches = [
        {'first_offset': first, 'last_offset': last, 'acknowledge_types': [1]}
        for p, first, last in accept
        if p == index
    ]
    return {'partition_index': index, 'acknowledgement_batches': batches}


def acquired(answer: dict[str, Any]) -> list[tuple[int, int, int]]:
    """(partition, first, last) of what a ShareFetch brought."""
    assert answer['error_code'] == 0
    return [
        (partition['partition_index'], each['first_offset'], each['last_offset'])
        for topic in answer['responses']
        for partition in topic['partitions']
        for each in partition['acquired_records']
    ]


async def accept(
    raw: Raw, group: str, member: str, epoch: int, topic: UUID, ranges: Sequence[tuple[int, int, int]]
) -> int:
    """The error code, of the first partition that has one."""
    partitions = [_acknowledged(index, ranges) for index in dict.fromkeys(index for index, _, _ in ranges)]
    topics = [{'topic_id': topic, 'partitions': partitions}]
    fields = {'group_id': group, 'member_id': member, 'share_session_epoch': epoch, 'topics': topics}
    answer = await raw.call(SHARE_ACKNOWLEDGE, 1, fields)
    codes = [p['error_code'] for each in answer['responses'] for p in each['partitions']]
    return next((code for code in [answer['error_code'], *codes] if code), 0)


__all__ = [
    'SHARE_FETCH',
    'accept',
    'acquired',
    'batch',
    'create',
    'fetch',
    'join',
    'produce',
    'publish',
    'share_fetch',
    'until_created',
]
