"""The command `acklog`: its table of commands, and what every run ends with.

Strategy: each command is a click command in its own file, imported when it runs (lazy.py). Whatever a command raises
on purpose (AcklogError) is one line on stderr and an exit code (exit_codes.py); bugs show their traceback. Click was
taken for its shell completion in bash, zsh and fish and for its suggestions after a typing error.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from acklog.cli.exit_codes import Exit, exit_code
from acklog.cli.lazy import Lazy, LazyGroup
from acklog.errors import AcklogError

COMMANDS = {
    'serve': Lazy('acklog.cli.serve', 'serve', 'Run the server.'),
    'topic': Lazy('acklog.cli.topic', 'topic', 'Create, list, describe, configure and delete topics.'),
    'group': Lazy(
        'acklog.cli.group', 'group', 'Look after groups: members, configs, lag, why nothing comes, seek, pause.'
    ),
    'waiting': Lazy('acklog.cli.waiting', 'waiting', 'Records that wait for a time: list, deliver now, move, give up.'),
    'dead': Lazy('acklog.cli.dead', 'dead', 'Dead records: list, look at, redrive, discard.'),
    'scheduled': Lazy('acklog.cli.scheduled', 'scheduled', 'Records published for later: list, cancel, move.'),
    'record': Lazy('acklog.cli.record', 'record', 'Show a record, and what it is to each group.'),
    'publish': Lazy('acklog.cli.publish', 'publish', 'Publish each line of standard input as a record.'),
    'subscribe': Lazy('acklog.cli.subscribe', 'subscribe', 'Take the records of topics and sign each one off.'),
    'demo': Lazy('acklog.cli.demo', 'demo', 'Show the main job: kill subscribers and the server, lose nothing.'),
    'completion': Lazy('acklog.cli.completion', 'completion', 'Print the script for completion in your shell.'),
}


UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # of a file that stdout goes to


class _Root(LazyGroup):
    """The command itself. What ends a command from outside is dealt with here, before click writes about it."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            return Exit.INTERRUPTED
        except BrokenPipeError:
            _forget_output()
            return Exit.BROKEN_PIPE


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        import acklog

        click.echo(f'acklog {acklog.__version__}')
        ctx.exit()


@click.group(
    cls=_Root,
    lazy=COMMANDS,
    context_settings={'help_option_names': ['-h', '--help'], 'max_content_width': 100},
    epilog='Start with "acklog serve" in one terminal and "acklog subscribe hello-group hello" in another.',
)
@click.option(
    '--version', is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help='Show the version.'
)
@click.option(
    '-b', '--bootstrap', metavar='HOST:PORT[,...]', help='Address of the server, for all commands that need it.'
)
@click.option('--http', metavar='URL', help="Address of the server's HTTP API, for all commands that need that.")
def root(bootstrap: str | None, http: str | None) -> None:
    """A message server on a replayable log, where each record is signed off.

    It speaks the Apache Kafka protocol: publish with any Kafka producer, take with any share consumer, or with the
    commands below.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `acklog` with these arguments (default: those of the process) and return the exit code."""
    try:
        result = _run(arguments)
        if sys.stdout:  # None where it was closed from the start
            sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        result = Exit.BROKEN_PIPE
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        _forget_output()
        click.echo(f'acklog: the output cannot be written: {error.strerror}', err=True)
        result = Exit.FAILED
    return int(result)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        result = root.main(args=arguments, prog_name='acklog', standalone_mode=False)
    except click.Abort:
        return Exit.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return Exit.USAGE if isinstance(error, click.UsageError) else Exit(error.exit_code)
    except AcklogError as error:
        click.echo(f'acklog: {error}', err=True)
        return exit_code(error)
    return result if isinstance(result, int) else Exit.OK


def _forget_output() -> None:
    """Nobody reads stdout any more: send what is left of it nowhere, so that the interpreter's last flush is quiet."""
    with contextlib.suppress(OSError, ValueError):  # no descriptor: stdout is not a file, nothing to quieten
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
