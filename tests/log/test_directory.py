"""The data directory: who may use it, what a start costs, how many files stay open."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
from tests.log.slow_disk import soon
from tests.log.worlds import SYNCED, LocalWorld, contents, put

from acklog.errors import Closed, ConfigError, Damaged, Failed
from acklog.log.directory import DataDirectory
from acklog.log.faulty_files import FaultyFiles
from acklog.log.files import OsFiles
from acklog.log.local import LocalLog
from acklog.log.seam import LogConfig
from acklog.log.store import Store


def files_in(path: Path) -> list[tuple[str, bytes]]:
    return sorted((each.name, each.read_bytes()) for each in path.iterdir() if each.is_file() and each.name != 'lock')


async def test_one_process_at_a_time(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path, reserve_bytes=0)
    with pytest.raises(ConfigError, match=f'process {os.getpid()} uses this directory'):
        DataDirectory(tmp_path)
    code = (
        'import sys; from acklog.log.directory import DataDirectory; from acklog.errors import ConfigError\n'
        'try: DataDirectory(sys.argv[1])\n'
        'except ConfigError as error: print(error)'
    )
    other = await asyncio.create_subprocess_exec(
        sys.executable, '-c', code, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert b'uses this directory' in (await other.communicate())[0]
    await directory.close()
    await DataDirectory(tmp_path, reserve_bytes=0).close()


async def test_directories_above_are_made(tmp_path: Path) -> None:
    await DataDirectory(tmp_path / 'a' / 'b' / 'c', reserve_bytes=0).close()
    assert (tmp_path / 'a' / 'b' / 'c' / 'format').read_text() == 'acklog data, format 1\n'


async def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    await DataDirectory(tmp_path, reserve_bytes=0).close()
    (tmp_path / 'format').write_text('acklog data, format 2\n')
    before = files_in(tmp_path)
    with pytest.raises(ConfigError, match=r'format 2 was written by a newer acklog; this one knows up to 1'):
        DataDirectory(tmp_path)
    assert files_in(tmp_path) == before


async def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'precious').write_text('data')
    with pytest.raises(ConfigError, match='an empty directory, or one that acklog has made'):
        DataDirectory(tmp_path)


@pytest.mark.parametrize('name', ['', '..', 'a/b', 'x.deleted', '.hidden', 'a' * 300])
async def test_names_that_are_no_directory_names(local: LocalWorld, name: str) -> None:
    with pytest.raises(ConfigError):
        await local.open(name)


async def test_closed_directories_open_nothing(local: LocalWorld) -> None:
    await local.directory.close()
    await local.directory.close()
    with pytest.raises(Closed):
        await local.open()
    local.directory = local._start()


class Recovering:
    """Holds up, in their threads, the recoveries that open a log; counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        self.begun, self.go_on = asyncio.Event(), threading.Event()
        loop, recover = asyncio.get_running_loop(), Store.recover

        def slowly(store: Store, **how: bool) -> None:
            self.times += 1
            loop.call_soon_threadsafe(self.begun.set)
            assert self.go_on.wait(10)
            recover(store, **how)

        monkeypatch.setattr(Store, 'recover', slowly)


