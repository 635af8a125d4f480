"""Which partitions this agent leads: leases taken, kept, and taken again when they were lost.

A lease gives liveness only; safety comes from the epoch that every commit is checked against."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import UUID

from streamhouse.core.placement.lease import writable_until_ms
from streamhouse.log.leader import LogResources, PartitionLeader
from streamhouse.metadata.store import Lease, MetadataStore
from streamhouse.model.errors import NotFound, NotLeader, StreamHouseError, Unavailable
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import LogConfig, Topic
from streamhouse.runtime.clock import Clock

_log = logging.getLogger(__name__)


class Leadership:
    """Owns the map of led partitions; everybody else looks them up in it."""

    def __init__(
        self,
        *,
        agent_id: str,
        metadata: MetadataStore,
        clock: Clock,
        ttl_ms: int,
        config_of: Callable[[Topic], LogConfig],
        resources: LogResources,
    ) -> None:
        self._agent_id = agent_id
        self._metadata = metadata
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._config_of = config_of
        self._resources = resources
        self._leases: dict[TopicPartition, Lease] = {}
        self._leaders: dict[TopicPartition, PartitionLeader] = {}
        self._by_topic: dict[UUID, list[PartitionLeader | None]] = {}

    @property
    def leaders(self) -> Mapping[TopicPartition, PartitionLeader]:
        return self._leaders

    def leaders_of(self, topic: Topic) -> Sequence[PartitionLeader | None]:
        """A topic's leaders by partition, None where this agent does not lead; kept up to date while it exists."""
        if topic.topic_id not in self._by_topic:
            self._by_topic[topic.topic_id] = [None] * topic.partition_count
        return self._by_topic[topic.topic_id]

    async def load(self, topics: Iterable[Topic]) -> list[PartitionLeader]:
        """Take the leases of these topics' partitions and build their leaders, who may not write before `lead`.

        A partition that is led already, or whose lease another agent holds, is left out."""
        topics_by_partition = {
            TopicPartition(topic.topic_id, partition): topic
            for topic in topics
            for partition, leader in enumerate(self.leaders_of(topic))
            if leader is None
        }
        asked_at_ms = self._clock.monotonic_ms()
        leases = await self._metadata.acquire_leases(self._agent_id, list(topics_by_partition), self._ttl_ms)
        held = [lease for lease in leases if lease is not None]
        rows = await self._metadata.load_partitions([lease.partition for lease in held])
        loaded: list[PartitionLeader] = []
        for lease, row in zip(held, rows, strict=True):
            topic = topics_by_partition[lease.partition]
            leader = PartitionLeader(
                topic=topic.name,
                row=row,
                segments=await self._metadata.load_segments(lease.partition),
                epoch=lease.epoch,
                config=self._config_of(topic),
                resources=self._resources,
            )
            leader.writable_until_ms = asked_at_ms  # not before `lead`
            self._leases[lease.partition] = lease
            self._leaders[lease.partition] = leader
            self._by_topic[topic.topic_id][lease.partition.partition] = leader
            loaded.append(leader)
        return loaded

    def not_led(self, topics: Iterable[Topic]) -> list[str]:
        """The partitions of these topics that this agent does not lead."""
        return [
            f"{topic.name}/{partition}"
            for topic in topics
            for partition, leader in enumerate(self.leaders_of(topic))
            if leader is None
        ]

    async def lead(self, topics: Iterable[Topic]) -> None:
        """Let loaded (and recovered) leaders write. What an earlier try left undone is done now."""
        leaders = [leader for topic in topics for leader in self.leaders_of(topic) if leader is not None]
        waiting = [leader for leader in leaders if not leader.has_begun]
        starts = [(self._leases[leader.partition], leader.next_offset) for leader in waiting]
        await self._metadata.begin_epochs(self._agent_id, starts)
        for leader in waiting:
            leader.begin_epoch(leader.epoch)
        await self.renew([leader.partition for leader in leaders])

    async def renew(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        """Extend leases; one that was lost is taken again if nobody else wrote meanwhile."""
        leases = [self._leases[partition] for partition in (list(self._leases) if partitions is None else partitions)]
        if not leases:
            return
        asked_at_ms = self._clock.monotonic_ms()
        renewed = await self._metadata.renew_leases(self._agent_id, leases, self._ttl_ms)
        until_ms = writable_until_ms(asked_at_ms, self._ttl_ms)
        lost: list[TopicPartition] = []
        for old, lease in zip(leases, renewed, strict=True):
            leader = self._leaders.get(old.partition)
            if leader is None:
                continue
            if lease is None:
                lost.append(old.partition)
            else:
                self._leases[lease.partition] = lease
                leader.writable_until_ms = until_ms
        if lost:
            await self._take_again(lost)

    async def release(self) -> None:
        leases = list(self._leases.values())
        for leader in self._leaders.values():
            leader.writable_until_ms = 0
        if leases:
            await self._metadata.release_leases(self._agent_id, leases)

    def remove(self, topic: Topic, problem: StreamHouseError) -> None:
        """Stop leading a topic that was deleted."""
        for partition in range(topic.partition_count):
            self._drop(TopicPartition(topic.topic_id, partition), problem)
        self._by_topic.pop(topic.topic_id, None)

    def reconfigure(self, topic: Topic) -> None:
        config = self._config_of(topic)
        for leader in self.leaders_of(topic):
            if leader is not None:
                leader.configure(config)

    def expire(self) -> None:
        """Behave as if every lease had just run out (a fault hook)."""
        for leader in self._leaders.values():
            leader.writable_until_ms = 0

    async def _take_again(self, partitions: list[TopicPartition]) -> None:
        """The leases ran out while nobody renewed them, say because the process was paused."""
        for partition in partitions:
            self._leaders[partition].writable_until_ms = 0
        asked_at_ms = self._clock.monotonic_ms()
        leases = await self._metadata.acquire_leases(self._agent_id, partitions, self._ttl_ms)
        until_ms = writable_until_ms(asked_at_ms, self._ttl_ms)
        for partition, lease in zip(partitions, leases, strict=True):
            leader = self._leaders.get(partition)
            if leader is None:
                continue
            if lease is None or await self._another_wrote(leader, lease):
                self._drop(partition, NotLeader(f"another agent leads {leader.topic}/{partition.partition}"))
                continue
            await self._metadata.begin_epochs(self._agent_id, [(lease, leader.next_offset)])
            if self._leaders.get(partition) is leader:
                self._leases[partition] = lease
                leader.begin_epoch(lease.epoch)
                leader.writable_until_ms = until_ms
                _log.warning("took the lease of %s/%d again, epoch %d", leader.topic, partition.partition, lease.epoch)

    async def _another_wrote(self, leader: PartitionLeader, lease: Lease) -> bool:
        """Every grant is an epoch, so with the next epoch nobody led in between."""
        if lease.epoch == leader.epoch + 1:
            return False
        try:
            (row,) = await self._metadata.load_partitions([leader.partition])
        except NotFound:
            return True
        segments = await self._metadata.load_segments(leader.partition)
        # The end may be one that we committed ourselves, and whose answer is still on its way.
        is_ours = any(row.next_offset == segment.end_offset and segment.epoch <= leader.epoch for segment in segments)
        return row.next_offset != leader.committed_end and not is_ours

    def _drop(self, partition: TopicPartition, problem: StreamHouseError) -> None:
        self._leases.pop(partition, None)
        leader = self._leaders.pop(partition, None)
        if leader is not None:
            self._by_topic[partition.topic_id][partition.partition] = None
            leader.remove(problem)


async def keep_leases(leadership: Leadership, clock: Clock, interval_ms: int) -> None:
    """Renew until cancelled. While the store is away leaders run out of lease and refuse writes by themselves."""
    while True:
        await clock.sleep_ms(interval_ms)
        try:
            await leadership.renew()
        except Unavailable as problem:
            _log.warning("cannot renew leases, trying again: %s", problem)
