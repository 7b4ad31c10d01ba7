"""The examples of docs/python-client.md, run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from acklog.testing.local import LocalServer

PAGE = Path(__file__).resolve().parents[2] / 'docs/python-client.md'
BLOCKS = re.findall(r'^```python\n(.*?)^```', PAGE.read_text(), re.MULTILINE | re.DOTALL)


def run(block: str, server: LocalServer) -> dict[str, Any]:
    names: dict[str, Any] = {'__name__': 'example'}
    exec(compile(block.replace('localhost:9092', server.address), str(PAGE), 'exec'), names)
    return names


def test_publish_and_take(acklog_server: LocalServer, capsys: pytest.CaptureFixture[str]) -> None:
    asynchronous, synchronous = BLOCKS[:2]
    run(asynchronous, acklog_server)
    assert capsys.readouterr().out.count('order') == 19  # ten topics, nine values
    run(synchronous, acklog_server)
    assert capsys.readouterr().out == "b'one more'\n"


def test_worker(acklog_server: LocalServer) -> None:
    assert run(BLOCKS[2], acklog_server)['charge'].concurrency == 20


def test_test(acklog_server: LocalServer) -> None:
    run(BLOCKS[3], acklog_server)['test_an_order_comes_back_after_six_hours'](acklog_server)
    assert len(BLOCKS) == 4