async def test_a_log_is_recovered_once_however_many_open_it(local: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(await local.open(), 'a')
    await local.kill()
    recovering = Recovering(monkeypatch)
    opening = [asyncio.ensure_future(local.open()) for _ in range(3)]
    await recovering.begun.wait()
    recovering.go_on.set()
    logs = await asyncio.gather(*opening)
    assert (recovering.times, len(set(logs))) == (1, 1)
    assert await contents(logs[0]) == ['a']


async def test_closed_while_a_log_is_being_recovered(local: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    await put(await local.open(), 'a')
    await local.kill()
    recovering = Recovering(monkeypatch)
    opening = asyncio.ensure_future(local.open())
    await recovering.begun.wait()
    closing = asyncio.ensure_future(local.directory.close())
    await asyncio.sleep(0)
    recovering.go_on.set()
    with pytest.raises(Closed):
        await opening
    await closing
    local.directory = local._start()
    assert await contents(await local.open()) == ['a']


async def test_after_a_clean_close_no_segment_is_opened(local: LocalWorld) -> None:
    for number in range(20):
        log = await local.open(f'log{number}', LogConfig(segment_bytes=300))
        for value in 'abcdefgh':
            await put(log, value * 50, producer=(number, 0, 'abcdefgh'.index(value)))
    await local.restart()
    local.files.memory.opened.clear()
    logs = [await local.open(f'log{number}', LogConfig(segment_bytes=300)) for number in range(20)]
    assert [(log.start, log.end) for log in logs] == [(0, 8)] * 20
    assert local.files.memory.opened == []
    await logs[3].read(7, 100)
    assert {path.split('/')[3] for path in local.files.memory.opened} == {'log3'}
    local.files.memory.opened.clear()
    await local.restart()  # those not touched are not opened to be closed either
    assert {path.split('/')[3] for path in local.files.memory.opened if '/logs/' in path} <= {'log3'}


async def test_after_an_unclean_end_only_what_is_not_complete_is_read(local: LocalWorld) -> None:
    log = await local.open(config=LogConfig(segment_bytes=20_000))
    for number in range(50):
        await put(log, f'{number}' * 1000, durability=SYNCED)
    await log.flush()
    await local.kill()
    read: list[tuple[str, int]] = []
    pread = local.files.memory.pread

    def counted(handle: int, size: int, position: int) -> bytes:
        data = pread(handle, size, position)
        read.append((local.files.memory.path_of(handle), len(data)))
        return data

    local.files.memory.pread = counted  # type: ignore[method-assign]
    log = await local.open(config=LogConfig(segment_bytes=20_000))
    assert log.end == 50
    segments = {path for path, _ in read if path.endswith('.log')}
    assert len(segments) == 1
    assert sum(size for path, size in read if path.endswith('.log')) <= 20_000


async def test_a_long_segment_is_read_from_its_last_mark_only(
    local: LocalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('acklog.log.appender.MARK_BYTES', 10_000)
    log = await local.open()
    for number in range(100):
        await put(log, f'{number:03}' * 300, producer=(7, 0, number))
    await local.kill()
    read = 0
    pread = local.files.memory.pread

    def counted(handle: int, size: int, position: int) -> bytes:
        nonlocal read
        data = pread(handle, size, position)
        read += len(data) if local.files.memory.path_of(handle).endswith('.log') else 0
        return data

    local.files.memory.pread = counted  # type: ignore[method-assign]
    log = await local.open()
    assert (log.end, read < 12_000) == (100, True)
    assert (await put(log, '099' * 300, producer=(7, 0, 99))).duplicate
    assert await contents(log) == [f'{n:03}' * 300 for n in range(100)]


async def test_lost_index_files_are_made_again(local: LocalWorld) -> None:
    config = LogConfig(segment_bytes=2000, index_interval_bytes=100)
    log = await local.open(config=config)
    values = [f'{n:03}' * 50 for n in range(60)]
    for number, value in enumerate(values):
        await put(log, value, producer=(7, 0, number))
    await local.restart()
    folder = f'{local.path}/logs/log'
    for name in local.files.memory.listdir(folder):
        if name.endswith('.index'):
            local.files.memory.unlink(f'{folder}/{name}')
    log = await local.open(config=config)
    assert log.end == 60
    assert await contents(log) == values
    assert (await put(log, values[-1], producer=(7, 0, 59))).duplicate
    await local.kill()
    assert await contents(await local.open(config=config)) == values


async def test_a_broken_clean_file_costs_time_only(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a')
    await local.directory.close()
    local.files.memory.corrupt(f'{local.path}/clean', 30, b'?')
    local.directory = local._start()
    assert await contents(await local.open()) == ['a']


async def test_a_broken_start_file_is_damage(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a', 'b')
    await log.truncate_before(1)
    await local.kill()
    local.files.memory.corrupt(f'{local.path}/logs/log/start', 0, b'7')
    with pytest.raises(Damaged, match='/logs/log/start: at 0'):
        await local.open()


async def test_a_half_deleted_log_is_gone_at_the_next_start(local: LocalWorld) -> None:
    log = await local.open()
    await put(log, 'a', durability=SYNCED)
    local.files.fail('unlink')
    with pytest.raises(Failed, match='logs/log: Input/output error'):
        await log.delete()
    assert local.names() == []
    assert [name[-8:] for name in local.files.memory.listdir(f'{local.path}/logs')] == ['.deleted']
    await local.kill()
    assert local.names() == []
    assert local.files.memory.listdir(f'{local.path}/logs') == []


async def test_open_files_are_bounded() -> None:
    local = LocalWorld(open_files=20)
    logs = [await local.open(f'log{number}') for number in range(100)]
    most = 0
    for turn in range(3):
        for log in logs:
            await put(log, str(turn))
            await log.read(turn, 100)
            most = max(most, local.files.memory.open_handles)
            await soon(lambda: not local.directory._shared.open_files.crowded)  # where many wait for a sync it is asked
    assert most <= 22
    for log in logs:
        assert await contents(log) == ['0', '1', '2']
        await log.flush()
    assert local.files.memory.open_handles <= 22
    await local.close()


async def test_thousands_of_logs(local: LocalWorld) -> None:
    count = 4000
    config = LogConfig()
    for number in range(0, count, 100):
        logs = [await local.open(f'log{each}', config) for each in range(number, number + 100)]
        await asyncio.gather(*(put(log, 'x' * 100) for log in logs))
    await local.directory.close()
    local.files.calls.clear()
    tracemalloc.start()
    local.directory = local._start()
    logs = [await local.open(f'log{each}', config) for each in range(count)]
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert all(log.end == 1 for log in logs)
    assert local.files.calls.total() < 50  # whatever the number of logs
    assert used / count < 5000


async def test_real_files_with_faults(tmp_path: Path) -> None:
    files = FaultyFiles(OsFiles())
    directory = DataDirectory(tmp_path, files, reserve_bytes=0)
    log = await directory.open('log', LogConfig())
    assert isinstance(log, LocalLog)
    await put(log, 'a', durability=SYNCED)
    assert files.calls['fdatasync'] > 0
    assert await contents(log) == ['a']
    await directory.close()
