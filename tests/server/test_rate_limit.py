"""Few lines about what peers do wrong."""

from __future__ import annotations

import logging
import time

import pytest

from acklog.server.rate_limit import RateLimited


def test_a_few_lines_a_second_of_each_kind_and_how_many_more_there_were(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 100.0
    monkeypatch.setattr(time, 'monotonic', lambda: now)
    complaints = RateLimited(logging.getLogger('acklog.test'), per_second=2)
    for number in range(10):
        complaints.warning('kind', 'of %d', number)
    complaints.warning('other', 'something else')
    now = 101.0
    complaints.warning('kind', 'of %d', 10)
    complaints.warning('kind', 'of %d', 11)
    assert caplog.messages == ['of 0', 'of 1', 'something else', 'of 10 (and 8 more like it not shown)', 'of 11']


def test_a_traceback_comes_with_an_error(caplog: pytest.LogCaptureFixture) -> None:
    complaints = RateLimited(logging.getLogger('acklog.test'))
    complaints.error('bug', 'failed', exc_info=ValueError('x'))
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)
