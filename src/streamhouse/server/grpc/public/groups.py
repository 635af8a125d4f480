"""The service `streamhouse.v1.Groups`.

A group's coordinator may be any node: this is a client of the node's own Kafka port, as the members of groups are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import grpc

from streamhouse.broker.records import EARLIEST, LATEST
from streamhouse.client.admin import Admin
from streamhouse.client.cluster import Cluster
from streamhouse.client.group_progress import Move, Progress, describe_progress, reset_group
from streamhouse.client.groups_admin import GroupDescription, GroupMember, GroupPartition, GroupsAdmin, GroupSummary
from streamhouse.core.groups.offset_reset import ResetKind, ResetTarget
from streamhouse.model.errors import InvalidInput
from streamhouse.model.names import check_group_id
from streamhouse.server.doors import DoorContext
from streamhouse.server.grpc.calls import unary
from streamhouse.server.grpc.public.message_limits import check_question
from streamhouse.server.grpc.public.messages import time_of
from streamhouse.server.grpc.public.streams import Answers, Streams
from streamhouse.server.grpc.public.subscriptions import Subscriptions
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["Groups"].full_name


class GroupsService:
    def __init__(self, context: DoorContext, streams: Streams) -> None:
        self._kafka = context.kafka
        self._streams = streams
        self._subscriptions = Subscriptions(context.kafka)

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Subscribe": self._streams.answering(pb.SubscribeRequest, self._subscribe),
                "Commit": unary(pb.CommitRequest, self._commit, check=check_question),
                "Leave": unary(pb.LeaveRequest, self._leave, check=check_question),
                "ListGroups": unary(pb.ListGroupsRequest, self._list, check=check_question),
                "DescribeGroup": unary(pb.DescribeGroupRequest, self._describe, check=check_question),
                "ResetOffsets": unary(pb.ResetOffsetsRequest, self._reset, check=check_question),
                "DeleteGroup": unary(pb.DeleteGroupRequest, self._delete, check=check_question),
            },
        )

    async def close(self) -> None:
        await self._subscriptions.close()

    async def _subscribe(self, request: pb.SubscribeRequest, answers: Answers[pb.SubscribeResponse]) -> None:
        await self._subscriptions.run(request, answers)

    async def _commit(self, request: pb.CommitRequest, _: int) -> pb.CommitResponse:
        check_group_id(request.group_id)
        offsets = {GroupPartition(each.topic, each.partition): each.offset for each in request.offsets}
        if request.member_id:
            await self._subscriptions.commit(request.group_id, request.member_id, request.member_secret, offsets)
        elif offsets:
            async with self._cluster() as cluster:
                await GroupsAdmin(cluster).commit_offsets(request.group_id, offsets)
        return pb.CommitResponse()

    async def _leave(self, request: pb.LeaveRequest, _: int) -> pb.LeaveResponse:
        await self._subscriptions.leave(request.group_id, request.member_id, request.member_secret)
        return pb.LeaveResponse()

    async def _list(self, _request: pb.ListGroupsRequest, _: int) -> pb.ListGroupsResponse:
        async with self._cluster() as cluster:
            return pb.ListGroupsResponse(groups=map(_group, await GroupsAdmin(cluster).list_groups()))

    async def _describe(self, request: pb.DescribeGroupRequest, _: int) -> pb.DescribeGroupResponse:
        check_group_id(request.group_id)
        async with self._cluster() as cluster:
            description, progress = await describe_progress(GroupsAdmin(cluster), Admin(cluster), request.group_id)
        return _description(description, progress)

    async def _reset(self, request: pb.ResetOffsetsRequest, _: int) -> pb.ResetOffsetsResponse:
        check_group_id(request.group_id)
        target = _target(request)
        async with self._cluster() as cluster:
            moves = await reset_group(
                GroupsAdmin(cluster),
                Admin(cluster),
                request.group_id,
                request.topics,
                target,
                dry_run=request.dry_run,
            )
        return pb.ResetOffsetsResponse(moves=map(_move, moves))

    async def _delete(self, request: pb.DeleteGroupRequest, _: int) -> pb.DeleteGroupResponse:
        check_group_id(request.group_id)
        async with self._cluster() as cluster:
            await GroupsAdmin(cluster).delete_groups([request.group_id])
        return pb.DeleteGroupResponse()

    @asynccontextmanager
    async def _cluster(self) -> AsyncIterator[Cluster]:
        async with Cluster.connect(str(self._kafka)) as cluster:
            yield cluster


def _target(request: pb.ResetOffsetsRequest) -> ResetTarget:
    match request.WhichOneof("to"):
        case "shift_by":
            return ResetTarget(ResetKind.SHIFT, request.shift_by)
        case "position" if request.position.HasField("at"):
            timestamp_ms = time_of(request.position, EARLIEST)
            if timestamp_ms is None:
                return ResetTarget(ResetKind.OFFSET, request.position.offset)
            edges = {EARLIEST: ResetTarget(ResetKind.EARLIEST), LATEST: ResetTarget(ResetKind.LATEST)}
            return edges.get(timestamp_ms) or ResetTarget(ResetKind.TIME, timestamp_ms)
    raise InvalidInput("it does not say where to", hint="give a position, or shift_by")


def _group(group: GroupSummary) -> pb.Group:
    return pb.Group(group_id=group.group_id, state=group.state, kind=group.kind, protocol_type=group.protocol_type)


def _description(description: GroupDescription, progress: Iterable[Progress]) -> pb.DescribeGroupResponse:
    return pb.DescribeGroupResponse(
        group=pb.Group(
            group_id=description.group_id, state=description.state, kind=description.kind, protocol_type="consumer"
        ),
        assignor=description.assignor,
        members=map(_member, description.members),
        offsets=[
            pb.GroupOffset(
                topic=each.partition.topic,
                partition=each.partition.partition,
                committed_offset=each.committed_offset,
                high_watermark=each.end_offset,
                lag=each.lag,
            )
            for each in progress
        ],
    )


def _member(member: GroupMember) -> pb.Member:
    return pb.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.host,
        partitions=[pb.TopicPartition(topic=each.topic, partition=each.partition) for each in member.partitions],
    )


def _move(move: Move) -> pb.OffsetMove:
    return pb.OffsetMove(
        topic=move.partition.topic,
        partition=move.partition.partition,
        old_offset=move.old_offset,
        new_offset=move.new_offset,
    )
