"""A subscriber in a process of its own: acklog's client, times, rejections, records held for a while, and a diary.

    python -m acklog.testing.own_subscriber --address HOST:PORT --topic T --group G --diary FILE --seed N

It does what `subscriber` does, and what the stock client cannot: it gives records back until an instant or for some
time, rejects some, and keeps some while it takes and settles others. What was decided is kept until the server has
confirmed it, also over a restart of the server. It ends when its stdin is closed, and so also when its parent ends.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import select
import sys
import time
from collections.abc import Sequence
from typing import Literal, NamedTuple

from acklog.client import AcknowledgementsRefused, Client, Received, Subscription
from acklog.client.errors import PASSING
from acklog.errors import AcklogError
from acklog.testing.diary import Diary, What
from acklog.testing.stock_client import RECORD_DIGITS, content

POLL_S = 0.2
START_S = 20.0  # in which a server that was killed is back
LONGEST_HOLD_S = 2.0
MOST_RELEASES = 4  # of one record, so that few use up their attempts

Kind = Literal['accept', 'reject', 'release', 'at', 'after']
KINDS: tuple[Kind, ...] = ('accept', 'reject', 'release', 'at', 'after')
ASKING: dict[Kind, What] = {'accept': 'accepting', 'reject': 'rejecting'}
DONE: dict[Kind, What] = {'accept': 'accepted', 'reject': 'rejected'}


class Decided(NamedTuple):
    """What is to become of a record. `due`: s, monotonic; 0 where no time was named."""

    kind: Kind
    record: Received
    due: float = 0.0


def number_of(record: Received) -> int:
    """The number that it was published with."""
    digits = (record.value or b'')[:RECORD_DIGITS]
    return int(digits) if digits.isdigit() else -1


class OwnSubscriber:
    """Takes, holds, settles, and writes each step down before or after it as the diary asks."""

    def __init__(self, options: argparse.Namespace, subscription: Subscription) -> None:
        self._options, self._subscription = options, subscription
        self._diary = Diary(options.diary)
        self._random = random.Random(options.seed)
        self._held: list[tuple[float, Received]] = []  # and until when
        self._unconfirmed: list[Decided] = []

    async def turn(self) -> None:
        """Take a batch; decide about most of it, and about what was held for long enough; ask for confirmation."""
        got = await self._take()
        if got and self._options.work_ms:
            await asyncio.sleep(self._options.work_ms / 1000)
        now = time.monotonic()
        ready = [record for until, record in self._held if until <= now]
        self._held = [(until, record) for until, record in self._held if until > now]
        for record in got:
            if self._random.random() < self._options.hold:
                self._held.append((now + self._random.uniform(0, LONGEST_HOLD_S), record))
            else:
                ready.append(record)
        await self._settle([self._decide(record) for record in ready])

    async def finish(self) -> None:
        """Give back what is held, and get everything confirmed, before it leaves."""
        await self._settle([Decided('release', record) for _, record in self._held])
        self._diary.write('finished')

    async def _take(self) -> list[Received]:
        try:
            got = await self._subscription.poll(POLL_S)
        except AcklogError as error:
            self._diary.write('trouble', words=f'poll: {error}')
            await asyncio.sleep(0.05)
            return []
        now = time.monotonic()
        for partition in {record.partition for record in got}:
            batch = [record for record in got if record.partition == partition]
            self._diary.write(
                'delivered',
                at=now,
                partition=partition,
                records=[number_of(record) for record in batch],
                offsets=[record.offset for record in batch],
                deliveries=[record.deliveries for record in batch],
            )
        for record in got:
            if record.value != content(number_of(record), self._options.size):
                self._diary.write('damaged', records=[number_of(record)])
        return got

    def _decide(self, record: Received) -> Decided:
        dice = self._random.random()
        if dice < self._options.reject:
            return Decided('reject', record)
        if dice >= self._options.reject + self._options.release or record.deliveries > MOST_RELEASES:
            return Decided('accept', record)
        kind: Kind = self._random.choice(('at', 'after', 'release'))
        delay = self._random.uniform(0.01, self._options.longest_delay)
        return Decided(kind, record, 0.0 if kind == 'release' else time.monotonic() + delay)

    async def _settle(self, decided: Sequence[Decided]) -> None:
        for kind in KINDS:
            self._write(ASKING.get(kind, 'releasing'), [one for one in decided if one.kind == kind])
        self._unconfirmed += [self._told(one) for one in decided]
        if not self._unconfirmed:
            return
        refused: set[tuple[int, int]] = set()
        try:
            await self._subscription.flush()
        except AcknowledgementsRefused as error:
            for failure in error.failures:
                refused.update((failure.partition, offset) for offset in range(failure.first, failure.last + 1))
        except AcklogError as error:  # not known yet, and asked for again with the next flush
            self._diary.write('trouble', words=f'flush: {error}')
            return
        confirmed, self._unconfirmed = self._unconfirmed, []
        self._write('refused', [one for one in confirmed if _place(one) in refused])
        confirmed = [one for one in confirmed if _place(one) not in refused]
        for kind in KINDS:
            self._write(DONE.get(kind, 'released'), [one for one in confirmed if one.kind == kind])

    def _told(self, one: Decided) -> Decided:
        """Tell the client, which sends it with the flush. The due that is returned is what the server may not
        undercut."""
        record = one.record
        if one.kind == 'accept':
            record.accept()
        elif one.kind == 'reject':
            record.reject(reason='rejected by the soak')
        elif one.kind == 'release':
            record.release()
        elif one.kind == 'after':
            record.release(after=max(0.001, one.due - time.monotonic()))
        else:
            now = time.monotonic()  # before the wall clock is read: in between the due may get earlier, not later
            record.release(at=round((time.time() + one.due - now) * 1000) + 1)
        return one

    def _write(self, what: What, some: Sequence[Decided]) -> None:
        if some:
            self._diary.write(
                what,
                records=[number_of(one.record) for one in some],
                deliveries=[one.record.deliveries for one in some],
                words=some[0].kind,
                dues=[one.due for one in some if one.due],
            )


def _place(one: Decided) -> tuple[int, int]:
    return one.record.partition, one.record.offset


async def work(options: argparse.Namespace) -> None:
    """Until stdin is closed."""
    async with Client(options.address) as client:
        subscription = client.subscribe(
            options.group, [options.topic], max_records=options.batch, grace=options.grace, strict=True
        )
        await _start(subscription)
        try:
            subscriber = OwnSubscriber(options, subscription)
            while not select.select([sys.stdin], [], [], 0)[0]:
                await subscriber.turn()
            await subscriber.finish()
        finally:
            await subscription.close()


async def _start(subscription: Subscription) -> None:
    """The server may just have been killed: it will be back."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            await subscription.start()
            return
        except PASSING:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(prog='acklog.testing.own_subscriber')
    for name in ('address', 'topic', 'group', 'diary'):
        parser.add_argument(f'--{name}', required=True)
    parser.add_argument('--size', type=int, default=100)
    parser.add_argument('--batch', type=int, default=200, help='records asked for at once')
    parser.add_argument('--work-ms', type=float, default=0.0, help='how long it works on a batch')
    parser.add_argument('--release', type=float, default=0.0, help='part of the records that it gives back, 0 to 1')
    parser.add_argument('--reject', type=float, default=0.0, help='part of the records that it rejects, 0 to 1')
    parser.add_argument('--hold', type=float, default=0.0, help='part of the records that it keeps for a while, 0 to 1')
    parser.add_argument('--longest-delay', type=float, default=3.0, help='s, of records given back until a time')
    parser.add_argument('--grace', type=float, default=1.0, help='s that it may be without a connection')
    parser.add_argument('--seed', type=int, default=0)
    asyncio.run(work(parser.parse_args()))


if __name__ == '__main__':
    main()
