"""Types that many bodies have in common: bytes, names, numbers, pages.

Keys, values and the values of headers are bytes. What is UTF-8 text is a JSON string, anything else an object
`{"base64": "..."}`, and what is not there `null`: the same both ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from acklog.server.clock import LAST
from acklog.server.http.allowed import RULE
from acklog.wire.error_words import GROUP_RULE, LONGEST_GROUP, LONGEST_MEMBER, LONGEST_TOPIC, MEMBER_RULE, TOPIC_RULE

MOST_RECORDS = 10_000  # in one request
LONGEST_PAGE = 1_000
HIGHEST = (1 << 63) - 1
LATEST = LAST  # ms

BASE64 = '^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$'


class Base64(Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are no UTF-8 text."""

    base64: Annotated[
        bytes, Meta(description='The bytes, in base64 with padding.', extra_json_schema={'pattern': BASE64})
    ]


Bytes = str | Base64 | None

TopicName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_TOPIC,
        pattern='^[a-zA-Z0-9._-]+$',
        description='A topic.',
        examples=['orders'],
        extra={RULE: TOPIC_RULE},
    ),
]
GroupName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_GROUP,
        description='A group.',
        examples=['billing'],
        extra={RULE: GROUP_RULE},
    ),
]
MemberName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_MEMBER,
        description='A member of a group: any name that no other consumer of the group uses.',
        examples=['worker-1'],
        extra={RULE: MEMBER_RULE},
    ),
]
Index = Annotated[int, Meta(ge=0, le=(1 << 31) - 1, description='A partition of a topic, from 0.', examples=[0])]
Offset = Annotated[int, Meta(ge=0, le=HIGHEST, description='An offset in a partition.', examples=[42])]
Instant = Annotated[
    int, Meta(ge=0, le=LATEST, description='Milliseconds since 1970, UTC.', examples=[1_767_225_600_000])
]
Delay = Annotated[
    int, Meta(ge=0, le=LATEST, description='Milliseconds from the arrival of the request.', examples=[10_000])
]
DryRun = Annotated[bool, Meta(description='Change nothing; say what would come of it.')]
Limit = Annotated[int, Meta(ge=1, le=LONGEST_PAGE, description='Most items in the answer.')]
Cursor = Annotated[str, Meta(max_length=1024, description='`next` of the page before; without: the first page.')]
Next = Annotated[str | None, Meta(description='`cursor` for the page behind this one; null: this is the last.')]


class Header(Struct, frozen=True, forbid_unknown_fields=True):
    """A header of a record; names may repeat."""

    name: Annotated[str, Meta(max_length=32_767)]
    value: Bytes = None


def to_bytes(value: Bytes) -> bytes | None:
    """What a body says."""
    if isinstance(value, str):
        return value.encode()
    return value.base64 if isinstance(value, Base64) else None


def shown(data: bytes | memoryview | None) -> Bytes:
    """How a body says it."""
    if data is None:
        return None
    data = bytes(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return Base64(data)


def shown_headers(headers: Sequence[tuple[str, bytes | None]]) -> list[Header]:
    """How a body says the headers of a record."""
    return [Header(name, shown(value)) for name, value in headers]


class Paging(Struct, forbid_unknown_fields=True):
    """Which part of a list."""

    limit: Limit = 100
    cursor: Cursor | None = None


class NoBody(Struct, forbid_unknown_fields=True):
    """An empty object, or nothing at all."""
