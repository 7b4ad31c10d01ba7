"""Whatever bytes arrive: a value or ProtocolError, at a cost that the bytes have paid for.

The mutations know a little of the protocol: they put lengths and counts that are too large, null or negative into
messages that were right. ACKLOG_FUZZ_EXAMPLES=N makes a longer run of it (N mutated messages per API; default 30).
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acklog.errors import ProtocolError
from acklog.wire import fetch, layout, produce, share_acknowledge, share_fetch
from acklog.wire.frame import read_request_header, request_frame, response_body, response_frame
from acklog.wire.layout import REQUEST

from . import hot, messages
from .messages import API_KEYS, peak_of

EXAMPLES = int(os.environ.get('ACKLOG_FUZZ_EXAMPLES', '30'))
fuzzing = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))

CODECS = {module.API_KEY: module for module in (produce, fetch, share_fetch, share_acknowledge)}

lies = st.sampled_from(
    [
        b'\x7f\xff\xff\xff',
        b'\xff\xff\xff\xff',
        b'\x80\x00\x00\x00',
        b'\x00\x10\x00\x00',
        b'\x7f\xff',
        b'\xff\xff',
        b'\x80\x00',
        b'\xff\xff\xff\xff\x07',
        b'\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01',
        b'\xff\x7f',
        b'\x00',
        b'\x01',
        b'\x80',
        b'\xc3',
    ]
)
ways = st.sampled_from(['overwrite', 'insert', 'delete', 'cut', 'repeat'])
mutations = st.lists(st.tuples(ways, st.integers(0, 400), lies | st.binary(max_size=5)), max_size=4)


def mutated(frame: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    for kind, place, lie in changes:
        at = place % (len(frame) + 1)
        if kind == 'overwrite':
            frame = frame[:at] + lie + frame[at + len(lie) :]
        elif kind == 'insert':
            frame = frame[:at] + lie + frame[at:]
        elif kind == 'delete':
            frame = frame[:at] + frame[at + len(lie) :]
        elif kind == 'cut':
            frame = frame[:at]
        else:
            frame = frame[:at] + frame[at // 2 : at] * 3 + frame[at:]
    return frame


def body_of(api_key: int, version: int, direction: str, fields: dict[str, Any]) -> bytes:
    return messages.encode(api_key, version, direction, fields)


def served(api_key: int, version: int, direction: str, body: bytes | memoryview) -> Any:
    """What server or client make of a body: with the codec of its own where there is one."""
    if api_key in CODECS:
        return hot.decode(CODECS[api_key], version, direction, body)
    return messages.decode(api_key, version, direction, body)


@pytest.mark.parametrize('api_key', API_KEYS)
@fuzzing
@given(data=st.data())
def test_mutated_messages(api_key: int, data: st.DataObject) -> None:
    version, direction, fields = data.draw(messages.messages(api_key))
    body = mutated(body_of(api_key, version, direction, fields), data.draw(mutations))
    with contextlib.suppress(ProtocolError):
        served(api_key, version, direction, body)


@fuzzing
@given(data=st.data())
def test_mutated_frames(data: st.DataObject) -> None:
    """With their headers; a version that nobody serves is refused before its body is looked at."""
    api_key = data.draw(st.sampled_from(API_KEYS))
    version, direction, fields = data.draw(messages.messages(api_key))
    body = body_of(api_key, version, direction, fields)
    make = (
        request_frame(api_key, version, 1, 'c', [body])
        if direction == REQUEST
        else response_frame(api_key, version, 1, [body])
    )
    frame = mutated(b''.join(make)[4:], data.draw(mutations))
    with contextlib.suppress(ProtocolError):
        if direction == REQUEST:
            header = read_request_header(memoryview(frame))
            if header.api_key in API_KEYS and header.version in layout.versions(header.api_key):
                served(header.api_key, header.version, direction, header.body)
        else:
            served(api_key, version, direction, response_body(api_key, version, memoryview(frame)))


@fuzzing
@given(data=st.data())
def test_nonsense(data: st.DataObject) -> None:
    api_key = data.draw(st.sampled_from(API_KEYS))
    version = data.draw(st.sampled_from(layout.versions(api_key)))
    direction = data.draw(st.sampled_from([REQUEST, layout.RESPONSE]))
    with contextlib.suppress(ProtocolError):
        served(api_key, version, direction, data.draw(st.binary(max_size=80)))


PATTERNS = [
    b'\0',
    b'\1',
    b'\2',
    b'\3',
    b'\x7f\xff\xff\xff',
    b'\0\0\x7f\xff',
    b'\0\1',
    b'\xff\xff\xff\xff\x07',
    b'\x81\x80\x04\1\1',
]


@pytest.mark.parametrize('api_key', API_KEYS)
def test_long_nonsense_costs_what_it_paid_for(api_key: int) -> None:
    """32 kB of a pattern: not more than a hundred bytes for each, whichever way they are taken."""
    size = 32 << 10
    known = layout.versions(api_key)
    for version in {known[0], known[-1]}:
        served_quietly(api_key, version, b'')  # imports and plans are not what is measured
        for pattern in PATTERNS:
            body = (pattern * size)[:size]
            _, peak = peak_of(lambda body=body, version=version: served_quietly(api_key, version, body))
            assert peak < 100 * size, (version, pattern)


def served_quietly(api_key: int, version: int, body: bytes) -> None:
    for direction in (REQUEST, layout.RESPONSE):
        with contextlib.suppress(ProtocolError):
            served(api_key, version, direction, body)


@pytest.mark.parametrize('api_key', API_KEYS)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_announced_sizes_cost_nothing(api_key: int, data: st.DataObject) -> None:
    """The largest count or length put at each place of a message in turn."""
    version, direction, fields = data.draw(messages.messages(api_key))
    body = body_of(api_key, version, direction, fields)[:120]

    def lie_everywhere() -> None:
        for lie in (b'\x7f\xff\xff\xff', b'\x7f\xff', b'\xff\xff\xff\xff\x07'):
            for at in range(len(body)):
                with contextlib.suppress(ProtocolError):
                    served(api_key, version, direction, body[:at] + lie + body[at + len(lie) :])

    lie_everywhere()
    _, peak = peak_of(lie_everywhere)
    assert peak < 300_000
