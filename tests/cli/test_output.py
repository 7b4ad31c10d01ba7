"""Tables, records as lines and as JSON, lines from standard input."""

from __future__ import annotations

import json

import pytest

from acklog.cli.lines import chunks_of_lines
from acklog.cli.output import as_time, printable, show_table
from acklog.cli.publish import Alike
from acklog.cli.records import as_json, as_text
from acklog.client import Received


def record(**fields: object) -> Received:
    given = {
        'topic': 't',
        'partition': 1,
        'offset': 7,
        'timestamp': 1_000,
        'key': None,
        'value': b'v',
        'headers': [],
        'deliveries': 1,
    }
    return Received(**{**given, **fields})  # type: ignore[arg-type]


def test_a_table_aligns_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(['NAME', 'N'], [['a', 5], ['long name', None], ['x', 1234]], none='nothing')
    assert capsys.readouterr().out == 'NAME          N\na             5\nlong name     -\nx          1234\n'


def test_an_empty_table_says_so_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(['NAME'], [], none='nothing')
    assert capsys.readouterr() == ('', 'nothing\n')


def test_what_comes_from_outside_does_not_steer_the_terminal() -> None:
    assert printable('a\x1b[2Jb\nc') == 'a\\x1b[2Jb\\nc'
    assert printable('ä€\t') == 'ä€\t'


@pytest.mark.parametrize(
    ('fields', 'line'),
    [
        ({}, 't/1/7  v'),
        ({'key': b'k', 'deliveries': 3}, 't/1/7 (delivery 3)  k: v'),
        ({'value': None}, 't/1/7  (null)'),
        ({'value': b'\xff\x1b[m'}, 't/1/7  \\xff\\x1b[m'),
    ],
)
def test_a_record_as_a_line(fields: dict[str, object], line: str) -> None:
    assert as_text(record(**fields)) == line


def test_a_record_as_json() -> None:
    fields = json.loads(as_json(record(key=b'\xff', headers=[('h', b'x'), ('n', None)])))
    assert fields == {
        'topic': 't',
        'partition': 1,
        'offset': 7,
        'timestamp': '1970-01-01T00:00:01.000Z',
        'timestamp_ms': 1000,
        'deliveries': 1,
        'key_base64': '/w==',
        'value': 'v',
        'headers': [{'name': 'h', 'value': 'x'}, {'name': 'n', 'value': None}],
    }


def test_times() -> None:
    assert [as_time(ms) for ms in (-1, 0, 1_767_225_600_123)] == [
        '-',
        '1970-01-01T00:00:00.000Z',
        '2026-01-01T00:00:00.123Z',
    ]


@pytest.mark.parametrize(
    ('chunks', 'lines'),
    [
        ([b'a\nb\n'], [b'a', b'b']),
        ([b'a', b'b\nc'], [b'ab', b'c']),
        ([b'a\r\n\n'], [b'a', b'']),
        ([], []),
    ],
)
async def test_lines_of_chunks(chunks: list[bytes], lines: list[bytes]) -> None:
    left = [*chunks, b'']
    found = [line async for some in chunks_of_lines(lambda: left.pop(0)) for line in some]
    assert found == lines


@pytest.mark.parametrize(
    ('line', 'separator', 'pair'),
    [
        (b'a:b:c', b':', (b'a', b'b:c')),
        (b'abc', b':', (None, b'abc')),
        (b':b', b':', (b'', b'b')),
        (b'a:b', None, (None, b'a:b')),
    ],
)
def test_key_and_value_of_a_line(line: bytes, separator: bytes | None, pair: tuple[bytes | None, bytes]) -> None:
    assert Alike(separator, [], None).split(line) == pair
