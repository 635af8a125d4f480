"""One member of a consumer group by KIP-848: what it asks of its group's coordinator, and nothing on its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar
from uuid import UUID

from streamhouse.client.address import Address
from streamhouse.client.cluster import Cluster
from streamhouse.client.connection import Connection
from streamhouse.client.errors import RETRIABLE, raise_for
from streamhouse.client.groups_admin import GroupPartition, commit_topics, group_in_use
from streamhouse.model.errors import NotFound, StaleGeneration
from streamhouse.runtime.entropy import new_uuid
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import consumer_group_heartbeat, find_coordinator, offset_commit, offset_fetch

Result = TypeVar("Result")

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
DEFAULT_HEARTBEAT_INTERVAL_MS = 5_000
_RETRY_MS = 15_000
# The last versions that ask for one group and name topics.
_FIND_ONE_GROUP = 3
_FETCH_ONE_GROUP = 7
_COMMIT_BY_NAME = 9


class Membership(NamedTuple):
    """`assignment` is all that the member may own, in order; what it owns besides, it has to give up."""

    epoch: int
    assignment: tuple[GroupPartition, ...]


class GroupMember:
    """One member of a consumer group by KIP-848, driven by its owner: nothing happens in the background.

    The owner calls `heartbeat` every `heartbeat_interval_ms`, and at once when it gave up or took over partitions, to
    say what it owns. One call at a time is on its way: a commit behind a heartbeat that changes the epoch would be
    refused for the epoch that it carries."""

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        topics: Sequence[str],
        *,
        member_id: str = "",
        client_id: str = "",
        assignor: str | None = None,
        rebalance_timeout_ms: int = 45_000,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id or str(new_uuid())
        self.membership = Membership(JOIN_EPOCH, ())
        self.heartbeat_interval_ms = DEFAULT_HEARTBEAT_INTERVAL_MS
        self._cluster = cluster
        self._topics = tuple(topics)
        self._client_id = client_id or None
        self._assignor = assignor
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._owned: frozenset[GroupPartition] = frozenset()
        self._topic_ids: dict[str, UUID] = {}
        self._coordinator: Address | None = None
        self._turn = asyncio.Lock()

    async def join(self) -> Membership:
        """As a member that owns nothing: the first time, and after a heartbeat said that it is none any more."""
        async with self._turn:
            self._owned = frozenset()
            return await self._beat(JOIN_EPOCH)

    async def heartbeat(self, owned: Collection[GroupPartition] | None = None) -> Membership:
        """Without `owned`, it owns what it said before. StaleGeneration or NotFound: give everything up and join."""
        async with self._turn:
            if self.membership.epoch == LEAVE_EPOCH:
                raise NotFound(f"member {self.member_id!r} has left group {self.group_id!r}", hint="join again")
            if owned is not None:
                self._owned = frozenset(owned)
            return await self._beat(self.membership.epoch)

    async def commit(self, offsets: Mapping[GroupPartition, int], metadata: str = "") -> None:
        """StaleGeneration or NotFound if the group knows better than this member who it is."""
        topics = commit_topics(offsets, metadata)

        async def ask(coordinator: Connection) -> None:
            request = offset_commit.OffsetCommitRequest(
                group_id=self.group_id,
                generation_id_or_member_epoch=self.membership.epoch,
                member_id=self.member_id,
                topics=topics,
            )
            response = await coordinator.call(
                offset_commit, request, max_version=_COMMIT_BY_NAME, client_id=self._client_id
            )
            for answered in response.topics:
                for result in answered.partitions:
                    raise_for(result.error_code, f"committing {answered.name}/{result.partition_index}")

        async with self._turn:
            await self._retrying(ask)

    async def committed(self, partitions: Iterable[GroupPartition]) -> dict[GroupPartition, int]:
        """Where the group is, for those of the partitions that have a committed offset."""
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        request = offset_fetch.OffsetFetchRequest(
            group_id=self.group_id,
            topics=[
                offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic.items()
            ],
        )

        async def ask(coordinator: Connection) -> dict[GroupPartition, int]:
            response = await coordinator.call(
                offset_fetch, request, max_version=_FETCH_ONE_GROUP, client_id=self._client_id
            )
            raise_for(response.error_code, f"reading the offsets of group {self.group_id!r}")
            return _committed(response)

        return await self._retrying(ask)

    async def leave(self) -> None:
        """Its partitions are free at once; a member that the group has forgotten already has nothing to leave."""
        async with self._turn:
            with suppress(NotFound):
                await self._beat(LEAVE_EPOCH)
            self.membership = Membership(LEAVE_EPOCH, ())
            self._owned = frozenset()

    async def _beat(self, epoch: int) -> Membership:
        """Always with everything that the member is: an answer that got lost then needs no memory of what it was."""

        async def ask(coordinator: Connection) -> consumer_group_heartbeat.ConsumerGroupHeartbeatResponse:
            request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                group_id=self.group_id,
                member_id=self.member_id,
                member_epoch=epoch,
                rebalance_timeout_ms=self._rebalance_timeout_ms,
                subscribed_topic_names=list(self._topics),
                server_assignor=self._assignor,
                topic_partitions=self._owned_by_id(),
            )
            response = await coordinator.call(consumer_group_heartbeat, request, client_id=self._client_id)
            if epoch == JOIN_EPOCH and response.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                # A group with members of the older protocol does not exist for this one.
                raise group_in_use(self.group_id)
            raise_for(response.error_code, f"member {self.member_id!r} of group {self.group_id!r}")
            return response

        response = await self._retrying(ask)
        self.heartbeat_interval_ms = response.heartbeat_interval_ms or self.heartbeat_interval_ms
        assignment = self.membership.assignment
        if response.assignment is not None:
            assignment = await self._by_name(response.assignment)
        self.membership = Membership(response.member_epoch, assignment)
        return self.membership

    def _owned_by_id(self) -> list[consumer_group_heartbeat.TopicPartitions]:
        by_topic: dict[UUID, list[int]] = {}
        for topic, partition in sorted(self._owned):
            if topic in self._topic_ids:
                by_topic.setdefault(self._topic_ids[topic], []).append(partition)
        return [
            consumer_group_heartbeat.TopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in by_topic.items()
        ]

    async def _by_name(self, assignment: consumer_group_heartbeat.Assignment) -> tuple[GroupPartition, ...]:
        """A topic that was deleted since has no name any more, and nothing to read."""
        if any(topic.topic_id not in self._topic_ids.values() for topic in assignment.topic_partitions):
            await self._learn_topic_ids()
        names = {topic_id: name for name, topic_id in self._topic_ids.items()}
        return tuple(
            sorted(
                GroupPartition(names[topic.topic_id], partition)
                for topic in assignment.topic_partitions
                if topic.topic_id in names
                for partition in topic.partitions
            )
        )

    async def _learn_topic_ids(self) -> None:
        """StaleGeneration if a topic was made again: what is owned by its name is not what the group means by it."""
        before = dict(self._topic_ids)
        for name in self._topics:
            with suppress(NotFound):
                self._topic_ids[name] = (await self._cluster.refresh([name]))[name].topic_id
        for topic in sorted({partition.topic for partition in self._owned}):
            if before.get(topic) != self._topic_ids.get(topic):
                raise StaleGeneration(f"topic {topic!r} was deleted and made again", hint="join the group again")

    async def _retrying(self, ask: Callable[[Connection], Awaitable[Result]]) -> Result:
        async def attempt() -> Result:
            try:
                return await ask(await self._find_coordinator())
            except RETRIABLE:
                self._coordinator = None
                raise

        return await self._cluster.retrying(attempt, timeout_ms=_RETRY_MS)

    async def _find_coordinator(self) -> Connection:
        if self._coordinator is None:
            request = find_coordinator.FindCoordinatorRequest(key=self.group_id)
            broker = await self._cluster.any_broker()
            response = await broker.call(find_coordinator, request, max_version=_FIND_ONE_GROUP)
            raise_for(
                response.error_code, f"finding the coordinator of group {self.group_id!r}", response.error_message
            )
            self._coordinator = Address(response.host, response.port)
        return await self._cluster.connection(self._coordinator)


def _committed(response: offset_fetch.OffsetFetchResponse) -> dict[GroupPartition, int]:
    found: dict[GroupPartition, int] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            raise_for(partition.error_code, f"offsets of {topic.name}/{partition.partition_index}")
            if partition.committed_offset >= 0:  # below, some client says that there is no commit
                found[GroupPartition(topic.name, partition.partition_index)] = partition.committed_offset
    return found
