"""Bringing kio in: with the first message of a cold API, and without what it would bring along.

Where hypothesis is installed, as it is for development, kio imports it to register strategies for its types: 13 MB and
0.4 s, of which nothing is used here. It takes its absence for granted elsewhere, so absent it is while kio is imported;
who has imported hypothesis before, as tests do, keeps it.
"""

from __future__ import annotations

import functools
import sys


@functools.cache
def kio() -> None:
    """Import kio's common modules, once."""
    absent = 'hypothesis' not in sys.modules
    if absent:
        sys.modules['hypothesis'] = None  # type: ignore[assignment]
    try:
        import kio.index
        import kio.static.primitive  # noqa: F401
    finally:
        if absent:
            del sys.modules['hypothesis']
