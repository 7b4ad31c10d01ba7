"""Messages of all APIs that have no codec of their own: kio's classes in, dicts of kio's field names out.

    decode_request(3, 12, body)            -> kio's MetadataRequest of version 12
    encode_response(3, 12, {'brokers': ...}) -> bytes

Strategy: kio says how a message is laid out (`acklog.wire.layout`); reading and writing is done here, by closures that
are made once per message class. kio's own reader raises KeyError on a tagged field that it does not know and bounds
nothing, and its writer wants every field. Here unknown tagged fields are passed over everywhere, nothing is allocated
that the bytes do not pay for, and what a dict leaves out has Kafka's default.

Read values are kio's: times are timedelta (durations) and datetime, ids UUID or None for the id of zeros; error codes
are int. Written values may be that or plain: times int ms, ids 16 bytes, error codes anything that is an int; None is
written as the empty value where the field cannot be null. A field that this version does not have is left out, if any
other version of the API has it; a name that none has is a mistake of ours and raises TypeError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from acklog.errors import ProtocolError
from acklog.wire import layout
from acklog.wire.layout import REQUEST, RESPONSE, Field, Structure
from acklog.wire.primitives import (
    Buffer,
    CompactReader,
    CompactWriter,
    Reader,
    Writer,
    reader,
    refusing_nonsense,
    writer,
)

MAX_REQUEST_ELEMENTS = 100_000  # ten times the partitions that one process is made for
MAX_RESPONSE_ELEMENTS = 2_000_000  # a cluster's metadata may be larger than anything we serve

Fields = Mapping[str, Any]
Read = Callable[[Reader], Any]
Write = Callable[[Writer, Any], None]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def decode_request(api_key: int, version: int, body: Buffer) -> Any:
    """kio's entity of a request. Raises ProtocolError for what is none, LookupError where kio has no such version."""
    return _decode(layout.of_message(api_key, version, REQUEST), body, MAX_REQUEST_ELEMENTS)


def decode_response(api_key: int, version: int, body: Buffer) -> Any:
    """kio's entity of an answer. Raises ProtocolError for what is none, LookupError where kio has no such version."""
    return _decode(layout.of_message(api_key, version, RESPONSE), body, MAX_RESPONSE_ELEMENTS)


def encode_request(api_key: int, version: int, fields: Fields) -> bytes:
    """The bytes of a request. Raises LookupError where kio has no such version."""
    return _encode(layout.of_message(api_key, version, REQUEST), fields)


def encode_response(api_key: int, version: int, fields: Fields) -> bytes:
    """The bytes of an answer. Raises LookupError where kio has no such version."""
    return _encode(layout.of_message(api_key, version, RESPONSE), fields)


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
        return value // _MILLISECOND
    if isinstance(value, datetime):
        return (value - _EPOCH) // _MILLISECOND
    return value


# reading


@refusing_nonsense
def _decode(structure: Structure, body: Buffer, elements: int) -> Any:
    message = reader(body, flexible=structure.flexible, elements=elements)
    try:
        value = _structure_reader(structure)(message)
    except OverflowError as error:
        raise ProtocolError(f'a time that is out of range: {error}') from None
    return value


@functools.cache
def _structure_reader(structure: Structure) -> Read:
    entity = structure.entity
    names = [field.name for field in structure.fields]
    readers = [_field_reader(field, structure.flexible) for field in structure.fields]
    pairs = list(zip(names, readers, strict=True))
    tagged = {field.tag: (field.name, _field_reader(field, structure.flexible)) for field in structure.tagged}
    absent = {field.name: field.absent for field in structure.tagged}

    def read_plain(message: Reader) -> Any:
        values = {name: read(message) for name, read in pairs}
        message.tags()
        return entity(**values)

    def read_with_tags(message: Reader) -> Any:
        values = {name: read(message) for name, read in pairs}
        values.update(absent)
        for tag, contents in message.tagged().items():
            if tag in tagged:
                name, read = tagged[tag]
                inner = CompactReader(contents, message.elements)
                values[name] = read(inner)
                message.elements = inner.elements
        return entity(**values)

    return read_with_tags if structure.tagged else read_plain


