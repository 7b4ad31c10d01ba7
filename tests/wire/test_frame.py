"""Headers of requests and answers, and the table of flexible versions, against kio's."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer

from acklog.errors import ProtocolError
from acklog.wire import frame, layout
from acklog.wire.frame import FIRST_FLEXIBLE, RequestHeader
from acklog.wire.layout import REQUEST, RESPONSE

from .messages import texts

BETWEEN_BROKERS = {52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 80, 81, 82}  # never served to anybody


@pytest.mark.parametrize('api_key', sorted(FIRST_FLEXIBLE))
def test_flexible_versions_are_kios(api_key: int) -> None:
    for version in layout.versions(api_key):
        assert frame.is_flexible(api_key, version) == layout.of_message(api_key, version, REQUEST).flexible
        assert frame.is_flexible(api_key, version) == layout.of_message(api_key, version, RESPONSE).flexible


def test_all_apis_for_clients_are_listed() -> None:
    assert set(FIRST_FLEXIBLE) == set(api_key_map) - BETWEEN_BROKERS


@pytest.mark.parametrize('api_key', sorted(FIRST_FLEXIBLE))
@given(correlation_id=st.integers(-(1 << 31), (1 << 31) - 1), client_id=st.none() | texts, body=st.binary(max_size=9))
def test_headers_are_kios(api_key: int, correlation_id: int, client_id: str | None, body: bytes) -> None:
    for version in layout.versions(api_key):
        request = join(frame.request_frame(api_key, version, correlation_id, client_id, [body]))
        header = kio_request_header(api_key, version, correlation_id, client_id)
        assert request == (len(header) + len(body)).to_bytes(4, 'big') + header + body
        read = frame.read_request_header(memoryview(request)[4:])
        assert read == RequestHeader(api_key, version, correlation_id, client_id, memoryview(body))

        answer = join(frame.response_frame(api_key, version, correlation_id, [body]))
        header_schema = layout.of_message(api_key, version, RESPONSE).entity.__header_schema__
        header, size = entity_reader(header_schema)(answer, 4)
        assert (header.correlation_id, answer[4 + size :]) == (correlation_id, body)
        assert int.from_bytes(answer[:4], 'big') == len(answer) - 4
        view = memoryview(answer)[4:]
        assert frame.correlation_id(view) == correlation_id
        assert frame.response_body(api_key, version, view) == body


def test_unknown_tagged_fields_of_headers_are_passed_over() -> None:
    tags = b'\x02\x00\x01a\x87\x68\x00'  # two: number 0, one byte; number 1000, none
    request = b'\x00\x12\x00\x03\x00\x00\x00\x07\x00\x01c' + tags + b'body'
    assert frame.read_request_header(memoryview(request)) == RequestHeader(18, 3, 7, 'c', memoryview(b'body'))
    answer = b'\x00\x00\x00\x07' + tags + b'body'
    assert frame.response_body(3, 12, memoryview(answer)) == b'body'


def test_the_header_of_an_unknown_api_ends_with_the_client_id() -> None:
    header = frame.read_request_header(memoryview(b'\x03\xe8\x00\x63\x00\x00\x00\x01\xff\xff' + b'rest'))
    assert header == RequestHeader(1000, 99, 1, None, memoryview(b'rest'))


@pytest.mark.parametrize(
    'header',
    [
        b'',
        b'\x00\x03\x00\x0c\x00\x00\x00',
        b'\x00\x03\x00\x01\x00\x00\x00\x01\xff\xfe',  # a client id of -2 bytes
        b'\x00\x03\x00\x01\x00\x00\x00\x01\x00\x02a',
        b'\x00\x03\x00\x01\x00\x00\x00\x01\x00\x01\xff',  # not UTF-8
        b'\x00\x03\x00\x0c\x00\x00\x00\x01\xff\xff',  # no tagged fields
        b'\x00\x03\x00\x0c\x00\x00\x00\x01\xff\xff\x01\x00\x05',
        b'\x00\x03\x00\x0c\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\x07',
    ],
)
def test_what_is_no_header_is_refused(header: bytes) -> None:
    with pytest.raises(ProtocolError):
        frame.read_request_header(memoryview(header))


def join(pieces: list[bytes | bytearray | memoryview]) -> bytes:
    return b''.join(pieces)


def kio_request_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    schema = layout.of_message(api_key, version, REQUEST).entity.__header_schema__
    header = schema(
        request_api_key=api_key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    with io.BytesIO() as out:
        entity_writer(schema)(out, header)
        return out.getvalue()
