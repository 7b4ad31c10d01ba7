"""Administration: topics, groups, their configs, and the lag of groups.

Each call is one request to the server that is in charge of it, and the answer as plain values. Calls that change
something are not repeated when the connection breaks while the answer is awaited (Disconnected), since they may have
been done.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from acklog.client.arguments import INT32, INT64, check_configs, check_text, check_whole
from acklog.client.calls import (
    CREATE_TOPICS,
    DELETE_GROUPS,
    DELETE_TOPICS,
    DESCRIBE_SHARE_GROUP_OFFSETS,
    LIST_GROUPS,
    LIST_OFFSETS,
    SHARE_GROUP_DESCRIBE,
    Cold,
)
from acklog.client.cluster import ANY_NODE, Cluster
from acklog.client.configs import GROUP, TOPIC, alter_configs, configs_of
from acklog.client.descriptions import (
    Config,
    DescribedGroup,
    DescribedPartition,
    DescribedTopic,
    ListedGroup,
    ListedTopic,
    Member,
    PartitionLag,
)
from acklog.client.errors import NotFound, check, refusal

EARLIEST, LATEST = -2, -1  # timestamps of ListOffsets that stand for the log's start and end


class Admin:
    """Administration through a client; see `Client.admin`. All calls may raise the connection's errors (Unreachable,
    Disconnected, TimedOut, Unsupported) and Refused with the server's reason."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # --- topics

    async def create_topic(
        self, name: str, *, partitions: int | None = None, configs: Mapping[str, str] | None = None
    ) -> ListedTopic:
        """Create a topic. `partitions`: 1 or more, None for the server's default. Raises AlreadyExists."""
        check_text('the name of a topic', name)
        if partitions is not None:
            check_whole('partitions', partitions, 1, INT32)
        if configs is not None:
            check_configs(configs, unset=False)
        topic = {
            'name': name,
            'num_partitions': -1 if partitions is None else partitions,
            'replication_factor': -1,
            'assignments': [],
            'configs': [{'name': key, 'value': value} for key, value in (configs or {}).items()],
        }
        fields = {'topics': [topic], 'timeout': self._milliseconds(), 'validate_only': False}
        answer = await self._cluster.call(Cold(CREATE_TOPICS, fields), repeat=False)
        result = answer.topics[0]
        check(result.error_code, f'topic {name!r}', result.error_message)
        self._cluster.forget_topic(name)
        place = await self._cluster.topic(name, create=True)  # a cluster needs a moment until all nodes know it
        return ListedTopic(name, place.id, len(place.leaders), place.internal)

    async def list_topics(self, *, internal: bool = False) -> list[ListedTopic]:
        """All topics by name. `internal`: also those that the server keeps for itself."""
        found = await self._cluster.refresh(None)
        topics = [ListedTopic(t.name, t.id, len(t.leaders), t.internal) for t in found.values()]
        return sorted((t for t in topics if internal or not t.internal), key=lambda topic: topic.name)

    async def describe_topic(self, name: str) -> DescribedTopic:
        """A topic with its partitions, their offsets, and the configs set on it. Raises NotFound."""
        self._cluster.forget_topic(name)
        place = await self._cluster.topic(name)
        starts, ends, configs = await asyncio.gather(
            self.offsets(name, EARLIEST), self.offsets(name, LATEST), self.topic_configs(name)
        )
        partitions = [
            DescribedPartition(index, leader, starts.get(index, -1), ends.get(index, -1))
            for index, leader in sorted(place.leaders.items())
        ]
        own = {config.name: config.value for config in configs if config.is_set}
        return DescribedTopic(name, place.id, place.internal, partitions, own)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic with its records, and what groups have signed off in it. Raises NotFound."""
        check_text('the name of a topic', name)
        fields = {
            'topics': [{'name': name, 'topic_id': None}],  # v6 and later
            'topic_names': [name],  # v1 to v5
            'timeout': self._milliseconds(),
        }
        answer = await self._cluster.call(Cold(DELETE_TOPICS, fields), repeat=False)
        result = answer.responses[0]
        check(result.error_code, f'topic {name!r}', getattr(result, 'error_message', None))
        self._cluster.forget_topic(name)

    async def offsets(self, name: str, timestamp: int) -> dict[int, int]:
        """By partition, the offset of the first record at or after `timestamp` (ms since 1970; EARLIEST, LATEST): -1
        where there is none. Raises NotFound."""
        check_whole('timestamp', timestamp, -INT64)
        place = await self._cluster.topic(name)
        by_leader = defaultdict(list)
        for index, leader in place.leaders.items():
            by_leader[leader].append(index)
        found = await asyncio.gather(
            *(self._offsets_at(leader, name, indexes, timestamp) for leader, indexes in by_leader.items())
        )
        return {index: offset for part in found for index, offset in part.items()}

    async def _offsets_at(self, node: int, name: str, indexes: Iterable[int], timestamp: int) -> dict[int, int]:
        partitions = [
            {'partition_index': index, 'current_leader_epoch': -1, 'timestamp': timestamp} for index in indexes
        ]
        fields = {'replica_id': -1, 'isolation_level': 0, 'topics': [{'name': name, 'partitions': partitions}]}
        answer = await self._cluster.call(Cold(LIST_OFFSETS, fields), node=node)
        offsets = {}
        for partition in answer.topics[0].partitions:
            check(partition.error_code, f'{name}/{partition.partition_index}')
            offsets[partition.partition_index] = partition.offset
        return offsets

    # --- configs

    async def topic_configs(self, name: str) -> list[Config]:
        """All configs of a topic, defaults included. Raises NotFound."""
        return await configs_of(self._cluster, TOPIC, name)

    async def group_configs(self, group: str) -> list[Config]:
        """All configs of a group, defaults included; a group that does not exist yet has the defaults."""
        return await configs_of(self._cluster, GROUP, group)

    async def alter_topic_configs(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set configs of a topic, or take them back to the default (None). All or none are changed. Raises NotFound."""
        await alter_configs(self._cluster, TOPIC, name, changes)

    async def alter_group_configs(self, group: str, changes: Mapping[str, str | None]) -> None:
        """Set configs of a group, or take them back to the default (None). The group need not exist yet."""
        await alter_configs(self._cluster, GROUP, group, changes)

    # --- groups

    async def list_groups(self, *, kinds: Sequence[str] | str = ()) -> list[ListedGroup]:
        """All groups by name, of these kinds ('share', 'consumer', 'classic') if any are named."""
        wanted = [kinds] if isinstance(kinds, str) else list(kinds)
        await self._cluster.refresh([])
        fields = {'states_filter': [], 'types_filter': wanted}
        nodes = list(self._cluster.nodes) or [ANY_NODE]
        answers = await asyncio.gather(*(self._cluster.call(Cold(LIST_GROUPS, fields), node=node) for node in nodes))
        groups = {}
        for answer in answers:
            check(answer.error_code, 'the list of groups')
            for group in answer.groups:
                kind = getattr(group, 'group_type', '').lower()
                if not wanted or kind in wanted:
                    groups[group.group_id] = ListedGroup(group.group_id, kind, getattr(group, 'group_state', ''))
        return sorted(groups.values(), key=lambda group: group.id)

    async def describe_group(self, group: str) -> DescribedGroup:
        """A share group with its members. Raises NotFound."""
        fields = {'group_ids': [group], 'include_authorized_operations': False}
        answer = await self._cluster.call_coordinator(group, _Checked(SHARE_GROUP_DESCRIBE, fields))
        described = answer.groups[0]
        members = [_member(member) for member in described.members]
        return DescribedGroup(
            id=group,
            state=described.group_state,
            epoch=described.group_epoch,
            assignment_epoch=described.assignment_epoch,
            assignor=described.assignor_name,
            members=sorted(members, key=lambda member: member.id),
        )

    async def group_exists(self, group: str) -> bool:
        """Whether there is a share group of that name."""
        try:
            return (await self.describe_group(group)).state.lower() != 'dead'
        except NotFound:
            return False

    async def delete_group(self, group: str) -> None:
        """Delete a group that has no members, with all that it has signed off. Raises NotFound, Refused
        (NON_EMPTY_GROUP)."""
        await self._cluster.call_coordinator(group, _Checked(DELETE_GROUPS, {'groups_names': [group]}))

    async def lag(self, group: str) -> list[PartitionLag]:
        """What a share group still has to do, by partition (KIP-932; the number itself: KIP-1226). Raises NotFound."""
        fields = {'groups': [{'group_id': group, 'topics': None}]}
        answer = await self._cluster.call_coordinator(group, _Checked(DESCRIBE_SHARE_GROUP_OFFSETS, fields))
        if not answer.groups[0].topics:
            await self.describe_group(group)  # a group that is not there has begun with nothing, and that is no error
        return sorted(
            await asyncio.gather(
                *(self._lag(topic.topic_name, p) for topic in answer.groups[0].topics for p in topic.partitions)
            ),
            key=lambda lag: (lag.topic, lag.partition),
        )

    async def _lag(self, topic: str, partition: Any) -> PartitionLag:
        check(partition.error_code, f'{topic}/{partition.partition_index}', partition.error_message)
        start = partition.start_offset if partition.start_offset >= 0 else None
        lag = getattr(partition, 'lag', -1)
        exact = lag >= 0
        if not exact and start is not None:
            ends = await self.offsets(topic, LATEST)
            lag = max(0, ends.get(partition.partition_index, start) - start)
        return PartitionLag(topic, partition.partition_index, start, lag if lag >= 0 else None, exact)

    def _milliseconds(self) -> int:
        return int(self._cluster.timeout * 1000)


class _Checked(Cold):
    """A call about one group, whose decoding raises the group's error so that the coordinator can be looked for
    again."""

    def decode(self, version: int, body: memoryview) -> Any:
        answer = super().decode(version, body)
        result = (answer.results if self.api is DELETE_GROUPS else answer.groups)[0]
        if result.error_code:
            raise refusal(result.error_code, f'group {result.group_id!r}', getattr(result, 'error_message', None))
        return answer


def _member(member: Any) -> Member:
    assignment: dict[str, list[int]] = {}
    for part in member.assignment.topic_partitions:
        assignment.setdefault(part.topic_name, []).extend(part.partitions)
    return Member(
        id=member.member_id,
        client_id=member.client_id,
        host=member.client_host.lstrip('/'),
        epoch=member.member_epoch,
        topics=list(member.subscribed_topic_names),
        assignment={topic: sorted(assignment[topic]) for topic in sorted(assignment)},
    )