def _field_reader(field: Field, flexible: bool) -> Read:
    kinds = CompactReader if flexible else Reader
    if field.structure is not None:
        read = _structure_reader(field.structure)
    else:
        read = _value_reader(field.kind, field.nullable and not field.is_array, kinds)
    if field.is_array:
        return _array_reader(read, field)
    if field.structure is not None and field.nullable:
        return _nullable_structure_reader(read)
    return read


def _value_reader(kind: str, nullable: bool, kinds: type[Reader]) -> Read:
    if kind == 'string':
        return kinds.nullable_string if nullable else kinds.string
    if kind in ('bytes', 'records'):
        return _nullable_bytes if nullable else _bytes
    if kind == 'datetime_i64' and nullable:
        return _nullable_datetime
    return _READERS[kind]


def _bytes(message: Reader) -> bytes:
    return bytes(message.view())


def _nullable_bytes(message: Reader) -> bytes | None:
    view = message.nullable_view()
    return None if view is None else bytes(view)


def _uuid(message: Reader) -> UUID | None:
    raw = message.uuid()
    return UUID(bytes=raw) if any(raw) else None


def _duration_i32(message: Reader) -> timedelta:
    return timedelta(milliseconds=message.int32())


def _duration_i64(message: Reader) -> timedelta:
    return timedelta(milliseconds=message.int64())


def _datetime(message: Reader) -> datetime:
    return _EPOCH + timedelta(milliseconds=message.int64())


def _nullable_datetime(message: Reader) -> datetime | None:
    ms = message.int64()
    return None if ms == -1 else _EPOCH + timedelta(milliseconds=ms)


_READERS: dict[str, Read] = {
    'bool': Reader.boolean,
    'int8': Reader.int8,
    'int16': Reader.int16,
    'int32': Reader.int32,
    'int64': Reader.int64,
    'uint8': Reader.uint8,
    'uint16': Reader.uint16,
    'uint32': Reader.uint32,
    'uint64': Reader.uint64,
    'float64': Reader.float64,
    'error_code': Reader.int16,
    'uuid': _uuid,
    'timedelta_i32': _duration_i32,
    'timedelta_i64': _duration_i64,
    'datetime_i64': _datetime,
}


def _array_reader(read: Read, field: Field) -> Read:
    minimum = layout.minimum(field._replace(is_array=False, nullable=False))

    def read_array(message: Reader) -> tuple[Any, ...]:
        return tuple([read(message) for _ in range(message.array(minimum))])

    def read_nullable_array(message: Reader) -> tuple[Any, ...] | None:
        count = message.nullable_array(minimum)
        return None if count is None else tuple([read(message) for _ in range(count)])

    return read_nullable_array if field.nullable else read_array


def _nullable_structure_reader(read: Read) -> Read:
    def read_nullable(message: Reader) -> Any:
        return None if message.int8() < 0 else read(message)

    return read_nullable


# writing


def _encode(structure: Structure, fields: Fields) -> bytes:
    message = writer(flexible=structure.flexible)
    _structure_writer(structure)(message, fields)
    return bytes(message.out)


@functools.cache
def _structure_writer(structure: Structure) -> Write:
    writers = [(field.name, _field_writer(field, structure.flexible), field.default) for field in structure.fields]
    tagged = [(field, _field_writer(field, structure.flexible)) for field in structure.tagged]
    names = structure.names

    def write(message: Writer, values: Fields | None) -> None:
        given: Fields = values or {}
        if not given.keys() <= names:
            _check_names(structure, given)
        get = given.get
        for name, put, default in writers:
            put(message, get(name, default))
        if tagged:
            message.tagged(_tagged(tagged, given, type(message)))
        else:
            message.tags()

    return write


