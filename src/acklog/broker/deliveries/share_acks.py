"""Acknowledgements as they come in ShareFetch and ShareAcknowledge: checked for form, applied partition by partition,
and answered when the journal has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from acklog.broker.answers import answer_to
from acklog.broker.api import Caller, Refused
from acklog.broker.refusals import no_partition, no_topic_id
from acklog.errors import AcklogError, LogError
from acklog.log.promise import Promise
from acklog.wire.acknowledgements import RENEW, Acknowledgement
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.core.share_session import ShareSession

Key = tuple[bytes, int]  # topic id, partition
Results = dict[Key, tuple[ErrorCode, str | None]]


def acknowledge_all(
    broker: Broker,
    caller: Caller,
    session: ShareSession,
    requests: Iterable[tuple[bytes, int, Sequence[Acknowledgement]]],
    *,
    renew_allowed: bool,
) -> Results:
    """What became of each partition that was named, once the journal has it: see `confirmed`. Raises nothing of ours:
    errors are in the results."""
    acks: dict[Key, list[Acknowledgement]] = {}
    for topic_id, index, batches in requests:  # a partition may be named more than once
        if batches:
            acks.setdefault((topic_id, index), []).extend(batches)
    results: Results = {}
    for key, batches in acks.items():
        try:
            renews = _check_form(batches, renew_allowed) == RENEW
            _apply(broker, caller, session, key, batches, renews)
        except AcklogError as error:
            results[key] = answer_to(error)
        else:
            results[key] = (ErrorCode.NONE, None)
    return results


async def confirmed(results: Results, written: Promise[LogError | None] | None) -> Results:
    """`results` as they can be answered, when the journal has `written` them or could not."""
    if written is not None and (error := await written) is not None:
        failed = answer_to(error)
        for key, (code, _) in results.items():
            if code == ErrorCode.NONE:
                results[key] = failed
    return results


def _apply(
    broker: Broker, caller: Caller, session: ShareSession, key: Key, batches: Sequence[Acknowledgement], renews: bool
) -> None:
    topic = broker.catalog.topics_by_id.get(key[0])
    if topic is None:
        raise no_topic_id()
    broker.authorize(caller, 'READ', 'TOPIC', topic.name)
    group = broker.catalog.groups.get(session.key.group)
    delivery = None if group is None else broker.deliveries.find(group, *key)
    if group is None or delivery is None:
        if not 0 <= key[1] < topic.partitions:
            raise no_partition(topic, key[1])
        raise Refused(ErrorCode.INVALID_RECORD_STATE, 'nothing of this partition was delivered to this group')
    if renews and not group.flag('share.renew.acknowledge.enable'):
        raise Refused(ErrorCode.INVALID_RECORD_STATE, 'Renewing acquisition locks is not enabled for the group.')
    delivery.acknowledge(session.key.member, batches)


def _check_form(batches: Sequence[Acknowledgement], renew_allowed: bool) -> int:
    """The highest type there is. Raises Refused for what no state could make right (KIP-932: INVALID_REQUEST)."""
    allowed = RENEW if renew_allowed else RENEW - 1
    end, highest = -1, 0
    for batch in batches:
        first, last, types = batch[0], batch[1], batch[2]
        if end < first == last and len(types) == 1 and types[0] <= allowed:  # as nearly always
            end = last
            if types[0] > highest:
                highest = types[0]
            continue
        if first < 0 or last < first:
            raise Refused(ErrorCode.INVALID_REQUEST, f'offsets {first} to {last} are no range')
        if first <= end:
            raise Refused(ErrorCode.INVALID_REQUEST, f'offsets {first} to {last} overlap the range before or go back')
        if len(types) != 1 and len(types) != last - first + 1:
            raise Refused(ErrorCode.INVALID_REQUEST, f'{len(types)} types for offsets {first} to {last}')
        highest = max(highest, *types)
        if highest > allowed:
            raise Refused(ErrorCode.INVALID_REQUEST, f'acknowledge types are 0 to {allowed}, not {highest}')
        end = last
    return highest
