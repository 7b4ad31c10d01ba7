"""Assigning partitions to brokers by hand, where there is one broker and one replica."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acklog.broker.api import Refused
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


def check_brokers(broker: Broker, ids: Sequence[int]) -> None:
    """Raises Refused (INVALID_REPLICA_ASSIGNMENT) unless the replicas are exactly this node."""
    wrong = None
    if not ids:
        wrong = 'an empty replica list'
    elif len(set(ids)) < len(ids):
        wrong = f'the broker {next(one for one, times in Counter(ids).items() if times > 1)} more than once'
    else:
        strange = [one for one in ids if one != broker.node.id]
        if strange:
            wrong = f'broker {strange[0]}, but no such broker is registered'
    if wrong is not None:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f'The manual partition assignment includes {wrong}.')
