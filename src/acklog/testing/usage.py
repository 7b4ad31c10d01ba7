"""What a process costs: its CPU time, its memory, its open files, from the operating system's own books.

Read from /proc, so on Linux only; elsewhere every function raises OSError, and who measures there says so.
"""

from __future__ import annotations

import os
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU, user and system together, that all threads of the process have used since its start."""
    # The second field is the program's name in parentheses and may itself hold blanks and parentheses.
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def resident_bytes(pid: int) -> int:
    """Bytes of memory that the process has in use (resident set)."""
    return _status_kb(pid, 'VmRSS') * 1024


def peak_resident_bytes(pid: int) -> int:
    """The most that `resident_bytes` has been since the start of the process."""
    return _status_kb(pid, 'VmHWM') * 1024


def open_files(pid: int) -> int:
    """How many file descriptors the process has open."""
    return len(os.listdir(f'/proc/{pid}/fd'))


def _status_kb(pid: int, field: str) -> int:
    for line in Path(f'/proc/{pid}/status').read_text().splitlines():
        name, _, value = line.partition(':')
        if name == field:
            return int(value.split()[0])
    raise OSError(f'process {pid} has no {field}: it has ended')
