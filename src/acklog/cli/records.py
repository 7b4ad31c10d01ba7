"""A record on the terminal: as a line for people, as a JSON object for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from acklog.cli.output import as_time, printable

if TYPE_CHECKING:
    from acklog.client import Received


def as_text(record: Received) -> str:
    """One line: where it is, when, how often it was delivered if more than once, key and value."""
    again = f' (delivery {record.deliveries})' if record.deliveries > 1 else ''
    key = f'{text(record.key)}: ' if record.key is not None else ''
    return f'{record.place}{again}  {key}{text(record.value)}'


def text(data: bytes | None) -> str:
    """Bytes for people."""
    if data is None:
        return '(null)'
    return printable(data.decode('utf-8', 'backslashreplace'))


def as_json(record: Received) -> str:
    """One JSON object; bytes that are not UTF-8 are given as base64 under another name (`value_base64`)."""
    fields: dict[str, Any] = {
        'topic': record.topic,
        'partition': record.partition,
        'offset': record.offset,
        'timestamp': as_time(record.timestamp) if record.timestamp >= 0 else None,
        'timestamp_ms': record.timestamp,
        'deliveries': record.deliveries,
        **field('key', record.key),
        **field('value', record.value),
        'headers': [{'name': name, **field('value', value)} for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False)


def field(name: str, data: bytes | None) -> dict[str, str | None]:
    """Bytes as a field of a JSON object: text under `name`, what is not UTF-8 as base64 under `name`_base64."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        from base64 import b64encode

        return {f'{name}_base64': b64encode(data).decode()}
