"""Well-formed requests with hostile values, to every API in every version: each is answered, or closes its connection
with a word about it; nothing of it is an error of the server, and the server goes on as before.

ACKLOG_FUZZ_EXAMPLES=N makes it N requests per API (default 40).
"""

from __future__ import annotations

import os
import zlib

import pytest
from tests.server.conftest import Serve, address_of
from tests.server.hostile import VERSIONS, Hostile
from tests.server.raw import CREATE_TOPICS, METADATA, SHARE_FETCH, SHARE_HEARTBEAT, Closed, Raw

from acklog.broker.apis import APIS
from acklog.wire import cold
from acklog.wire.frame import response_body

EXAMPLES = int(os.environ.get('ACKLOG_FUZZ_EXAMPLES', '40'))
SEED = int(os.environ.get('ACKLOG_FUZZ_SEED', '1'))
NAMES = {api.key: api.name for api in APIS}
ANSWER_S = 20.0


async def world(address: str) -> Hostile:
    """Topics, a group, a member with a session, so that requests find something."""
    raw = await Raw.connect(address)
    topics = [{'name': name, 'num_partitions': count, 'replication_factor': -1} for name, count in (('t', 1), ('u', 3))]
    created = await raw.call(CREATE_TOPICS, 7, {'topics': topics, 'timeout': 1000})
    ids = [topic['topic_id'] for topic in created['topics']]
    await raw.call(
        SHARE_HEARTBEAT,
        1,
        {'group_id': 'g', 'member_id': 'm', 'member_epoch': 0, 'subscribed_topic_names': ['t', 'u']},
    )
    fields = {
        'group_id': 'g', 'member_id': 'm', 'share_session_epoch': 0, 'max_wait': 0, 'max_bytes': 1000, 'max_records': 5,
        'batch_size': 5, 'topics': [{'topic_id': ids[0], 'partitions': [{'partition_index': 0}]}],
    }  # fmt: skip
    assert (await raw.call(SHARE_FETCH, 1, fields))['error_code'] == 0
    raw.close()
    return Hostile(SEED, ['t', 'u', 'g', 'm'], ids)


@pytest.mark.parametrize('key', sorted(VERSIONS), ids=lambda key: NAMES[key])
async def test_hostile_values(key: int, serve: Serve) -> None:
    server = await serve({'fetch.max.bytes': 100_000})
    address = address_of(server)
    hostile = await world(address)
    hostile._random.seed(zlib.crc32(NAMES[key].encode()) + SEED)
    raw = await Raw.connect(address)
    for number in range(EXAMPLES):
        hostile.huge = number % 4 == 0
        version, fields = hostile.request(key)
        for name in ('max_wait', 'max_wait_ms', 'timeout', 'timeout_ms'):
            if name in fields:
                fields[name] = min(fields[name], 20)
        try:
            await raw.send(raw.frame(key, version, fields))
            if key == 0 and fields['acks'] == 0:
                await raw.send(raw.frame(18, 0, {}))
                await raw.answer(18, 0)
                continue
            frame = await raw.answer_frame(ANSWER_S)
            cold.decode_response(key, version, response_body(key, version, memoryview(frame)))
        except Closed:
            raw.close()
            raw = await Raw.connect(address)
        except TimeoutError:
            pytest.fail(f'no answer to {NAMES[key]} v{version} {fields}'[:5000])
    other = await Raw.connect(address)
    assert (await other.call(METADATA, 12, {'topics': None}))['brokers']
