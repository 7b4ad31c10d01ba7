"""`acklog subscribe`: takes records of topics, prints each one and signs it off.

Each record is accepted after it was printed and the output has taken it, so that nothing is lost when the reader of a
pipe goes away. With `--ask` the person decides; while they think, the record's lock is renewed where the server can.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from acklog.cli import names as complete
from acklog.cli.connect import Server, reaches_server, run
from acklog.cli.lines import chunks_of_lines
from acklog.cli.options import Number
from acklog.cli.output import check_output, count, note
from acklog.cli.records import as_json, as_text
from acklog.cli.times import METAVAR, beginning, instant_ahead

if TYPE_CHECKING:
    from acklog.client import Received, Subscription

WAIT = 0.5  # seconds of a poll

_ANSWERS = {'a': 'accept', 'r': 'release', 'j': 'reject', 'q': 'quit'}
_QUESTION = '[a]ccept, [r]elease (deliver again) [TIME], re[j]ect (give up) [WHY], [q]uit? '


@click.command(
    epilog='Examples: acklog subscribe billing orders;  acklog subscribe billing orders --max 10 --json;  '
    'acklog subscribe audit orders payments --from 2h;  acklog subscribe nightly orders --idle 5',
)
@click.argument('group', shell_complete=complete.groups)
@click.argument('topics', nargs=-1, required=True, metavar='TOPIC...', shell_complete=complete.topics)
@click.option(
    '--accept', 'mode', flag_value='accept', default=True, help='Accept each record once it is printed (the default).'
)
@click.option(
    '--ask',
    'mode',
    flag_value='ask',
    help='Ask for each record: accept, release (r 10m: not before then) or reject it (j with why).',
)
@click.option('-n', '--max', 'most', type=click.IntRange(min=1), help='End after so many records.')
@click.option(
    '--idle',
    type=Number(min=0.1, max=86_400),
    metavar='SECONDS',
    help='End when nothing has come for so long.',
)
@click.option(
    '--from',
    'begin',
    type=beginning,
    metavar=METAVAR,
    help='Where a new group begins.  [default: earliest]',
)
@click.option('--json', 'json_lines', is_flag=True, help='One JSON object per record and line.')
@reaches_server
def subscribe(
    server: Server,
    group: str,
    topics: tuple[str, ...],
    mode: str,
    most: int | None,
    idle: float | None,
    begin: str | None,
    json_lines: bool,
) -> int:
    """Take the records of TOPICs as a member of GROUP, print them and sign them off.

    A group that does not exist is made, and begins at the earliest record. All subscribers of a group share the records
    between them: start another one, or end one with Ctrl-C, whenever you like.
    """
    return run(_subscribe(server, group, topics, mode == 'ask', most, idle, begin, json_lines))


async def _subscribe(
    server: Server,
    group: str,
    topics: tuple[str, ...],
    ask: bool,
    most: int | None,
    idle: float | None,
    begin: str | None,
    json_lines: bool,
) -> int:
    from acklog.client.beginning import RESET

    check_output()
    async with server.client() as client:
        # one at a time where a person decides, else others would wait for what lies here
        where, strict = begin or 'earliest', ask or most is not None
        subscription = client.subscribe(group, topics, strict=strict, begin=where)
        is_new = not await client.admin.group_exists(group)
        taken = None
        try:
            async with subscription:
                taken = Taken(most)
                if is_new:
                    note(f'group {group!r} is new: it begins at {_words(where)} ({RESET}={where})')
                elif begin is not None:
                    note(f'group {group!r} has begun already: --from is for new groups and changes nothing here')
                take = _ask_each if ask else _accept_each
                await take(subscription, taken, idle, json_lines)
                if idle is not None:
                    await client.topic_exists(topics[0])  # raises where nothing came because no server answers
        finally:
            if taken is not None and (taken.count or not json_lines):
                note(taken.summary())
    return 0


def _words(where: str) -> str:
    kind, _, duration = where.partition(':')
    if kind == 'by_duration':
        return f'the records of the last {timedelta(seconds=int(duration.removeprefix("PT").removesuffix("S")))}'
    return 'the earliest record' if kind == 'earliest' else 'the next record that is published'


class Taken:
    """How many records there were, and whether there are to be more."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self.count = 0
        self.by_answer = dict.fromkeys(('accept', 'release', 'reject'), 0)

    def left(self, at_once: int) -> int:
        """How many to take next, at most `at_once`; 0 at the end."""
        return at_once if self._most is None else min(at_once, self._most - self.count)

    def add(self, answer: str) -> None:
        self.count += 1
        self.by_answer[answer] += 1

    def summary(self) -> str:
        parts = [f'{self.by_answer["accept"]:,} accepted']
        parts += [
            f'{self.by_answer[answer]:,} {word}'
            for answer, word in (('release', 'released'), ('reject', 'rejected'))
            if self.by_answer[answer]
        ]
        return f'{count(self.count, "record")}: {", ".join(parts)}'


