"""Metrics and events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from tests.server.http.asking import listener_of, problem
from tests.server.http.conftest import ServeHttp
from tests.server.http.test_publish import publish
from tests.server.http.test_subscribing import Group

from acklog.server.http.events import MOST_STREAMS, Stream

SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (\S+)$')


def samples(text: str) -> dict[tuple[str, str], float]:
    """(name, labels) -> value, of lines that are as the format says."""
    found: dict[tuple[str, str], float] = {}
    typed: set[str] = set()
    for line in text.splitlines():
        if line.startswith('# TYPE '):
            typed.add(line.split()[2])
        elif not line.startswith('# HELP '):
            match = SAMPLE.match(line)
            assert match is not None, line
            assert match[1] in typed
            assert (match[1], match[2] or '') not in found
            found[match[1], match[2] or ''] = float(match[3])
    return found


@pytest.mark.system
def test_metrics(api: httpx.Client, topic: str) -> None:
    group = Group(api, f'{topic} "group"\n', topic)
    publish(api, topic, *({'value': 'abc'} for _ in range(5)))
    records = group.take(5)
    group.settle('accept', *records[:2])
    group.settle('reject', records[2])
    answer = api.get('/metrics')
    assert answer.headers['content-type'] == 'text/plain; version=0.0.4; charset=utf-8'
    found = samples(answer.text)
    of_group = f'group="{topic} \\"group\\"\\n"'
    pair = f'{of_group},topic="{topic}"'
    names = ('lag', 'acquired', 'dead', 'available', 'waiting')
    assert [found[f'acklog_group_{name}_records', pair] for name in names] == [2, 2, 1, 0, 0]
    assert found['acklog_group_members', of_group] == 1
    assert found['acklog_group_paused', of_group] == 0
    assert found['acklog_topic_records_total', f'topic="{topic}"'] == 5
    assert found['acklog_topic_bytes', f'topic="{topic}"'] > 15
    assert 0 <= found['acklog_group_oldest_unsettled_seconds', pair] < 60
    assert found['acklog_connections', 'listener="http"'] >= 1
    assert found['process_resident_memory_bytes', ''] > 1e7
    assert found['acklog_metrics_left_out', ''] == 0


class Heard:
    """What a stream says, event by event."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.headers['content-type'] == 'text/event-stream'
        self._lines = answer.iter_lines()

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for line in self._lines:
            if line.startswith('event: '):
                data = next(self._lines)
                assert data.startswith('data: ')
                yield line[7:], msgspec.json.decode(data[6:])

    def until(self, event: str, **fields: Any) -> dict[str, Any]:
        """The next such event."""
        for heard, data in self:
            if heard == event and data.items() >= fields.items():
                return data
        raise AssertionError('the stream has ended')


@pytest.mark.system
def test_events(api: httpx.Client, topic: str) -> None:
    group = Group(api, f'{topic} group', topic)
    publish(api, topic, {'value': 'a'})
    [record] = group.take(1)
    name = f'{topic} group'
    with (
        httpx.Client(base_url=api.base_url, timeout=10) as other,
        other.stream('GET', '/v1/events', params={'group': name}) as answer,
    ):
        heard = Heard(answer)
        assert heard.until('members') == {'group': name, 'members': ['m']}
        assert heard.until('lag', lag=1, acquired=1)['topic'] == topic
        group.settle('reject', record)
        assert heard.until('dead', dead=1) == {'group': name, 'topic': topic, 'dead': 1}
        publish(api, topic, {'value': 'b'})
        heard.until('lag', lag=1, available=1)
        group.post('pause', reason='lunch')
        assert heard.until('paused', paused='lunch')['group'] == name
        api.delete(f'{group.path}/members/m')
        heard.until('members', members=[])
        api.delete(group.path)
        assert heard.until('members', gone=True)['group'] == name


@pytest.mark.system
def test_events_of_no_group(api: httpx.Client, name: str) -> None:
    assert problem(api.get('/v1/events', params={'group': name}))['status'] == 404


def test_a_slow_reader_gets_the_newest_only() -> None:
    stream = Stream(None)
    for lag in range(1000):
        stream.see({('lag', 'g', 't'): b'%d' % lag, ('paused', 'g', ''): b'null'})
    assert stream.take() == b'event: lag\ndata: 999\n\nevent: paused\ndata: null\n\n'
    stream.see({('lag', 'g', 't'): b'999', ('paused', 'g', ''): b'null'})
    assert stream.take() == b''
    stream.see({('paused', 'g', ''): b'null'})
    assert stream.take() == b'event: lag\ndata: {"group":"g","topic":"t","gone":true}\n\n'


def test_a_stream_of_one_group_hears_of_no_other() -> None:
    stream = Stream('g')
    stream.see({('paused', 'g', ''): b'1', ('paused', 'h', ''): b'2'})
    assert stream.take() == b'event: paused\ndata: 1\n\n'


async def test_streams_are_bounded_and_end(serve_http: ServeHttp) -> None:
    server, client = await serve_http()
    events = listener_of(server)
    await client.get('/v1')
    events.events._streams |= {Stream(str(index)) for index in range(MOST_STREAMS)}
    assert (await client.get('/v1/events')).status_code == 503
    events.events._streams.clear()
    async with client.stream('GET', '/v1/events') as answer:
        assert answer.status_code == 200
        await anext(answer.aiter_bytes())
        assert len(events.events._streams) == 1
    await client.get('/v1')
    for _ in range(100):
        if not events.events._streams:
            break
        await client.get('/v1')
    assert not events.events._streams
