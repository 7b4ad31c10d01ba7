"""`acklog publish`: each line of standard input becomes a record."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from acklog.cli import names as complete
from acklog.cli.assignments import METAVAR as NAME_AND_VALUE
from acklog.cli.assignments import assignment
from acklog.cli.connect import Server, reaches_server, run
from acklog.cli.exit_codes import Exit
from acklog.cli.lines import asks_a_person, chunks_of_lines
from acklog.cli.options import Number
from acklog.cli.output import count, note
from acklog.cli.progress import progress
from acklog.cli.times import instants_ahead

if TYPE_CHECKING:
    from acklog.client import Producer, Published
    from acklog.client.options import Acks

RATE_WAIT = 0.002  # seconds: shorter waits are not worth it


class Pace:
    """So many per second, evenly, without catching up for more than a moment after a pause."""

    def __init__(self, rate: float) -> None:
        self._each = 1 / rate
        self._next = time.monotonic()

    async def wait(self) -> None:
        """Return when the next one is due."""
        now = time.monotonic()
        self._next = max(self._next, now - 0.1) + self._each
        ahead = self._next - self._each - now
        if ahead > RATE_WAIT:
            await asyncio.sleep(ahead)


@click.command(
    epilog='Examples: seq 1000 | acklog publish numbers;  '
    'echo "user-7:signed up" | acklog publish events --key-separator :;  '
    'echo "call back" | acklog publish reminders --deliver-at 10m',
)
@click.argument('topic', shell_complete=complete.topics)
@click.option('-k', '--key-separator', metavar='TEXT', help='What stands between key and value in each line.')
@click.option(
    '-H',
    '--header',
    'headers',
    multiple=True,
    type=assignment,
    metavar=NAME_AND_VALUE,
    help='A header of each record (repeatable).',
)
@click.option(
    '--deliver-at',
    type=instants_ahead,
    metavar='TIME',
    help='Not before this time, or so long after it is published: 90s, 15m, 2h, 7d. '
    'For topics with acklog.deliver.at.enable=true.',
)
@click.option('-r', '--rate', type=Number(min=0, min_open=True), help='At most so many records per second.')
@click.option(
    '-a',
    '--acks',
    type=click.Choice(['all', '1', '0']),
    default='all',
    show_default=True,
    help='Confirmed when on disk (all), when the server has it (1), or not at all (0).',
)
@click.option(
    '--compression',
    type=click.Choice(['none', 'gzip', 'snappy', 'lz4', 'zstd']),
    default='none',
    show_default=True,
    help='All but gzip need the package cramjam.',
)
@click.option('-q', '--quiet', is_flag=True, help='Do not say at the end how many there were.')
@reaches_server
def publish(
    server: Server,
    topic: str,
    key_separator: str | None,
    headers: tuple[tuple[str, str], ...],
    deliver_at: Callable[[], int] | None,
    rate: float | None,
    acks: Acks,
    compression: str,
    quiet: bool,
) -> int:
    """Publish each line of standard input as a record to TOPIC.

    With --key-separator, what stands before its first occurrence is the key; a line without it has no key. Records
    with the same key go to the same partition, in their order. A topic that does not exist is created if the server
    does that.
    """
    if key_separator == '':
        raise click.BadParameter('it must not be empty', param_hint='--key-separator')
    separator = key_separator.encode() if key_separator is not None else None
    alike = Alike(separator, [(name, value.encode()) for name, value in headers], deliver_at)
    return run(_publish(server, topic, alike, Pace(rate) if rate else None, acks, compression, quiet))


@dataclass(frozen=True, slots=True)
class Alike:
    """What all records of a run have in common."""

    separator: bytes | None
    headers: list[tuple[str, bytes | None]]
    deliver_at: Callable[[], int] | None

    def split(self, line: bytes) -> tuple[bytes | None, bytes]:
        """Key and value of a line."""
        if self.separator is None:
            return None, line
        key, found, value = line.partition(self.separator)
        return (key, value) if found else (None, line)


class Tally:
    """How many records were sent, confirmed, and not stored, and why."""

    def __init__(self) -> None:
        self.sent = self.confirmed = self.failed = 0
        self.reason: BaseException | None = None
        self._begun = time.monotonic()

    def settled(self, future: asyncio.Future[Published]) -> None:
        """A record's future is done."""
        error = None if future.cancelled() else future.exception()
        if error is None and not future.cancelled():
            self.confirmed += 1
        else:
            self.failed += 1
            self.reason = self.reason or error

    def so_far(self) -> str:
        return f'{count(self.confirmed, "record")} published, {self.sent - self.confirmed - self.failed:,} on their way'

    def summary(self, topic: str) -> str:
        seconds = time.monotonic() - self._begun
        text = f'{count(self.confirmed, "record")} published to {topic} in {seconds:.1f} s'
        left = self.sent - self.confirmed
        return f'{text}, {count(left, "record")} not confirmed' if left else text


async def _publish(
    server: Server, topic: str, alike: Alike, pace: Pace | None, acks: Acks, compression: str, quiet: bool
) -> int:
    from acklog.client import NotFound, Unreachable
    from acklog.errors import AcklogError

    tally = Tally()
    try:
        async with (
            server.client() as client,
            client.producer(acks=acks, compression=compression, patience=max(30.0, server.timeout)) as producer,
        ):
            said = not quiet and not asks_a_person()  # else it would write over what is being typed
            async with progress(tally.so_far) if said else contextlib.nullcontext():
                await _send_lines(producer, topic, alike, pace, tally)
                await producer.flush()
    except NotFound as error:
        if tally.sent:
            raise
        note(f'acklog: {error}; "acklog topic create {topic}" makes it')
        return Exit.NOT_FOUND
    except AcklogError as error:
        if not tally.failed:
            raise
        note(f'acklog: {count(tally.failed, "record")} of {tally.sent:,} not published: {tally.reason or error}')
        return Exit.UNREACHABLE if isinstance(error, Unreachable) else Exit.FAILED
    finally:
        if tally.sent and not quiet:
            note(tally.summary(topic))
    if not tally.sent and not quiet:
        note('no lines, nothing published')
    return Exit.OK


async def _send_lines(producer: Producer, topic: str, alike: Alike, pace: Pace | None, tally: Tally) -> None:
    async for lines in chunks_of_lines():
        for line in lines:
            key, value = alike.split(line)
            if pace is not None:
                await pace.wait()
            due = alike.deliver_at() if alike.deliver_at else None
            future = await producer.send(topic, value, key=key, headers=alike.headers, deliver_at=due)
            tally.sent += 1
            future.add_done_callback(tally.settled)
