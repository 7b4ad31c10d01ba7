"""The indexes of segments that are no longer appended to: loaded when read from, a bounded number of entries at a
time.
"""

from __future__ import annotations

from collections import OrderedDict

from acklog.log.files import Files
from acklog.log.index import Index
from acklog.log.segment import Segment, read_index

ENTRIES = 1 << 20  # 24 bytes each


class LoadedIndexes:
    """Which closed segments of a directory have their index in memory, the least recently loaded first."""

    __slots__ = ('_entries', '_loaded', 'limit')

    def __init__(self, limit: int = ENTRIES) -> None:
        self.limit = limit
        self._loaded: OrderedDict[int, Segment] = OrderedDict()
        self._entries = 0

    def loaded(self, segment: Segment, files: Files, interval: int) -> Index:
        """The index of a closed segment. Raises Damaged, OSError."""
        index = segment.index
        if index is None:
            index = segment.index = read_index(files, segment, None, interval).index
            assert index is not None
            self._loaded[id(segment)] = segment
            self._entries += len(index) + 1
            while self._entries > self.limit and len(self._loaded) > 1:
                _, oldest = self._loaded.popitem(last=False)
                self._entries -= len(oldest.index or ()) + 1
                oldest.index = None
        return index
