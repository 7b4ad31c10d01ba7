"""Messages of all APIs that have no codec of their own: kio's classes in, dicts of kio's field names out.

    decode_request(3, 12, body)            -> kio's MetadataRequest of version 12
    encode_response(3, 12, {'brokers': ...}) -> bytes

Strategy: kio says how a message is laid out (`acklog.wire.layout`); readers and writers are made from that, once per
message class (`acklog.wire.structure_reader`, `structure_writer`). kio's own reader raises KeyError on a tagged field
that it does not know and bounds nothing, and its writer wants every field. Here unknown tagged fields are passed over
everywhere, nothing is allocated that the bytes do not pay for, and what a dict leaves out has Kafka's default.

A message of 100,000 elements takes a second. So what the server reads and writes is awaited, and pauses after each
stretch of it: others have their turn. Nothing else happens there. An array that is written may be anything that has a
length and can be gone through, so its elements need not be made before their turn comes.

Read values are kio's: times are timedelta (durations) and datetime, ids UUID or None for the id of zeros; error codes
are int. Written values may be that or plain: times int ms, ids 16 bytes, error codes anything that is an int; None is
written as the empty value where the field cannot be null. A field that this version does not have is left out, if any
other version of the API has it; a name that none has is a mistake of ours and raises TypeError.
"""

from __future__ import annotations

import types
from collections.abc import Generator
from datetime import datetime, timedelta
from typing import Any, TypeVar

from acklog.errors import ProtocolError
from acklog.wire import layout
from acklog.wire.layout import REQUEST, RESPONSE, Structure
from acklog.wire.primitives import EPOCH, MILLISECOND, Buffer
from acklog.wire.reader import reader, refusing_nonsense
from acklog.wire.structure_reader import structure_reader
from acklog.wire.structure_writer import Fields, structure_writer
from acklog.wire.writer import writer

MAX_REQUEST_ELEMENTS = 100_000  # ten times the partitions that one process is made for
MAX_RESPONSE_ELEMENTS = 2_000_000  # a cluster's metadata may be larger than anything we serve

T = TypeVar('T')


def decode_request(api_key: int, version: int, body: Buffer) -> Any:
    """kio's entity of a request. Raises ProtocolError for what is none, LookupError where kio has no such version."""
    return _at_once(_decode(layout.of_message(api_key, version, REQUEST), body, MAX_REQUEST_ELEMENTS))


@types.coroutine
def read_request(api_key: int, version: int, body: Buffer) -> Generator[None, None, Any]:
    """As `decode_request`, with turns for others."""
    return (yield from _decode(layout.of_message(api_key, version, REQUEST), body, MAX_REQUEST_ELEMENTS))


def decode_response(api_key: int, version: int, body: Buffer) -> Any:
    """kio's entity of an answer. Raises ProtocolError for what is none, LookupError where kio has no such version."""
    return _at_once(_decode(layout.of_message(api_key, version, RESPONSE), body, MAX_RESPONSE_ELEMENTS))


def encode_request(api_key: int, version: int, fields: Fields) -> bytes:
    """The bytes of a request. Raises LookupError where kio has no such version."""
    return _at_once(_encode(layout.of_message(api_key, version, REQUEST), fields))


def encode_response(api_key: int, version: int, fields: Fields) -> bytes:
    """The bytes of an answer. Raises LookupError where kio has no such version."""
    return _at_once(_encode(layout.of_message(api_key, version, RESPONSE), fields))


@types.coroutine
def write_response(api_key: int, version: int, fields: Fields) -> Generator[None, None, bytes]:
    """As `encode_response`, with turns for others."""
    return (yield from _encode(layout.of_message(api_key, version, RESPONSE), fields))


def as_dict(entity: Any) -> dict[str, Any]:
    """An entity as the dict that `encode_...` takes: times as int ms, structures as dicts, arrays as lists."""
    structure = layout.of_entity(type(entity))
    return {
        field.name: _plain(getattr(entity, field.name), field.structure)
        for field in structure.fields + structure.tagged
    }


def _plain(value: Any, structure: Structure | None) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        return [_plain(element, structure) for element in value]
    if structure is not None:
        return as_dict(value)
    if isinstance(value, timedelta):
        return value // MILLISECOND
    if isinstance(value, datetime):
        return (value - EPOCH) // MILLISECOND
    return value


def _decode(structure: Structure, body: Buffer, elements: int) -> Generator[None, None, Any]:
    message = reader(body, flexible=structure.flexible, elements=elements)
    reading = structure_reader(structure)(message)
    while True:
        try:
            _read_on(reading)
        except StopIteration as stop:
            return stop.value
        except OverflowError as error:
            raise ProtocolError(f'a time that is out of range: {error}') from None
        yield


_read_on = refusing_nonsense(next)


def _encode(structure: Structure, fields: Fields) -> Generator[None, None, bytes]:
    message = writer(flexible=structure.flexible)
    yield from structure_writer(structure)(message, fields)
    return bytes(message.out)


def _at_once(generator: Generator[None, None, T]) -> T:
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            result: T = stop.value
            return result
