"""Log lines about what peers do wrong, few enough that no peer can fill the disk with them."""

from __future__ import annotations

import logging
import time


class RateLimited:
    """At most `per_second` lines a second of each kind; the next one that comes through says how many did not."""

    def __init__(self, logger: logging.Logger, per_second: int = 5) -> None:
        self._logger = logger
        self._per_second = per_second
        self._kinds: dict[str, tuple[int, int, int]] = {}  # kind -> (second, lines in it, lines withheld)

    def warning(self, kind: str, text: str, *args: object) -> None:
        """`kind`: a fixed word, never taken from the peer."""
        self._line(logging.WARNING, kind, text, args, None)

    def error(self, kind: str, text: str, *args: object, exc_info: BaseException | None = None) -> None:
        """The same for what is wrong here; `exc_info`: whose traceback is shown."""
        self._line(logging.ERROR, kind, text, args, exc_info)

    def _line(self, level: int, kind: str, text: str, args: tuple[object, ...], exc_info: BaseException | None) -> None:
        second = int(time.monotonic())
        at, lines, withheld = self._kinds.get(kind, (second, 0, 0))
        if at != second:
            at, lines = second, 0
        if lines >= self._per_second:
            self._kinds[kind] = (at, lines, withheld + 1)
            return
        self._kinds[kind] = (at, lines + 1, 0)
        if withheld:
            text, args = text + ' (and %d more like it not shown)', (*args, withheld)
        self._logger.log(level, text, *args, exc_info=exc_info)