async def _accept_each(subscription: Subscription, taken: Taken, idle: float | None, json_lines: bool) -> None:
    while wanted := taken.left(500):
        records = await subscription.poll(idle or WAIT, max_records=wanted)
        if idle and not records:
            return
        for record in records:  # more than wanted where they come in whole batches
            if not taken.left(1):
                return
            _show(record, json_lines)
            taken.add('accept')
            subscription.accept(record)
        sys.stdout.flush()


async def _ask_each(subscription: Subscription, taken: Taken, idle: float | None, json_lines: bool) -> None:
    answers = _answers()
    while taken.left(1):
        records = await subscription.poll(idle or WAIT, max_records=1)
        if idle and not records:
            return
        for record in records:
            if not taken.left(1):
                return
            _show(record, json_lines)
            sys.stdout.flush()
            async with _kept(subscription, record):
                answer, more = await _ask(answers)
            if answer == 'quit':
                return
            getattr(subscription, answer)(record, **more)
            taken.add(answer)
            await subscription.flush()


async def _answers() -> AsyncIterator[str]:
    async for lines in chunks_of_lines():
        for line in lines:
            yield line.decode(errors='replace').strip()


async def _ask(answers: AsyncIterator[str]) -> tuple[str, dict[str, Any]]:
    """The person's answer, 'quit' at the end of input; and when it comes again, or why it is given up."""
    while True:
        click.echo(_QUESTION, nl=False, err=True)
        try:
            word, _, rest = (await anext(answers)).partition(' ')
        except StopAsyncIteration:
            return 'quit', {}
        for letter, answer in _ANSWERS.items():
            if word and (word.lower() == letter or answer.startswith(word.lower())):
                try:
                    return answer, _more(answer, rest.strip())
                except click.BadParameter as error:
                    note(error.message)
                    break


def _more(answer: str, text: str) -> dict[str, Any]:
    """What stands behind an answer, for the subscription's method of that name. Raises BadParameter."""
    if not text:
        return {}
    if answer == 'release':
        return {'at': instant_ahead(text)}
    if answer == 'reject':
        return {'reason': text}
    raise click.BadParameter(f'nothing goes with {answer}: {text!r}')


@contextlib.asynccontextmanager
async def _kept(subscription: Subscription, record: Received) -> AsyncIterator[None]:
    """Hold the record while the person thinks: renew its lock after each half of it."""
    task = asyncio.create_task(_keep(subscription, record))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _keep(subscription: Subscription, record: Received) -> None:
    from acklog.client import ClientError

    try:
        while True:
            await asyncio.sleep(max(0.5, subscription.lock_seconds / 2))
            await subscription.renew(record)
    except ClientError as error:
        note(f'\nthe record cannot be held any longer, it may go to somebody else: {error}')


def _show(record: Received, json_lines: bool) -> None:
    sys.stdout.write((as_json(record) if json_lines else as_text(record)) + '\n')
