"""The file `start` of a log: its first readable offset, when that is not where its first segment begins.

On disk: `<offset> <CRC32C of the decimal digits, hexadecimal>\\n`, replaced as a whole. Missing: 0.
"""

from __future__ import annotations

import crc32c as _crc32c

from acklog.errors import Damaged
from acklog.log.files import Files, read_file, replace_file

NAME = 'start'


def read(files: Files, directory: str) -> int:
    """The offset. Raises Damaged."""
    try:
        data = read_file(files, f'{directory}/{NAME}')
    except FileNotFoundError:
        return 0
    digits, _, crc = data.rstrip(b'\n').partition(b' ')
    if not digits.isdigit() or crc != b'%08x' % _crc32c.crc32c(digits):
        raise Damaged(f'{directory}/{NAME}: at 0: not an offset with its CRC')
    return int(digits)


def write(files: Files, directory: str, offset: int) -> None:
    """Durable when it returns. Raises OSError."""
    digits = b'%d' % offset
    replace_file(files, directory, NAME, b'%s %08x\n' % (digits, _crc32c.crc32c(digits)))
