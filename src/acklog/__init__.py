"""acklog: a message server on a replayable log, where each record is signed off.

`import acklog` loads nothing else: the client is `acklog.client`, the server is started by `acklog serve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str

__all__ = ['__version__']


def __getattr__(name: str) -> str:
    """`__version__` is looked up when it is asked for: reading the installed package's metadata costs 20 ms."""
    if name == '__version__':
        from importlib.metadata import version

        return version('acklog')
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
