"""One segment of a log: record batches v2 as they came, one behind the other, and an index file beside them.

On disk, `<base offset, 20 digits>.log`: whole batches, nothing else; the offset of the first one is at or above the
base offset. `<base offset>.index`: see `acklog.log.index`. A file `*.new` is the unfinished work of somebody who died,
and is removed. Offsets at or above the base offset of the next segment do not count (a rewrite after a failed sync was
cut short).

Strategy: this is the book-keeping of a segment, and how its index file is written and read; who appends is
`acklog.log.appender`, who opens after an unclean end is `acklog.log.recovery`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from acklog.errors import Damaged
from acklog.log.files import Files, read_file, write_all
from acklog.log.index import ALL_PRODUCERS, CHUNK_SIZE, COMPLETE, Chunk, Index, read_chunk, read_chunks
from acklog.log.producers import Producers
from acklog.log.scan import Stored, Walk
from acklog.wire.record_batch import CONTROL

MARK_BYTES = 1 << 20  # of log between two chunks of the index file: what an unclean start may have to read


class Segment:
    """State of one segment. Positions and sizes are bytes in its file, times are ms."""

    __slots__ = (
        'all_producers',
        'appended',
        'base',
        'checked',
        'checked_from',
        'complete',
        'created',
        'directory',
        'fresh',
        'handle',
        'index',
        'index_crc',
        'index_size',
        'latest',
        'marked',
        'marked_entries',
        'marked_synced',
        'max_timestamp',
        'next',
        'own',
        'path',
        'rolled',
        'size',
        'snapshot_late',
        'synced',
    )

    def __init__(self, directory: str, base: int) -> None:
        self.directory = directory
        self.base = base
        self.path = f'{directory}/{base:020d}.log'
        self.size = 0  # written to the operating system
        self.next = base  # offset behind what is written
        self.max_timestamp = -1
        self.created = -1
        self.appended = -1
        self.synced = 0  # known to be on disk
        self.own = 0  # from here on written by this process: not checked again on reading
        self.checked_from = self.checked = 0  # checked on reading
        self.index: Index | None = None
        self.index_size = 0  # sound bytes of the index file
        self.index_crc = 0  # of its last chunk
        self.all_producers = False  # its first chunk names all producers
        self.handle = -1  # open for writing, while not all is on disk
        self.latest: bytes | None = None  # what was written last, up to `next`, where it is small
        self.marked = 0  # bytes of the segment that the index file speaks of
        self.marked_entries = 0
        self.marked_synced = -1  # what it says is on disk, itself being there
        self.snapshot_late = False  # its index file begins with a chunk that speaks of bytes not on disk
        self.rolled = False  # nothing is appended any more
        self.complete = False  # rolled, on disk, and the index file says so
        self.fresh = True  # its directory entry may not be on disk

    @property
    def index_path(self) -> str:
        return f'{self.directory}/{self.base:020d}.index'

    def record(self) -> list[int]:
        """What the checkpoint of a clean close keeps of it."""
        return [self.base, self.size, self.next, self.max_timestamp, self.created, self.appended, int(self.rolled)]

    def restore(self, record: Sequence[int]) -> None:
        """Take what `record` gave."""
        self.base, self.size, self.next, self.max_timestamp, self.created, self.appended, rolled = record
        self.path = f'{self.directory}/{self.base:020d}.log'
        self.rolled = self.complete = bool(rolled)
        self.synced = self.own = self.size
        self.fresh = False

    def note(self, batch: Stored, interval: int) -> None:
        """A batch that follows the last one has been found in the file."""
        index = self.index
        assert index is not None
        if batch.position - (index.positions[-1] if index.positions else 0) >= interval:
            index.add(batch.first, batch.position, self.max_timestamp)
        if batch.max_timestamp > self.max_timestamp:
            self.max_timestamp = batch.max_timestamp
        self.size = batch.position + batch.size
        self.next = batch.last + 1

    def chunk(self, flags: int, producers: tuple[int, bytes]) -> Chunk:
        """What the index file should say next."""
        index = self.index
        entries = len(index) - self.marked_entries if index and not flags & COMPLETE else 0
        return Chunk(
            flags,
            self.size,
            self.synced,
            self.next,
            self.max_timestamp,
            self.created,
            self.appended,
            entries,
            producers[0],
            index.encode(self.marked_entries) if index and entries else b'',
            producers[1],
        )

    def write_chunk(self, files: Files, chunk: Chunk, *, sync: bool = False, first: bool = False) -> None:
        """Add a chunk to the index file. Raises OSError; then nothing counts of it. After a failed sync the file is
        gone, but not that of the log's `first` segment: where it alone tells of producers, it was on disk before."""
        handle = files.open(self.index_path, create=True)
        try:
            data = chunk.encode(self.index_crc)
            end = write_all(files, handle, [data], self.index_size)
            if sync:
                files.truncate(handle, end)
                try:
                    files.fdatasync(handle)
                except OSError:
                    if not first:
                        self.remove_index(files)
                        self.begin_index_anew()
                    raise
        finally:
            files.close(handle)
        self.index_size = end
        self.index_crc = int.from_bytes(data[4:8], 'big')
        self.marked = chunk.written
        self.marked_synced = chunk.synced if sync else -1
        self.marked_entries += chunk.entries

    def remove_index(self, files: Files) -> None:
        """A sync of the index file has failed: no process is to take what is seen of it for what is on disk."""
        with suppress(OSError):
            files.unlink(self.index_path)

    def begin_index_anew(self) -> None:
        """It has been removed."""
        self.index_size = self.index_crc = self.marked = self.marked_entries = 0
        self.marked_synced = -1

    @property
    def completable(self) -> bool:
        """Its index file may say that the segment is complete, as it speaks of all its bytes."""
        return not self.complete and self.marked == self.size

    def complete_on_disk(self, files: Files, *, first: bool) -> None:
        """All bytes of a rolled segment are on disk: let its index file say so, durably. Raises OSError."""
        self.write_chunk(files, self.chunk(COMPLETE, (0, b'')), sync=True, first=first)
        self.complete = True

    def remove(self, files: Files) -> None:
        """The index file first: alone it would tell of a segment that got lost."""
        for path in (self.index_path, self.path):
            with suppress(FileNotFoundError):
                files.unlink(path)

    def take_index(self, found: Segment) -> None:
        """What `read_index` has found of this segment, which is not dirty."""
        self.index, self.all_producers = found.index, found.all_producers
        self.index_size, self.index_crc = found.index_size, found.index_crc
        self.marked, self.marked_entries = found.marked, found.marked_entries

    def take(self, chunk: Chunk) -> None:
        """What a chunk of the index file says of the segment."""
        self.size = self.marked = chunk.written
        self.next = chunk.next_offset
        self.max_timestamp = chunk.max_timestamp
        self.created, self.appended = chunk.created, chunk.appended
        self.index_size, self.index_crc = chunk.end, chunk.crc


