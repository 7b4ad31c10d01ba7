"""A whole broker in process, called through the bytes of the protocol; its time stands still.

`World.call('create_topics', 7, topics=[...])` encodes the request as a client would, hands it to the handler and
decodes the answer: a plain dict with kio's names, times in ms, topic ids as UUIDs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from acklog.broker.api import Caller
from acklog.broker.apis import APIS
from acklog.broker.broker import Broker
from acklog.broker.configs import Settings
from acklog.broker.partition import Partition
from acklog.log.directory import DataDirectory
from acklog.log.memory import MemoryDirectory
from acklog.log.seam import Appended, Durability
from acklog.wire import cold
from acklog.wire.record_batch import NewRecord, build

NOW = 1_700_000_000_000
KEYS = {
    'metadata': 3,
    'api_versions': 18,
    'list_offsets': 2,
    'find_coordinator': 10,
    'create_topics': 19,
    'delete_topics': 20,
    'delete_records': 21,
    'init_producer_id': 22,
    'describe_configs': 32,
    'alter_configs': 33,
    'alter_replica_log_dirs': 34,
    'describe_log_dirs': 35,
    'create_partitions': 37,
    'elect_leaders': 43,
    'incremental_alter_configs': 44,
    'alter_partition_reassignments': 45,
    'list_partition_reassignments': 46,
    'describe_quorum': 55,
    'describe_cluster': 60,
    'list_config_resources': 74,
    'describe_topic_partitions': 75,
    'share_group_heartbeat': 76,
}
TOPIC, BROKER, GROUP = 2, 4, 32

Outcome = tuple[int, str | None]  # error code, words


class Never:
    """A timer that is never due."""

    def at(self, when: int, callback: Callable[[], None]) -> Never:
        return self

    def cancel(self) -> None: ...


class World:
    """A broker over a directory, by default in memory."""

    def __init__(self, broker: Broker, directory: DataDirectory | MemoryDirectory) -> None:
        self.broker, self.directory = broker, directory
        self.caller = Caller('127.0.0.1')
        self._apis = {api.key: api for api in APIS}

    @classmethod
    async def open(
        cls, directory: DataDirectory | MemoryDirectory | Path | None = None, settings: Mapping[str, str] | None = None
    ) -> World:
        if isinstance(directory, Path):
            directory = DataDirectory(directory)
        directory = directory or MemoryDirectory()
        broker = await Broker.open(directory, Settings(settings), lambda: NOW, Never())
        return cls(broker, directory)

    async def close(self) -> None:
        await self.broker.close()
        await self.directory.close()

    async def call(self, name: str, version: int, **fields: Any) -> dict[str, Any]:
        api = self._apis[KEYS[name]]
        assert api.versions[0] <= version <= api.versions[1]
        body = cold.encode_request(api.key, version, fields)
        answer = await api.handle(self.broker, self.caller, version, cold.decode_request(api.key, version, body))
        return cold.as_dict(cold.decode_response(api.key, version, cold.encode_response(api.key, version, answer)))

    # -- shorter -------------------------------------------------------------------------------------------------------

    async def create(self, *topics: dict[str, Any], version: int = 7, **options: Any) -> dict[str, Outcome]:
        """CreateTopics: the outcome by name."""
        answer = await self.call('create_topics', version, topics=topics, timeout=1000, **options)
        return {topic['name']: (topic['error_code'], topic['error_message']) for topic in answer['topics']}

    async def made(self, name: str, partitions: int = 1, **configs: str) -> None:
        """A topic that can be created is; configs with underscores for dots."""
        texts = {key.replace('_', '.'): value for key, value in configs.items()}
        assert await self.create(topic(name, partitions, configs=texts)) == {name: (0, None)}

    async def alter(self, kind: int, name: str, *operations: tuple[Any, ...], **options: Any) -> Outcome:
        """IncrementalAlterConfigs with (name, value) or (name, value, operation)."""
        configs = [
            {'name': key, 'value': value, 'config_operation': rest[0] if rest else 0}
            for key, value, *rest in operations
        ]
        resource = {'resource_type': kind, 'resource_name': name, 'configs': configs}
        answer = await self.call('incremental_alter_configs', 1, resources=[resource], **options)
        return answer['responses'][0]['error_code'], answer['responses'][0]['error_message']

    async def configs(self, kind: int, name: str, *keys: str) -> dict[str, tuple[str | None, int]]:
        """(value, source) by name."""
        resource = {'resource_type': kind, 'resource_name': name, 'configuration_keys': keys or None}
        answer = await self.call('describe_configs', 4, resources=[resource])
        [result] = answer['results']
        assert result['error_code'] == 0, result
        return {entry['name']: (entry['value'], entry['config_source']) for entry in result['configs']}

    def partition(self, name: str, index: int = 0) -> Partition:
        found = self.broker.partition(self.broker.catalog.topics[name].id_bytes, index)
        assert found is not None
        return found

    async def append(self, name: str, *timestamps: int, compression: str = 'none') -> Appended:
        """One batch with a record at each of these times."""
        records = [NewRecord(None, b'value', (), when) for when in timestamps]
        batch = build(records, timestamp=timestamps[0], compression=compression)
        return await self.partition(name).append(batch, NOW, Durability.WRITTEN)


def topic(name: str, partitions: int = 1, replicas: int = 1, **fields: Any) -> dict[str, Any]:
    """One topic of a CreateTopics request."""
    configs = [{'name': key, 'value': value} for key, value in fields.pop('configs', {}).items()]
    assignments = [{'partition_index': index, 'broker_ids': ids} for index, ids in fields.pop('assigned', [])]
    return {
        'name': name,
        'num_partitions': partitions,
        'replication_factor': replicas,
        'configs': configs,
        'assignments': assignments,
    }
