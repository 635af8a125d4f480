"""The client over Kafka's protocol: straight to the leaders, with idempotent sends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from streamhouse.client.address import Address
from streamhouse.client.admin import Admin
from streamhouse.client.api_records import Delivery, NewRecord, TopicInfo, timestamp_of
from streamhouse.client.api_transport import Membership, Reading, RecordSink, RecordSource
from streamhouse.client.cluster import Cluster
from streamhouse.client.connection import ConnectionOptions
from streamhouse.client.consumer import ConsumedRecord, Consumer
from streamhouse.client.errors import RETRIABLE
from streamhouse.client.group_consumer import GroupConsumer, GroupConsumerOptions
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.client.partition_sender import Delivered, ProducerOptions
from streamhouse.client.producer import Producer
from streamhouse.model.errors import InvalidInput, OutcomeUnknown

# How long the records of one poll may take, as with Kafka's own consumers (max.poll.interval.ms).
_LONGEST_HANDLING_MS = 300_000
# How often a reader without a group, which nobody tells of them, looks for new partitions.
_LOOK_MS = 10_000


class KafkaTransport:
    def __init__(self, bootstrap: Sequence[Address], client_id: str) -> None:
        self._bootstrap = tuple(bootstrap)
        self._client_id = client_id
        self._cluster = self._new_cluster()
        self._admin = Admin(self._cluster)

    async def open(self) -> None:
        await self._cluster.any_broker()

    async def close(self) -> None:
        await self._cluster.close()

    async def create_topic(self, name: str, partition_count: int | None, config: Mapping[str, str]) -> None:
        await self._admin.create_topic(name, partition_count=partition_count, configs=config)

    async def create_partitions(self, name: str, partition_count: int) -> None:
        await self._admin.create_partitions(name, partition_count)
        await self._cluster.refresh([name])  # who sends through this client uses them at once

    async def delete_topic(self, name: str) -> None:
        await self._admin.delete_topic(name)

    async def topics(self) -> list[TopicInfo]:
        return [
            TopicInfo(name=topic.name, partition_count=topic.partition_count)
            for topic in await self._admin.list_topics()
        ]

    def sink(self) -> RecordSink:
        return _KafkaSink(self._cluster)

    def source(self, wanted: Reading | Membership) -> RecordSource:
        if isinstance(wanted, Reading):
            # Fetches that wait have connections of their own, so that sends do not wait behind them.
            return _KafkaReader(self._new_cluster(), wanted)
        options = GroupConsumerOptions(
            client_id=self._client_id,
            reset=wanted.reset,
            auto_commit_ms=wanted.commit_every_ms,
            max_idle_ms=_LONGEST_HANDLING_MS,
            rebalance_timeout_ms=_LONGEST_HANDLING_MS,
        )
        return _KafkaGroupReader(GroupConsumer(self._bootstrap, wanted.group, wanted.topics, options=options))

    def _new_cluster(self) -> Cluster:
        return Cluster(self._bootstrap, options=ConnectionOptions(client_id=self._client_id))


class _KafkaSink:
    def __init__(self, cluster: Cluster) -> None:
        # A record that is sent alone does not wait for company: those who send many have several on their way anyway.
        self._producer = Producer(cluster, ProducerOptions(linger_ms=0))
        self._unanswered: set[asyncio.Future[Delivery]] = set()

    async def send(self, record: NewRecord) -> asyncio.Future[Delivery]:
        delivered = await self._producer.send(
            record.topic,
            value=record.value,
            key=record.key,
            headers=record.headers,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms,
        )
        answer: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
        self._unanswered.add(answer)
        answer.add_done_callback(self._unanswered.discard)
        delivered.add_done_callback(lambda done: _pass_on(done, answer))
        return answer

    async def flush(self) -> None:
        await self._producer.flush()

    async def close(self) -> None:
        await self._producer.abandon()
        for answer in list(self._unanswered):
            if not answer.done():
                answer.set_exception(OutcomeUnknown("the producer was closed before an answer came"))


def _pass_on(delivered: asyncio.Future[Delivered], answer: asyncio.Future[Delivery]) -> None:
    if answer.done():
        return
    if delivered.cancelled():
        answer.cancel()
    elif (problem := delivered.exception()) is not None:
        answer.set_exception(problem)
    else:
        where = delivered.result()
        answer.set_result(Delivery(topic=where.topic, partition=where.partition, offset=where.offset))


class _KafkaReader:
    """All partitions of one topic, without a group."""

    def __init__(self, cluster: Cluster, wanted: Reading) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._consumer: Consumer | None = None
        self._looked_at_ms = cluster.clock.monotonic_ms()

    @property
    def assignment(self) -> tuple[GroupPartition, ...]:
        if self._consumer is None:
            return ()
        return tuple(GroupPartition(self._wanted.topic, partition) for partition in sorted(self._consumer.positions))

    async def start(self) -> None:
        admin, topic = Admin(self._cluster), self._wanted.topic
        partitions = range(await admin.partition_count(topic))
        ends = await admin.latest_offsets(topic, partitions)
        match self._wanted.start:
            case "earliest":
                positions = await admin.earliest_offsets(topic, partitions)
            case "latest":
                positions = ends
            case moment:
                found = await admin.offsets_at(topic, partitions, timestamp_of(moment) or 0)
                positions = {partition: ends[partition] if at is None else at for partition, at in found.items()}
        stop_at = ends if self._wanted.until_end else None
        self._consumer = Consumer(self._cluster, topic, positions, stop_at=stop_at)

    async def poll(self, max_wait_ms: int) -> Sequence[ConsumedRecord] | None:
        assert self._consumer is not None
        if self._consumer.at_end():
            return None
        if not self._wanted.until_end:
            await self._look_for_partitions(self._consumer)
        return await self._consumer.poll(max_wait_ms=max_wait_ms)

    async def _look_for_partitions(self, consumer: Consumer) -> None:
        """Those that were added since are read from their beginning, whatever `start` was."""
        now_ms = self._cluster.clock.monotonic_ms()
        if now_ms - self._looked_at_ms < _LOOK_MS:
            return
        self._looked_at_ms = now_ms
        with suppress(*RETRIABLE):
            topic = (await self._cluster.refresh([self._wanted.topic]))[self._wanted.topic]
            added = range(len(consumer.positions), len(topic.partitions))
            if added:
                consumer.add(await Admin(self._cluster).earliest_offsets(topic.name, added))

    def finished(self, offsets: Mapping[GroupPartition, int]) -> None:
        """Nobody remembers where this was."""

    async def commit(self, offsets: Mapping[GroupPartition, int]) -> None:
        raise InvalidInput("without a group there is nothing to commit to", hint="name one: consumer(…, group='…')")

    async def close(self) -> None:
        await self._cluster.close()


class _KafkaGroupReader:
    def __init__(self, consumer: GroupConsumer) -> None:
        self._consumer = consumer

    @property
    def assignment(self) -> tuple[GroupPartition, ...]:
        return self._consumer.assignment

    async def start(self) -> None:
        await self._consumer.start()

    async def poll(self, max_wait_ms: int) -> Sequence[ConsumedRecord] | None:
        return await self._consumer.poll(max_wait_ms=max_wait_ms)

    def finished(self, offsets: Mapping[GroupPartition, int]) -> None:
        self._consumer.note_handled(offsets)

    async def commit(self, offsets: Mapping[GroupPartition, int]) -> None:
        await self._consumer.commit(offsets)

    async def close(self) -> None:
        await self._consumer.close()
