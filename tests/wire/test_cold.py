"""Messages without a codec of their own: the same bytes and values as kio's, and what we allow besides."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acklog.errors import ProtocolError
from acklog.wire import cold, layout
from acklog.wire.layout import REQUEST, RESPONSE

from .messages import API_KEYS, decode, encode, encode_strangely, kio_decode, kio_encode, messages

quick = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))

METADATA, CREATE_TOPICS, SHARE_GROUP_HEARTBEAT, DELETE_GROUPS = 3, 19, 76, 42


@pytest.mark.parametrize('api_key', API_KEYS)
@quick
@given(data=st.data())
def test_kio_reads_what_we_write_and_we_read_what_kio_writes(api_key: int, data: st.DataObject) -> None:
    version, direction, fields = data.draw(messages(api_key))
    ours = encode(api_key, version, direction, fields)
    entity = kio_decode(api_key, version, direction, ours)
    assert decode(api_key, version, direction, ours) == entity
    assert decode(api_key, version, direction, kio_encode(entity)) == entity
    assert encode(api_key, version, direction, cold.as_dict(entity)) == ours


@pytest.mark.parametrize('api_key', [key for key in API_KEYS if key not in (17, 47)])  # these have no flexible version
@quick
@given(data=st.data())
def test_tagged_fields_that_nobody_knows_are_passed_over(api_key: int, data: st.DataObject) -> None:
    version, direction, fields = data.draw(messages(api_key, flexible=True))
    strange = encode_strangely(api_key, version, direction, fields)
    plain = encode(api_key, version, direction, fields)
    assert len(strange) > len(plain)
    assert decode(api_key, version, direction, strange) == decode(api_key, version, direction, plain)


@pytest.mark.parametrize('direction', [REQUEST, RESPONSE])
@pytest.mark.parametrize('api_key', API_KEYS)
def test_what_is_left_out_has_kafkas_default(api_key: int, direction: str) -> None:
    for version in layout.versions(api_key):
        body = encode(api_key, version, direction, {})
        assert decode(api_key, version, direction, body) == kio_decode(api_key, version, direction, body)


def test_values_may_be_plain() -> None:
    plain = {'throttle_time': 7, 'error_code': 3, 'topics': [{'name': 't', 'topic_id': bytes(range(16))}]}
    rich = {
        'throttle_time': timedelta(milliseconds=7),
        'error_code': 3,
        'topics': [{'name': 't', 'topic_id': UUID(bytes=bytes(range(16)))}],
    }
    assert cold.encode_response(METADATA, 13, plain) == cold.encode_response(METADATA, 13, rich)
    assert cold.decode_response(METADATA, 13, cold.encode_response(METADATA, 13, plain)).throttle_time == timedelta(
        milliseconds=7
    )


def test_none_is_the_empty_value_where_there_is_no_null() -> None:
    nothing: dict[str, Any] = {'group_id': None, 'member_id': None, 'subscribed_topic_names': None}
    request = cold.decode_request(SHARE_GROUP_HEARTBEAT, 1, cold.encode_request(SHARE_GROUP_HEARTBEAT, 1, nothing))
    assert (request.group_id, request.member_id, request.subscribed_topic_names) == ('', '', None)


def test_fields_of_other_versions_are_left_out() -> None:
    fields = {'topics': [{'name': 't', 'error_code': 36, 'error_message': 'is there', 'topic_id': bytes(16)}]}
    old = cold.decode_response(CREATE_TOPICS, 2, cold.encode_response(CREATE_TOPICS, 2, fields))
    assert (old.topics[0].error_code, old.topics[0].error_message) == (36, 'is there')


def test_a_field_that_no_version_has_is_our_mistake() -> None:
    with pytest.raises(TypeError, match="MetadataResponseTopic has no field 'nmae'"):
        cold.encode_response(METADATA, 9, {'topics': [{'nmae': 't'}]})


def test_a_version_that_does_not_exist() -> None:
    with pytest.raises(LookupError, match='no request of API 3 in version 99'):
        cold.decode_request(METADATA, 99, b'')
    with pytest.raises(LookupError, match='no request of API 999'):
        cold.decode_request(999, 0, b'')


@pytest.mark.parametrize(
    ('api_key', 'version', 'body', 'complaint'),
    [
        (DELETE_GROUPS, 0, b'\x7f\xff\xff\xff', 'elements announced in 0 bytes'),
        (DELETE_GROUPS, 0, b'\xff\xff\xff\xff', 'null where there must be an array'),
        (DELETE_GROUPS, 0, b'\x80\x00\x00\x00', 'null where there must be an array'),
        (DELETE_GROUPS, 0, b'\x00\x00\x00\x01\x00\x05ab', '5 bytes announced, 2 left'),
        (DELETE_GROUPS, 0, b'\x00\x00\x00\x01\xff\xff', 'null where there must be a text'),
        (DELETE_GROUPS, 0, b'\x00\x00\x00\x01\x00\x01\xff', 'not UTF-8'),
        (DELETE_GROUPS, 0, b'\x00\x00', 'ends too early'),
        (DELETE_GROUPS, 2, b'\xff\xff\xff\xff\x07\x00', 'elements announced'),
        (DELETE_GROUPS, 2, b'\xff\xff\xff\xff\xff\x07\x00', 'more than five bytes'),
        (DELETE_GROUPS, 2, b'\xff\xff\xff\xff\x7f\x00', 'a length or tag of'),
        (DELETE_GROUPS, 2, b'\x01\x01\x01\x09', '9 bytes announced, 0 left'),
        (METADATA, 1, b'\xff\xff\xff\xfe', 'a length of -2'),
    ],
)
def test_what_is_no_message_is_refused(api_key: int, version: int, body: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        cold.decode_request(api_key, version, body)


def test_a_time_out_of_range_is_refused() -> None:
    body = cold.encode_response(38, 1, {'issue_timestamp': (1 << 63) - 1})
    with pytest.raises(ProtocolError, match='out of range'):
        cold.decode_response(38, 1, body)


def test_too_many_elements_are_refused_before_they_are_read() -> None:
    body = (200_000).to_bytes(4, 'big') + bytes(2 * 200_000)  # as many groups with an empty name
    with pytest.raises(ProtocolError, match='more elements than a message may have'):
        cold.decode_request(DELETE_GROUPS, 0, body)


def test_bytes_behind_the_end_are_passed_over() -> None:
    """As Kafka does: librdkafka sends three of them with Metadata v13 for all topics."""
    assert cold.decode_request(METADATA, 13, b'\x00\x00\x00\x00\x01\x00\x00').topics is None
    assert cold.decode_request(DELETE_GROUPS, 0, b'\0\0\0\1\0\1g' + b'behind').groups_names == ('g',)
