"""How many files and sockets the operating system lets this process have, and who gets how many of them."""

from __future__ import annotations

import logging
import resource
from typing import NamedTuple

logger = logging.getLogger('acklog.server')

OTHER_FILES = 64  # that are neither a log's nor a connection's
FEWEST = 16  # of logs


class Shares(NamedTuple):
    """How many of each there may be at a time."""

    connections: int
    http_connections: int
    log_files: int


def raise_limit(wanted: Shares) -> None:
    """Raise the limit of this process as far as it is wanted and may be; a warning tells when that is not enough."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = sum(wanted) + OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    except (OSError, ValueError):  # macOS says that there is no limit, and has one
        logger.debug('the limit of open files stays at %d', soft)
    if soft < needed:
        words = 'this process may have %d files open, not %d as configured: there can be %d connections, %d over HTTP'
        can = shares(wanted)
        logger.warning(words, soft, needed, can.connections, can.http_connections)


def shares(wanted: Shares) -> Shares:
    """What there can be of `wanted` within the limit as it is: logs and HTTP give way first."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY or limit >= sum(wanted) + OTHER_FILES:
        return wanted
    left = max(limit - OTHER_FILES, 3 * FEWEST)
    log_files = min(wanted.log_files, max(left // 4, FEWEST))
    http = min(wanted.http_connections, left // 8)
    return Shares(min(wanted.connections, left - log_files - http), http, log_files)
