"""The token of a lock: what a member over HTTP is given with a record, and settles it by.

URL-safe base64 of group incarnation, topic id, partition, number of the lock and offset. No two acquires of a share
partition ever have the same number, so it fences by itself, over seeks and restarts too.
"""

from __future__ import annotations

import binascii
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

from acklog.broker.journal.format import ShareKey

_TOKEN = struct.Struct('>q16siqq')
_LENGTH = len(urlsafe_b64encode(bytes(_TOKEN.size)).rstrip(b'='))


class Token(NamedTuple):
    """A record under a lock."""

    key: ShareKey
    lock: int
    offset: int


def encode(token: Token) -> str:
    """As text."""
    return urlsafe_b64encode(_TOKEN.pack(*token.key, *token[1:])).rstrip(b'=').decode('ascii')


def decode(text: str) -> Token | None:
    """What `encode` was given; None if it is not one."""
    try:
        if len(text) != _LENGTH:
            return None
        group, topic, partition, *rest = _TOKEN.unpack(urlsafe_b64decode(text + '=' * (-len(text) % 4)))
    except (binascii.Error, ValueError, struct.error):
        return None
    if min(group, partition, *rest) < 0:
        return None
    return Token(ShareKey(group, topic, partition), *rest)
