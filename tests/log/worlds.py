"""Logs of each kind for the tests, and what can happen to the process or the machine below them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from acklog.log.directory import DataDirectory
from acklog.log.faulty_files import FaultyFiles
from acklog.log.memory import MemoryDirectory, Trouble
from acklog.log.memory_files import MemoryFiles
from acklog.log.seam import Appended, Durability, Log, LogConfig
from acklog.wire.record_batch import build, records

WRITTEN, SYNCED = Durability.WRITTEN, Durability.SYNCED
NOW = 1_700_000_000_000


class World(Protocol):
    """A directory of logs, and the ways in which it comes to an end and is opened again."""

    powers_down: bool  # whether `power_loss` can be had

    async def open(self, name: str = 'log', config: LogConfig | None = None, *, internal: bool = False) -> Log: ...

    def names(self) -> Sequence[str]: ...

    async def restart(self) -> None:
        """A clean close and another start."""
        ...

    async def kill(self) -> None:
        """kill -9 and another start."""
        ...

    async def power_loss(self, chance: random.Random | None = None, paths: str = '*') -> None: ...

    async def close(self) -> None: ...


class LocalWorld:
    """Local logs, over files in memory or, with `path`, real ones."""

    def __init__(self, path: Path | None = None, **options: int) -> None:
        self.powers_down = path is None
        self.path = str(path or '/data')
        self.files = FaultyFiles()
        self.options = {'reserve_bytes': 0, **options}
        self.directory = self._start()

    def _start(self) -> DataDirectory:
        return DataDirectory(self.path, self.files if self.powers_down else None, **self.options)

    async def open(self, name: str = 'log', config: LogConfig | None = None, *, internal: bool = False) -> Log:
        return await self.directory.open(name, config or LogConfig(), internal=internal)

    def names(self) -> Sequence[str]:
        return self.directory.names()

    async def restart(self) -> None:
        await self.directory.close()
        self.directory = self._start()

    async def kill(self) -> None:
        self._end()
        self.directory = self._start()

    async def power_loss(self, chance: random.Random | None = None, paths: str = '*') -> None:
        memory = self._end()
        assert memory is not None
        memory.power_loss(chance, paths)
        self.directory = self._start()

    def _end(self) -> MemoryFiles | None:
        memory = self.files.memory
        if self.powers_down:
            self.files.kill()
        self.directory.abandon()
        self.files = FaultyFiles(memory)
        return memory

    async def close(self) -> None:
        await self.directory.close()


class MemoryWorld:
    """Logs in memory; `delay`: how often other tasks may run within each call."""

    powers_down = True

    def __init__(self, delay: int = 0) -> None:
        self.directory = MemoryDirectory(Trouble(delay=delay))

    async def open(self, name: str = 'log', config: LogConfig | None = None, *, internal: bool = False) -> Log:
        return await self.directory.open(name, config or LogConfig(), internal=internal)

    def names(self) -> Sequence[str]:
        return self.directory.names()

    async def restart(self) -> None:
        await self.directory.close()

    async def kill(self) -> None:
        self.directory = self.directory.restarted()

    async def power_loss(self, chance: random.Random | None = None, paths: str = '*') -> None:
        self.directory = self.directory.restarted(power_loss=True)

    async def close(self) -> None:
        await self.directory.close()


def batch(*values: str, at: int = NOW, producer: tuple[int, int, int] | None = None) -> bytearray:
    """A batch of records with these values. `producer`: id, epoch, sequence of the first record."""
    producer_id, epoch, sequence = producer or (-1, -1, -1)
    return build(
        [(None, value.encode()) for value in values],
        timestamp=at,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


async def put(
    log: Log,
    *values: str,
    now: int = NOW,
    durability: Durability = WRITTEN,
    producer: tuple[int, int, int] | None = None,
) -> Appended:
    """Append one batch."""
    return await log.append(batch(*values, at=now, producer=producer), now, durability)


async def contents(
    log: Log, offset: int | None = None, *, up_to: int | None = None, max_bytes: int = 1 << 20
) -> list[str]:
    """The values of all records from `offset` on (default: the start), read to the end."""
    found: list[str] = []
    at = first = log.start if offset is None else offset
    while data := (await log.read(at, max_bytes, up_to=up_to)).data:
        for record in records(data):
            at = record.offset + 1
            if record.offset >= first:
                found.append((record.value or b'').decode())
    return found


async def offsets(log: Log, offset: int, max_bytes: int = 1 << 20, *, up_to: int | None = None) -> list[int]:
    """Offsets of the records that one read brings."""
    return [each.offset for each in records((await log.read(offset, max_bytes, up_to=up_to)).data)]