def _tagged(tagged: list[tuple[Field, Write]], given: Fields, kind: type[Writer]) -> list[tuple[int, Buffer]]:
    """The tagged fields that have another value than their default, each written by a writer of this kind."""
    found: list[tuple[int, Buffer]] = []
    for field, put in tagged:
        value = given.get(field.name)
        if value is None or value == field.default or (field.is_array and not value):
            continue
        contents = kind()
        put(contents, value)
        found.append((field.tag or 0, contents.out))
    return found


def _field_writer(field: Field, flexible: bool) -> Write:
    if field.structure is not None:
        write = _structure_writer(field.structure)
    else:
        write = _value_writer(field.kind, field.nullable and not field.is_array, flexible)
    if field.is_array:
        return _array_writer(write, field.nullable)
    if field.structure is not None and field.nullable:
        return _nullable_structure_writer(write)
    return write


def _value_writer(kind: str, nullable: bool, flexible: bool) -> Write:
    kinds = CompactWriter if flexible else Writer
    if kind == 'string':
        return kinds.string if nullable else _or_empty(kinds.string, '')
    if kind in ('bytes', 'records'):
        return kinds.bytes if nullable else _or_empty(kinds.bytes, b'')
    return _WRITERS[kind]


def _or_empty(write: Callable[[Writer, Any], None], empty: Any) -> Write:
    def write_or_empty(message: Writer, value: Any) -> None:
        write(message, empty if value is None else value)

    return write_or_empty


def _put_uuid(message: Writer, value: UUID | bytes | None) -> None:
    message.uuid(bytes(16) if value is None else value.bytes if isinstance(value, UUID) else value)


def _put_duration_i32(message: Writer, value: int | timedelta) -> None:
    message.int32(value // _MILLISECOND if isinstance(value, timedelta) else value)


def _put_duration_i64(message: Writer, value: int | timedelta) -> None:
    message.int64(value // _MILLISECOND if isinstance(value, timedelta) else value)


def _put_datetime(message: Writer, value: int | datetime | None) -> None:
    if value is None:
        message.int64(-1)
    else:
        message.int64((value - _EPOCH) // _MILLISECOND if isinstance(value, datetime) else value)


_WRITERS: dict[str, Write] = {
    'bool': Writer.boolean,
    'int8': Writer.int8,
    'int16': Writer.int16,
    'int32': Writer.int32,
    'int64': Writer.int64,
    'uint8': Writer.uint8,
    'uint16': Writer.uint16,
    'uint32': Writer.uint32,
    'uint64': Writer.uint64,
    'float64': Writer.float64,
    'error_code': Writer.int16,
    'uuid': _put_uuid,
    'timedelta_i32': _put_duration_i32,
    'timedelta_i64': _put_duration_i64,
    'datetime_i64': _put_datetime,
}


def _array_writer(write: Write, nullable: bool) -> Write:
    def write_array(message: Writer, values: Sequence[Any] | None) -> None:
        if values is None:
            message.array(-1 if nullable else 0)
            return
        message.array(len(values))
        for value in values:
            write(message, value)

    return write_array


def _nullable_structure_writer(write: Write) -> Write:
    def write_nullable(message: Writer, value: Fields | None) -> None:
        if value is None:
            message.int8(-1)
        else:
            message.int8(1)
            write(message, value)

    return write_nullable


def _check_names(structure: Structure, given: Fields) -> None:
    entity = structure.entity
    for name in given.keys() - structure.names:
        if not _is_known_elsewhere(int(entity.__api_key__), entity.__name__, name):
            raise TypeError(f'{entity.__name__} has no field {name!r} in any version')


@functools.cache
def _is_known_elsewhere(api_key: int, structure_name: str, name: str) -> bool:
    """Whether another version of this structure has such a field: looked for from the newest version down."""
    for version in reversed(layout.versions(api_key)):
        for direction in (REQUEST, RESPONSE):
            for structure in layout.all_structures(layout.of_message(api_key, version, direction)):
                if structure.entity.__name__ == structure_name and name in structure.names:
                    return True
    return False
