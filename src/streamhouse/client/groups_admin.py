"""Consumer groups from a client's side: list, describe, read and set their committed offsets, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple

from streamhouse.client.address import Address
from streamhouse.client.cluster import Cluster
from streamhouse.client.connection import Connection
from streamhouse.client.errors import error_for, raise_for
from streamhouse.model.errors import InvalidInput, MalformedRequest, NotFound, StreamHouseError, Unsupported
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import (
    consumer_group_describe,
    consumer_protocol_assignment,
    delete_groups,
    describe_groups,
    find_coordinator,
    list_groups,
    metadata,
    offset_commit,
    offset_fetch,
)

CLASSIC = "classic"
CONSUMER = "consumer"
# The last versions that ask for one group and name topics, which brokers of every age answer.
_FIND_ONE_GROUP = 3
_FETCH_ONE_GROUP = 7
_COMMIT_BY_NAME = 9
_NO_GENERATION = -1
_ASSIGNMENT_VERSION_BYTES = 2


class GroupPartition(NamedTuple):
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """`kind` is the rebalance protocol: classic or consumer; empty if the broker is too old to tell."""

    group_id: str
    state: str
    kind: str
    protocol_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[GroupPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """`assignor` is who divides the partitions; empty while there are no members."""

    group_id: str
    state: str
    kind: str
    assignor: str
    members: tuple[GroupMember, ...]


class GroupsAdmin:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def list_groups(self, *, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> list[GroupSummary]:
        """Every broker tells of the groups that it coordinates."""
        asked = await self._cluster.any_broker()
        brokers = (await asked.call(metadata, metadata.MetadataRequest(topics=[]))).brokers
        found: dict[str, GroupSummary] = {}
        for broker in brokers:
            for group in await self.groups_at(Address(broker.host, broker.port), states=states, kinds=kinds):
                found[group.group_id] = group
        return [found[group_id] for group_id in sorted(found)]

    async def groups_at(
        self, address: Address, *, states: Iterable[str] = (), kinds: Iterable[str] = ()
    ) -> list[GroupSummary]:
        """Those that the broker there coordinates."""
        request = list_groups.ListGroupsRequest(states_filter=list(states), types_filter=list(kinds))
        async with self._reach(address) as connection:
            response = await connection.call(list_groups, request)
        raise_for(response.error_code, "listing the groups")
        return [
            GroupSummary(
                group_id=group.group_id,
                state=group.group_state,
                kind=group.group_type.lower(),
                protocol_type=group.protocol_type,
            )
            for group in response.groups
        ]

    async def describe_group(self, group_id: str) -> GroupDescription:
        """NotFound if there is no such group, of either protocol."""
        async with self._coordinator(group_id) as coordinator:
            classic = await _describe_classic(coordinator, group_id)
            found = classic if classic is not None else await _describe_consumer(coordinator, group_id)
        if found is None:
            raise _problem(ErrorCode.GROUP_ID_NOT_FOUND, group_id)
        return found

    async def committed_offsets(self, group_id: str) -> dict[GroupPartition, int]:
        """All that the group committed, in order; empty for a group that does not exist."""
        request = offset_fetch.OffsetFetchRequest(group_id=group_id, topics=None)
        async with self._coordinator(group_id) as coordinator:
            response = await coordinator.call(offset_fetch, request, max_version=_FETCH_ONE_GROUP)
        _raise_for(response.error_code, group_id)
        committed: dict[GroupPartition, int] = {}
        for topic in response.topics:
            for partition in topic.partitions:
                raise_for(partition.error_code, f"offsets of {topic.name}/{partition.partition_index}")
                if partition.committed_offset >= 0:  # below, some client says that there is no commit
                    committed[GroupPartition(topic.name, partition.partition_index)] = partition.committed_offset
        return dict(sorted(committed.items()))

    async def commit_offsets(self, group_id: str, offsets: Mapping[GroupPartition, int]) -> None:
        """Without being a member, so the broker refuses it while the group has some."""
        request = offset_commit.OffsetCommitRequest(
            group_id=group_id, generation_id_or_member_epoch=_NO_GENERATION, topics=commit_topics(offsets)
        )
        async with self._coordinator(group_id) as coordinator:
            response = await coordinator.call(offset_commit, request, max_version=_COMMIT_BY_NAME)
        for answered in response.topics:
            for result in answered.partitions:
                _raise_for(result.error_code, group_id)

    async def delete_groups(self, group_ids: Iterable[str]) -> None:
        """With their offsets. Stops at the first that is refused: it has members, or does not exist."""
        for group_id in group_ids:
            async with self._coordinator(group_id) as coordinator:
                request = delete_groups.DeleteGroupsRequest(groups_names=[group_id])
                response = await coordinator.call(delete_groups, request)
            for result in response.results:
                _raise_for(result.error_code, group_id)

    @asynccontextmanager
    async def _coordinator(self, group_id: str) -> AsyncIterator[Connection]:
        request = find_coordinator.FindCoordinatorRequest(key=group_id)

        async def attempt() -> Address:
            broker = await self._cluster.any_broker()
            response = await broker.call(find_coordinator, request, max_version=_FIND_ONE_GROUP)
            raise_for(response.error_code, f"finding the coordinator of group {group_id!r}", response.error_message)
            return Address(response.host, response.port)

        async with self._reach(await self._cluster.retrying(attempt)) as connection:
            yield connection

    @asynccontextmanager
    async def _reach(self, address: Address) -> AsyncIterator[Connection]:
        """The connection that is open already if it leads there, else one for this question."""
        open_one = await self._cluster.any_broker()
        if open_one.address == address:
            yield open_one
            return
        async with await Connection.open(address) as connection:
            yield connection


def commit_topics(
    offsets: Mapping[GroupPartition, int], metadata: str = ""
) -> list[offset_commit.OffsetCommitRequestTopic]:
    """The offsets as a request carries them. A broker would keep one below 0, and nobody could read from there."""
    by_topic: dict[str, list[offset_commit.OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        if offset < 0:
            raise InvalidInput(f"{offset} is not an offset")
        by_topic.setdefault(topic, []).append(
            offset_commit.OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
        )
    return [
        offset_commit.OffsetCommitRequestTopic(name=topic, partitions=partitions)
        for topic, partitions in by_topic.items()
    ]


async def _describe_classic(coordinator: Connection, group_id: str) -> GroupDescription | None:
    response = await coordinator.call(describe_groups, describe_groups.DescribeGroupsRequest(groups=[group_id]))
    (group,) = response.groups
    # Old versions call a group Dead that they do not know, new ones have a code for it.
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND or group.group_state == "Dead":
        return None
    _raise_for(group.error_code, group_id)
    return GroupDescription(
        group_id=group_id,
        state=group.group_state,
        kind=CLASSIC,
        assignor=group.protocol_data,
        members=tuple(
            GroupMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                host=member.client_host,
                partitions=_read_assignment(bytes(member.member_assignment)),
            )
            for member in group.members
        ),
    )


async def _describe_consumer(coordinator: Connection, group_id: str) -> GroupDescription | None:
    request = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[group_id])
    try:
        response = await coordinator.call(consumer_group_describe, request)
    except Unsupported:
        # A broker from before KIP-848 has classic groups only.
        return None
    (group,) = response.groups
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    _raise_for(group.error_code, group_id)
    return GroupDescription(
        group_id=group_id,
        state=group.group_state,
        kind=CONSUMER,
        assignor=group.assignor_name,
        members=tuple(
            GroupMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                host=member.client_host,
                partitions=tuple(
                    sorted(
                        GroupPartition(topic.topic_name, partition)
                        for topic in member.assignment.topic_partitions
                        for partition in topic.partitions
                    )
                ),
            )
            for member in group.members
        ),
    )


def _read_assignment(assignment: bytes) -> tuple[GroupPartition, ...]:
    """What a classic leader wrote for a member; empty while the group rebalances."""
    if len(assignment) < _ASSIGNMENT_VERSION_BYTES:
        return ()
    version = int.from_bytes(assignment[:_ASSIGNMENT_VERSION_BYTES], "big", signed=True)
    try:
        decoded = consumer_protocol_assignment.decode(
            memoryview(assignment), _ASSIGNMENT_VERSION_BYTES, len(assignment), version
        )
    except MalformedRequest:
        # The bytes are between the members; those of another kind than consumers mean nothing here.
        return ()
    return tuple(
        sorted(
            GroupPartition(topic.topic, partition)
            for topic in decoded.assigned_partitions
            for partition in topic.partitions
        )
    )


def _raise_for(code: int, group_id: str) -> None:
    if code != ErrorCode.NONE:
        raise _problem(code, group_id)


def _problem(code: int, group_id: str) -> StreamHouseError:
    match code:
        case ErrorCode.GROUP_ID_NOT_FOUND:
            return NotFound(f"there is no group {group_id!r}", hint="`streamhouse group list` shows what there is")
        # An offset of nobody in particular is refused as one of an unknown member when there are members.
        case ErrorCode.NON_EMPTY_GROUP | ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.REBALANCE_IN_PROGRESS:
            return group_in_use(group_id)
    return error_for(code, f"group {group_id!r}")


def group_in_use(group_id: str) -> InvalidInput:
    return InvalidInput(
        f"group {group_id!r} has members",
        hint="stop its consumers first; `streamhouse group describe` shows where they run",
    )
