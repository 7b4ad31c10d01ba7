"""`acklog demo`: the main job on this machine, with free ports and a temporary directory; nothing stays behind.

Exit codes: 0 when every record was signed off, none lost and none delivered again after its accept; 1 when not; 2 when
it could not be run, with the reason and the cure on stderr; 130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from acklog.testing.load import Plan
from acklog.testing.process import ServerFailed, ServerProcess
from acklog.testing.stock_client import NoStockClient, require

RECORDS, SECONDS = 200_000, 12.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; `arguments` as on the command line after `acklog demo`. Returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        require()
    except NoStockClient as error:
        return _cannot(f'acklog demo: {error}')
    folder = Path(tempfile.mkdtemp(prefix='acklog-demo-'))
    keep = bool(options.keep)
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        return _run(options, folder)
    except ServerFailed as error:
        keep = True
        return _cannot(f'acklog demo: {error}\nEverything of this run is in {folder}')
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
        if keep:
            sys.stderr.write(f'kept: {folder}\n')
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _terminate(number: int, _: FrameType | None) -> NoReturn:
    """SIGTERM as Ctrl-C: what was started is ended, and the directory is removed."""
    sys.exit(128 + number)


def _run(options: argparse.Namespace, folder: Path) -> int:
    from acklog.demo.report import as_json, as_text
    from acklog.demo.scenario import MainJob

    # With --json the progress goes to stderr, so that stdout is JSON and nothing else.
    progress = sys.stderr if options.json else sys.stdout

    def say(words: str) -> None:
        progress.write(words + '\n')
        progress.flush()

    plan = Plan(records=options.records, rate=options.records / options.seconds, seed=options.seed)
    say(f'acklog demo: {plan.records:,} records in {options.seconds:.0f} s, and kill -9 of subscribers and server\n')
    server = ServerProcess(folder / 'data')
    try:
        outcome = MainJob(server, plan, folder / 'diaries', say).run()
    finally:
        server.kill()
    sys.stdout.write((as_json(outcome) if options.json else '\n' + as_text(outcome)) + '\n')
    return 0 if outcome.ok else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='acklog demo', description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--records', type=_positive, default=RECORDS, help='how many are published (%(default)s)')
    parser.add_argument(
        '--seconds', type=_positive_seconds, default=SECONDS, help='spread over so many seconds (%(default)s)'
    )
    parser.add_argument('--seed', type=int, default=0, help='for which records are handed back (%(default)s)')
    parser.add_argument('--keep', action='store_true', help='keep the data directory and the diaries, and say where')
    parser.add_argument('--json', action='store_true', help='print the figures as JSON')
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError('at least 1')
    return number


def _positive_seconds(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError('more than 0')
    return number


def _cannot(words: str) -> int:
    sys.stderr.write(words + '\n')
    return 2


if __name__ == '__main__':
    sys.exit(main())
