"""How many files and sockets the operating system lets this process have."""

from __future__ import annotations

import logging
import resource

logger = logging.getLogger('acklog.server')

OTHER_FILES = 64  # that are neither a log's nor a connection's


def connections_allowed(connections: int, log_files: int) -> int:
    """As many of `connections` as there can be beside `log_files` open files of logs, at least one. The limit for this
    process is raised as far as it goes; a warning tells when that is not enough."""
    wanted = connections + log_files + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
        except (OSError, ValueError):  # macOS says that there is no limit, and has one
            logger.debug('the limit of open files stays at %d', soft)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    allowed = max(soft - log_files - OTHER_FILES, 1)
    logger.warning(
        'this process may have %d files open: there can be %d connections, not the %d of max.connections',
        soft,
        allowed,
        connections,
    )
    return allowed
