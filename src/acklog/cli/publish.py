"""`acklog publish`: each line of standard input becomes a record."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import click

from acklog.cli.connect import Server, reaches_server, run
from acklog.cli.exit_codes import Exit
from acklog.cli.lines import chunks_of_lines
from acklog.cli.output import count, note

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
    'echo "user-7:signed up" | acklog publish events --key-separator :',
)
@click.argument('topic')
@click.option('-k', '--key-separator', metavar='TEXT', help='What stands between key and value in each line.')
@click.option('-r', '--rate', type=click.FloatRange(min=0, min_open=True), help='At most so many records per second.')
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
    return run(_publish(server, topic, separator, Pace(rate) if rate else None, acks, compression, quiet))


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

    def summary(self, topic: str) -> str:
        seconds = time.monotonic() - self._begun
        text = f'{count(self.confirmed, "record")} published to {topic} in {seconds:.1f} s'
        left = self.sent - self.confirmed
        return f'{text}, {count(left, "record")} not confirmed' if left else text


async def _publish(
    server: Server, topic: str, separator: bytes | None, pace: Pace | None, acks: Acks, compression: str, quiet: bool
) -> int:
    from acklog.client import NotFound, Unreachable
    from acklog.errors import AcklogError

    tally = Tally()
    try:
        async with (
            server.client() as client,
            client.producer(acks=acks, compression=compression, patience=max(30.0, server.timeout)) as producer,
        ):
            await _send_lines(producer, topic, separator, pace, tally)
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


async def _send_lines(producer: Producer, topic: str, separator: bytes | None, pace: Pace | None, tally: Tally) -> None:
    async for lines in chunks_of_lines():
        for line in lines:
            key, value = _split(line, separator)
            if pace is not None:
                await pace.wait()
            future = await producer.send(topic, value, key=key)
            tally.sent += 1
            future.add_done_callback(tally.settled)


def _split(line: bytes, separator: bytes | None) -> tuple[bytes | None, bytes]:
    if separator is None:
        return None, line
    key, found, value = line.partition(separator)
    return (key, value) if found else (None, line)