def read_trailer(files: Files, segment: Segment) -> Chunk | None:
    """The chunk that ends the index file of a complete segment, if it is one."""
    try:
        handle = files.open(segment.index_path)
    except FileNotFoundError:
        return None
    try:
        size = files.size(handle)
        if size < CHUNK_SIZE:
            return None
        chunk = read_chunk(files.pread(handle, CHUNK_SIZE, size - CHUNK_SIZE), 0, None)
    finally:
        files.close(handle)
    return chunk._replace(end=size) if chunk and chunk.flags & COMPLETE else None


def chunks_of(files: Files, segment: Segment) -> list[Chunk]:
    """The sound chunks of its index file."""
    try:
        return read_chunks(read_file(files, segment.index_path))
    except FileNotFoundError:
        return []


def fold(segment: Segment, chunks: list[Chunk], producers: Producers | None) -> None:
    """Load chunks of the index file, in order, into an empty index, and the producers."""
    index = segment.index = Index()
    for chunk in chunks:
        segment.take(chunk)
        index.load(chunk.entries, chunk.entry_bytes)
        if producers is not None:
            if chunk.flags & ALL_PRODUCERS:
                producers.clear()
            producers.load(chunk.producers, chunk.producer_bytes)
    segment.marked_entries = len(index)


def walk_on(
    files: Files, segment: Segment, end: int, below: int | None, producers: Producers | None, interval: int
) -> str | None:
    """Note the batches behind what the index speaks of, up to `end`, with offsets below `below`; says what is wrong."""
    if segment.size >= end or (below is not None and segment.next >= below):
        return None
    handle = files.open(segment.path)
    try:
        walk = Walk(files, handle, segment.size, end, segment.next)
        for batch in walk:
            if below is not None and batch.last >= below:
                return None
            segment.note(batch, interval)
            if producers is not None and batch.producer_id >= 0 and not batch.attributes & CONTROL:
                producers.appended(
                    batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.first, batch.last, -1, -1
                )
            if segment.next == below:
                return None
        return walk.fault
    finally:
        files.close(handle)


def read_index(files: Files, segment: Segment, producers: Producers | None, interval: int) -> Segment:
    """The same segment once more, with its index, from its index file; walks over what that does not speak of.

    It is another object, because the sync thread may be at work on this one; of closed segments only the index is
    taken. Raises Damaged when the segment is not sound, OSError.
    """
    chunks = [
        each for each in chunks_of(files, segment) if each.written <= segment.size and each.next_offset <= segment.next
    ]
    fresh = Segment(segment.directory, segment.base)
    fold(fresh, chunks, producers)
    fault = walk_on(files, fresh, segment.size, segment.next, producers, interval)
    if fresh.size != segment.size:
        raise Damaged(f'{segment.path}: at {fresh.size}: {fault or "the file ends early"}')
    fresh.all_producers = bool(chunks) and bool(chunks[0].flags & ALL_PRODUCERS)
    return fresh
