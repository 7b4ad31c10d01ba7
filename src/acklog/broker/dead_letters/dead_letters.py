"""Writing dead letters to the topics that groups have for them (KIP-1191): before a record counts as dead, its dead
letter is on disk there.

Strategy: a share partition that has dying records is queued; a few are worked on at a time. First the journal has it
that they died, so that what is written is true; then their letters are appended, many at once; then it is recorded that
they stand. After a crash between the two they are written again: at least once. What cannot be written stays owed, the
reason can be read, and it is tried again: later and later, or at once when a config or a topic changes.

A letter goes to the partition with the number of the record's own, modulo how many there are, as Apache Kafka does it.
Where the group has no such topic any more, what was dying is dead without a letter.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pyroaring import BitMap64

from acklog.broker.api import Refused
from acklog.broker.appending import append
from acklog.broker.dead_letters.records import NOTHING, Copy, batch, copies, letter, of_place
from acklog.broker.dead_letters.topic import COPY, dead_letter_topic
from acklog.broker.eager import Eager, turn
from acklog.core.offsets import lowest
from acklog.errors import AcklogError
from acklog.log.seam import Durability
from acklog.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Group, Topic
    from acklog.broker.deliveries.delivery import ShareDelivery
    from acklog.broker.partition import Partition
    from acklog.broker.time import Scheduled
    from acklog.core.share_partition import SharePartition

AT_A_TIME = 8  # share partitions whose letters are being written
MOST = 250  # letters of one append
AGAIN_MS, LONGEST_MS = 1_000, 30_000  # the first wait after a failure, and the longest

logger = logging.getLogger('acklog.dead_letters')


class Failure:
    """Why letters of a share partition could not be written, and when it is tried again."""

    __slots__ = ('call', 'reason', 'wait_ms')

    def __init__(self) -> None:
        self.reason = ''
        self.wait_ms = 0
        self.call: Scheduled | None = None  # None: it is being tried


class Dying(NamedTuple):
    """The first records of a share partition that are dying, in one state of it and one epoch of that."""

    state: SharePartition
    epoch: int
    offsets: BitMap64

    @classmethod
    def of(cls, delivery: ShareDelivery) -> Dying:
        """As it is now."""
        status = delivery.state.status
        return cls(delivery.state, status.epoch, lowest(status.dying(), MOST))

    def still(self, delivery: ShareDelivery) -> BitMap64:
        """Those that are dying still; none if it was sought or folded anew meanwhile."""
        status = self.state.status
        if delivery.fenced or delivery.state is not self.state or status.epoch != self.epoch:
            return BitMap64()
        return self.offsets & status.dying()


class DeadLetters:
    """Everything of this node that is dying."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._queued: dict[ShareDelivery, None] = {}
        self._writing: set[ShareDelivery] = set()
        self._failures: dict[ShareDelivery, Failure] = {}
        self._running = False
        self._idle: asyncio.Future[None] | None = None

    # -- what is owed --------------------------------------------------------------------------------------------------

    def owe(self, delivery: ShareDelivery) -> None:
        """It has dying records."""
        failure = self._failures.get(delivery)
        if delivery not in self._writing and (failure is None or failure.call is None):
            self._queued[delivery] = None
            self._go()

    def forget(self, delivery: ShareDelivery) -> None:
        """Its group or topic is gone."""
        self._queued.pop(delivery, None)
        failure = self._failures.pop(delivery, None)
        if failure is not None and failure.call is not None:
            failure.call.cancel()

    def reason(self, delivery: ShareDelivery) -> str | None:
        """Why its dead letters cannot be written; None if nothing is known to be wrong."""
        failure = self._failures.get(delivery)
        return failure.reason if failure is not None and delivery.state.status.is_burying else None

    def try_again(self) -> None:
        """Something was changed that may have been wrong."""
        for delivery, failure in list(self._failures.items()):
            failure.wait_ms = 0
            if failure.call is not None:
                failure.call.cancel()
                self._again(delivery, failure)

    def start(self) -> None:
        """Everything else has been recovered."""
        self._running = True
        self._go()

    async def close(self) -> None:
        """Nothing new is begun; what is under way has ended when it returns."""
        self._running = False
        for failure in self._failures.values():
            if failure.call is not None:
                failure.call.cancel()
        if self._writing:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    # -- working it off ------------------------------------------------------------------------------------------------

    def _go(self) -> None:
        while self._running and self._queued and len(self._writing) < AT_A_TIME:
            delivery = next(iter(self._queued))
            del self._queued[delivery]
            self._writing.add(delivery)
            Eager(self._write_all(delivery), partial(self._ended, delivery))

    def _ended(self, delivery: ShareDelivery, _: None, error: BaseException | None) -> None:
        self._writing.discard(delivery)
        if isinstance(error, AcklogError):
            self._failed(delivery, error)
        elif error is not None:  # a bug, or no memory: tried again like all else
            logger.error('dead letters of %s: this is a bug', _name(delivery), exc_info=error)
            self._failed(delivery, error)
        elif (failure := self._failures.pop(delivery, None)) is not None and self._running and not delivery.fenced:
            logger.info('dead letters of %s are written again (%s)', _name(delivery), failure.reason)
        if self._idle is not None and not self._writing and not self._idle.done():
            self._idle.set_result(None)
        self._go()

    def _failed(self, delivery: ShareDelivery, error: BaseException) -> None:
        group = self._broker.group_by_id(delivery.key.group)
        if not self._running or group is None or delivery is not self._broker.deliveries.find(group, *delivery.key[1:]):
            self._failures.pop(delivery, None)
            return
        failure = self._failures.setdefault(delivery, Failure())
        if failure.reason != str(error):
            failure.reason = str(error)
            logger.warning(
                'group %s: dead letters of %s cannot be written, so its %d dying records stay owed: %s',
                group.name,
                _name(delivery),
                delivery.state.status.counts().dying,
                error,
            )
        failure.wait_ms = min(LONGEST_MS, 2 * failure.wait_ms or AGAIN_MS)
        when = self._broker.clock() + failure.wait_ms
        failure.call = self._broker.timer.at(when, lambda: self._again(delivery, failure))

    def _again(self, delivery: ShareDelivery, failure: Failure) -> None:
        if self._failures.get(delivery) is failure:
            failure.call = None
            self.owe(delivery)

    # -- one share partition -------------------------------------------------------------------------------------------

    async def _write_all(self, delivery: ShareDelivery) -> None:
        """Until nothing of it is dying. Raises AcklogError with why that cannot be."""
        await turn()  # what dies in the same turn goes the same way, and nobody's decision is interrupted
        while self._is_owed(delivery):
            dying = Dying.of(delivery)
            await self._broker.deliveries.journal.written()  # of others that die meanwhile it may not tell yet
            group = self._broker.group_by_id(delivery.key.group)
            if group is None or not self._is_owed(delivery):
                return
            if delivery.state.config.dead_letter_topic:
                await self._write(delivery, group, dying)
            else:
                delivery.dead_letters_written(delivery.state.status.dying())
            await turn()

    def _is_owed(self, delivery: ShareDelivery) -> bool:
        return self._running and not delivery.fenced and delivery.state.status.is_burying

    async def _write(self, delivery: ShareDelivery, group: Group, dying: Dying) -> None:
        topic = await dead_letter_topic(self._broker, group)
        partition, most = self._partition(topic, delivery.index), topic.integer('max.message.bytes')
        offsets = dying.still(delivery)
        found: dict[int, Copy] = {}
        if offsets and group.flag(COPY):
            found, looked = await copies(delivery.partition.log, list(offsets), most)
            offsets = lowest(offsets, looked) & dying.still(delivery)
        if not offsets:
            return
        place = of_place(delivery.partition.topic_name, delivery.index, group.name)
        plain, status = partition.later is not None, delivery.state.status
        letters = [
            letter(place, offset, status.record(offset), found.get(offset, NOTHING), plain=plain) for offset in offsets
        ]
        await turn()  # a few milliseconds are enough
        data, count = batch(letters, self._broker.clock(), most)
        await append(self._broker, partition, data, Durability.SYNCED)
        delivery.dead_letters_written(lowest(offsets, count) & dying.still(delivery))

    def _partition(self, topic: Topic, index: int) -> Partition:
        partition = self._broker.partition(topic.id_bytes, index % topic.partitions)
        if partition is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'the topic {topic.name} is not here (any more)')
        return partition


def _name(delivery: ShareDelivery) -> str:
    return f'{delivery.partition.topic_name}-{delivery.index}'
