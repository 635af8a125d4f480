"""Topics from a client's side: create, list, describe, alter, delete; list offsets and delete records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

from streamhouse.client.cluster import DEFAULT_RETRY_MS, Cluster, TopicLeaders
from streamhouse.client.connection import Connection
from streamhouse.client.errors import error_for, raise_for
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import (
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    incremental_alter_configs,
    list_offsets,
)

_TOPIC_RESOURCE = 2
# DescribeConfigs' sources: this one is what was set on the topic itself.
_TOPIC_CONFIG_SOURCE = 1
_BROKER_DEFAULT = -1
_CLIENT_REPLICA_ID = -1
# ListOffsets' special timestamps.
_LATEST = -1
_EARLIEST = -2


class _ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSummary:
    name: str
    topic_id: UUID
    partition_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """Offsets are [start_offset, end_offset); None when nobody leads the partition now."""

    partition: int
    leader: int
    leader_epoch: int
    start_offset: int | None
    end_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    name: str
    value: str | None
    is_default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    name: str
    topic_id: UUID
    partitions: tuple[PartitionDescription, ...]
    configs: tuple[ConfigEntry, ...]


class Admin:
    def __init__(self, cluster: Cluster, *, timeout_ms: int = DEFAULT_RETRY_MS) -> None:
        self._cluster = cluster
        self._timeout_ms = timeout_ms

    async def create_topic(
        self,
        name: str,
        *,
        partition_count: int | None = None,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """AlreadyExists if it does; without a count, the broker's default decides."""
        topic = create_topics.CreatableTopic(
            name=name,
            num_partitions=_BROKER_DEFAULT if partition_count is None else partition_count,
            replication_factor=_BROKER_DEFAULT,
            configs=[
                create_topics.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
            ],
        )
        request = create_topics.CreateTopicsRequest(
            topics=[topic], timeout_ms=self._timeout_ms, validate_only=validate_only
        )
        response = await (await self._cluster.any_broker()).call(create_topics, request, timeout_ms=self._timeout_ms)
        for result in response.topics:
            raise_for(result.error_code, f"creating topic {name!r}", result.error_message)

    async def create_partitions(self, name: str, partition_count: int, *, validate_only: bool = False) -> None:
        """`partition_count` is that of all; InvalidPartitions unless it is more than there are."""
        topic = create_partitions.CreatePartitionsTopic(name=name, count=partition_count, assignments=None)
        request = create_partitions.CreatePartitionsRequest(
            topics=[topic], timeout_ms=self._timeout_ms, validate_only=validate_only
        )
        broker = await self._cluster.any_broker()
        response = await broker.call(create_partitions, request, timeout_ms=self._timeout_ms)
        for result in response.results:
            raise_for(result.error_code, f"adding partitions to topic {name!r}", result.error_message)

    async def list_topics(self) -> list[TopicSummary]:
        return [
            TopicSummary(name=topic.name, topic_id=topic.topic_id, partition_count=len(topic.partitions))
            for topic in await self._cluster.all_topics()
        ]

    async def describe_topic(self, name: str) -> TopicDescription:
        topic = (await self._cluster.refresh([name]))[name]
        configs = await self.describe_configs(name)
        led = [partition.partition for partition in topic.partitions if partition.leader >= 0]
        starts = await self.earliest_offsets(name, led)
        ends = await self.latest_offsets(name, led)
        return TopicDescription(
            name=name, topic_id=topic.topic_id, partitions=_describe_partitions(topic, starts, ends), configs=configs
        )

    async def partition_count(self, topic: str) -> int:
        return len((await self._cluster.topic(topic)).partitions)

    async def describe_configs(self, topic: str) -> tuple[ConfigEntry, ...]:
        resource = describe_configs.DescribeConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=None
        )
        request = describe_configs.DescribeConfigsRequest(resources=[resource])
        response = await (await self._cluster.any_broker()).call(describe_configs, request)
        entries: list[ConfigEntry] = []
        for result in response.results:
            raise_for(result.error_code, f"describing topic {topic!r}", result.error_message)
            entries += [
                ConfigEntry(
                    name=config.name, value=config.value, is_default=config.config_source != _TOPIC_CONFIG_SOURCE
                )
                for config in result.configs
            ]
        return tuple(sorted(entries, key=lambda entry: entry.name))

    async def alter_topic(
        self, name: str, *, set_configs: Mapping[str, str] | None = None, delete_configs: Iterable[str] = ()
    ) -> None:
        """Changes what is named and leaves the rest; a deleted config goes back to its default."""
        alterations = [
            incremental_alter_configs.AlterableConfig(name=key, config_operation=_ConfigOperation.SET, value=value)
            for key, value in (set_configs or {}).items()
        ] + [
            incremental_alter_configs.AlterableConfig(name=key, config_operation=_ConfigOperation.DELETE, value=None)
            for key in delete_configs
        ]
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=name, configs=alterations
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
        response = await (await self._cluster.any_broker()).call(incremental_alter_configs, request)
        for result in response.responses:
            raise_for(result.error_code, f"altering topic {name!r}", result.error_message)

    async def delete_topic(self, name: str) -> None:
        request = delete_topics.DeleteTopicsRequest(
            topics=[delete_topics.DeleteTopicState(name=name)], topic_names=[name], timeout_ms=self._timeout_ms
        )
        response = await (await self._cluster.any_broker()).call(delete_topics, request, timeout_ms=self._timeout_ms)
        for result in response.responses:
            raise_for(result.error_code, f"deleting topic {name!r}", result.error_message)

    async def earliest_offsets(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return await self._list_offsets(topic, partitions, _EARLIEST)

    async def latest_offsets(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        return await self._list_offsets(topic, partitions, _LATEST)

    async def offsets_at(self, topic: str, partitions: Iterable[int], timestamp_ms: int) -> dict[int, int | None]:
        """The first offset whose record is at or after the time; None where there is no such record."""
        found = await self._list_offsets(topic, partitions, timestamp_ms)
        return {partition: None if offset < 0 else offset for partition, offset in found.items()}

    async def delete_records(self, topic: str, before_offsets: Mapping[int, int]) -> dict[int, int]:
        """Drops everything before the given offsets; returns where each partition starts now."""

        async def ask(leader: Connection, partitions: Sequence[int]) -> dict[int, int]:
            wanted = [
                delete_records.DeleteRecordsPartition(partition_index=p, offset=before_offsets[p]) for p in partitions
            ]
            request = delete_records.DeleteRecordsRequest(
                topics=[delete_records.DeleteRecordsTopic(name=topic, partitions=wanted)], timeout_ms=self._timeout_ms
            )
            response = await leader.call(delete_records, request, timeout_ms=self._timeout_ms)
            results = [partition for answered in response.topics for partition in answered.partitions]
            for result in results:
                raise_for(result.error_code, f"deleting records of {topic}/{result.partition_index}")
            return {result.partition_index: result.low_watermark for result in results}

        return await self._ask_leaders(topic, before_offsets, ask)

    async def _list_offsets(self, topic: str, partitions: Iterable[int], timestamp: int) -> dict[int, int]:
        async def ask(leader: Connection, led: Sequence[int]) -> dict[int, int]:
            wanted = [list_offsets.ListOffsetsPartition(partition_index=p, timestamp=timestamp) for p in led]
            request = list_offsets.ListOffsetsRequest(
                replica_id=_CLIENT_REPLICA_ID,
                topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=wanted)],
                timeout_ms=self._timeout_ms,
            )
            response = await leader.call(list_offsets, request, timeout_ms=self._timeout_ms)
            results = [partition for answered in response.topics for partition in answered.partitions]
            for result in results:
                raise_for(result.error_code, f"listing offsets of {topic}/{result.partition_index}")
            return {result.partition_index: result.offset for result in results}

        return await self._ask_leaders(topic, partitions, ask)

    async def _ask_leaders(
        self,
        topic: str,
        partitions: Iterable[int],
        ask: Callable[[Connection, Sequence[int]], Awaitable[dict[int, int]]],
    ) -> dict[int, int]:
        """Sends each leader its share and puts the answers together; again from the start when leaders moved."""
        wanted = list(partitions)

        async def attempt() -> dict[int, int]:
            shares: dict[Connection, list[int]] = {}
            for partition in wanted:
                shares.setdefault(await self._cluster.leader(topic, partition), []).append(partition)
            answers: dict[int, int] = {}
            for leader, share in shares.items():
                answers |= await ask(leader, share)
            missing = [partition for partition in wanted if partition not in answers]
            if missing:
                raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}/{missing[0]} was not answered for")
            return answers

        return await self._cluster.retrying(attempt, topic=topic, timeout_ms=self._timeout_ms)


def _describe_partitions(
    topic: TopicLeaders, starts: Mapping[int, int], ends: Mapping[int, int]
) -> tuple[PartitionDescription, ...]:
    return tuple(
        PartitionDescription(
            partition=partition.partition,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            start_offset=starts.get(partition.partition),
            end_offset=ends.get(partition.partition),
        )
        for partition in topic.partitions
    )
