"""The exit codes of `acklog`, and the one line that an error becomes.

They are part of the command line's contract: docs/command-line.md lists them for those who write scripts.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acklog.errors import AcklogError


class Exit(IntEnum):
    """What `acklog` ends with."""

    OK = 0
    FAILED = 1  # anything not listed below; the message says what
    USAGE = 2  # the command was written wrongly, or a setting is not allowed
    UNREACHABLE = 3  # no server answers, or it stopped answering
    NOT_FOUND = 4  # the topic, group, member or record does not exist
    EXISTS = 5  # there is one of that name already
    UNSUPPORTED = 6  # this server, or this system, does not offer it
    INTERRUPTED = 130  # Ctrl-C
    BROKEN_PIPE = 141  # whoever read the output has gone
    TERMINATED = 143  # SIGTERM


def exit_code(error: AcklogError) -> Exit:
    """The exit code for an error. Imports the client only here, when something has gone wrong."""
    from acklog.client import errors as client
    from acklog.client.http import HttpNotFound
    from acklog.errors import ConfigError

    table: tuple[tuple[type[AcklogError], Exit], ...] = (
        (ConfigError, Exit.USAGE),
        (client.Unreachable, Exit.UNREACHABLE),
        (client.Disconnected, Exit.UNREACHABLE),
        (client.TimedOut, Exit.UNREACHABLE),
        (client.NotFound, Exit.NOT_FOUND),
        (HttpNotFound, Exit.NOT_FOUND),
        (client.AlreadyExists, Exit.EXISTS),
        (client.Unsupported, Exit.UNSUPPORTED),
    )
    return next((code for kind, code in table if isinstance(error, kind)), Exit.FAILED)
