"""`acklog serve`: the server in this process.

Options become settings of the same name (`--data` is `data`), which win over `--set`, the environment and the file.
"""

from __future__ import annotations

import os
import sys

import click

from acklog.cli.exit_codes import Exit
from acklog.cli.output import note

LEVELS = ('debug', 'info', 'warning', 'error')


@click.command(
    epilog='Examples: acklog serve;  acklog serve --data /var/lib/acklog --listen 0.0.0.0:9092 '
    '--advertise mq.example.org:9092;  acklog serve --set num.partitions=8',
)
@click.option('--data', metavar='DIR', help='Where everything is stored; made if missing.  [default: ./acklog-data]')
@click.option(
    '--listen', metavar='HOST:PORT', help='Where to listen; port 0 takes a free one.  [default: 127.0.0.1:9092]'
)
@click.option(
    '--advertise',
    metavar='HOST:PORT',
    help='What clients are told to connect to.  [default: as --listen; a must where that is a wildcard]',
)
@click.option(
    '--http', metavar='HOST:PORT', help='Where to listen for HTTP; `off` for none.  [default: 127.0.0.1:8080]'
)
@click.option('--config', 'file', metavar='FILE', help='TOML file with settings.  [env var: ACKLOG_CONFIG]')
@click.option(
    '--set',
    'assignments',
    metavar='NAME=VALUE',
    multiple=True,
    help='Any setting; see docs/configuration.md (repeatable).',
)
@click.option('--log-level', metavar='|'.join(LEVELS), help='What is logged, to stderr.  [default: info]')
@click.option('--log-format', metavar='text|json', help='How it is written.  [default: text]')
def serve(
    data: str | None,
    listen: str | None,
    advertise: str | None,
    http: str | None,
    file: str | None,
    assignments: tuple[str, ...],
    log_level: str | None,
    log_format: str | None,
) -> int:
    """Run the server until SIGTERM or Ctrl-C.

    It says on standard output when it is ready. Settings come from defaults, then --config, then the environment
    (ACKLOG_NUM_PARTITIONS for num.partitions), then --set, then the options here; the later win.
    """
    if sys.platform == 'win32':
        note('acklog: the server does not run on Windows, only clients do; use Linux, for example under WSL')
        return Exit.UNSUPPORTED
    from acklog.server.config import load_settings
    from acklog.server.log_output import log_to_stderr

    settings = load_settings(
        file=file,
        environment=os.environ,
        assignments=assignments,
        options={
            'data': data,
            'listen': listen,
            'advertise': advertise,
            'http': http,
            'log.level': log_level,
            'log.format': log_format,
        },
    )
    log_to_stderr(settings.text('log.level'), settings.text('log.format'))
    from acklog.server.run import serve as run_server

    return run_server(settings)
