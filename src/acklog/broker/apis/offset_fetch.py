"""OffsetFetch (9), v1-v9: the offsets that consumer groups have committed. There are none: OffsetCommit is not served.

Consumers that name their partitions themselves ask for them when no offset is given, and go on where their
`auto.offset.reset` says; librdkafka 2.16 crashes where the request is not known to the server.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller
from acklog.broker.lazily import Lazily

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


async def handle(broker: Broker, caller: Caller, version: int, request: Any) -> dict[str, Any]:
    if version < 8:
        broker.authorize(caller, 'DESCRIBE', 'GROUP', request.group_id)
        return {'topics': _nothing(request.topics), 'error_code': 0}

    def describe(group: Any) -> dict[str, Any]:
        broker.authorize(caller, 'DESCRIBE', 'GROUP', group.group_id)
        return {'group_id': group.group_id, 'topics': _nothing(group.topics)}

    return {'groups': Lazily(describe, request.groups)}


def _nothing(topics: Collection[Any] | None) -> Lazily[Any, dict[str, Any]]:
    """`topics` None: all that have an offset committed."""
    return Lazily(
        lambda topic: {'name': topic.name, 'partitions': Lazily(_none, topic.partition_indexes)}, topics or ()
    )


def _none(index: int) -> dict[str, Any]:
    return {'partition_index': index, 'committed_offset': -1, 'metadata': '', 'error_code': 0}


API = Api(9, 'OffsetFetch', (1, 9), handle)
