"""What the admin calls answer: topics, groups and their configs as plain values."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListedTopic:
    """A topic in a list."""

    name: str
    id: uuid.UUID
    partitions: int
    internal: bool


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """A partition: its leader's node id (-1: none), first offset and the offset that the next record will have."""

    index: int
    leader: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic with its partitions and the configs that were set on it."""

    name: str
    id: uuid.UUID
    internal: bool
    partitions: Sequence[DescribedPartition]
    configs: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Config:
    """A config of a topic or group. `value`: as text, None for a secret; `is_set`: on this very topic or group, else
    the value is a default; `source`: where it comes from."""

    name: str
    value: str | None
    is_set: bool
    source: str
    read_only: bool
    documentation: str | None


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in a list. `kind`: 'share', 'consumer', 'classic', or '' where the server does not say; `state`:
    'Empty', 'Stable', ... or ''."""

    id: str
    kind: str
    state: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a share group. `assignment`: topic name -> partitions."""

    id: str
    client_id: str
    host: str
    epoch: int
    topics: Sequence[str]
    assignment: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A share group. `epoch` goes up whenever its members or their topics change."""

    id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: Sequence[Member]


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """What a share group still has to do in a partition.

    `start`: the first offset that is not signed off, None before the group has begun there; `lag`: records that are not
    signed off, None where the server does not know; `exact`: whether the server counted them, else it is the distance
    from `start` to the log's end, which counts those signed off in between as well.
    """

    topic: str
    partition: int
    start: int | None
    lag: int | None
    exact: bool
