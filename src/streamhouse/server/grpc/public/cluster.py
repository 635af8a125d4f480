"""The service `streamhouse.v1.Cluster`: agents, leases, transfers and segments, and the few things to change there."""

from __future__ import annotations

import grpc

from streamhouse import __version__
from streamhouse.cluster.state import AgentState, ClusterState, name_of, read_cluster_state, waits_for
from streamhouse.metadata.cluster import AgentRow, Placement, Transfer
from streamhouse.metadata.store import SegmentRow
from streamhouse.model.errors import InvalidInput
from streamhouse.model.names import TopicPartition
from streamhouse.server.doors import DoorContext
from streamhouse.server.grpc.calls import unary
from streamhouse.server.grpc.public.message_limits import check_question
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["Cluster"].full_name
_DEFAULT_PAGE = 100
_LARGEST_PAGE = 1_000


class ClusterService:
    def __init__(self, context: DoorContext) -> None:
        self._broker = context.broker
        self._records = context.records
        self._metadata = context.metadata

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "DescribeCluster": unary(pb.DescribeClusterRequest, self._describe, check=check_question),
                "ListLeases": unary(pb.ListLeasesRequest, self._list_leases, check=check_question),
                "ListTransfers": unary(pb.ListTransfersRequest, self._list_transfers, check=check_question),
                "ListSegments": unary(pb.ListSegmentsRequest, self._list_segments, check=check_question),
                "PinPartition": unary(pb.PinPartitionRequest, self._pin_partition, check=check_question),
                "DrainAgent": unary(pb.DrainAgentRequest, self._drain_agent, check=check_question),
            },
        )

    async def _describe(self, _request: pb.DescribeClusterRequest, _: int) -> pb.DescribeClusterResponse:
        identity = self._broker.identity
        return pb.DescribeClusterResponse(
            cluster_id=identity.cluster_id,
            node_id=identity.node_id,
            version=__version__,
            agents=map(_agent, await self._metadata.list_agents()),
        )

    async def _list_leases(self, request: pb.ListLeasesRequest, _: int) -> pb.ListLeasesResponse:
        if request.topic:
            await self._records.topic(request.topic)
        placements = await self._metadata.list_placements()
        return pb.ListLeasesResponse(
            leases=[_lease(placement) for placement in placements if request.topic in ("", placement.topic)]
        )

    async def _list_transfers(self, request: pb.ListTransfersRequest, _: int) -> pb.ListTransfersResponse:
        transfers = await self._metadata.list_transfers(limit=_page(request.limit))
        return pb.ListTransfersResponse(transfers=map(_transfer, transfers))

    async def _list_segments(self, request: pb.ListSegmentsRequest, _: int) -> pb.ListSegmentsResponse:
        topic = await self._records.topic(request.topic, request.partition)
        (rows,) = await self._metadata.load_segments([TopicPartition(topic.topic_id, request.partition)])
        found = [row for row in rows if row.end_offset > request.from_offset]
        page = found[: _page(request.limit)]
        return pb.ListSegmentsResponse(
            segments=map(_segment, page), next_offset=page[-1].end_offset if len(page) < len(found) else None
        )

    async def _pin_partition(self, request: pb.PinPartitionRequest, _: int) -> pb.PinPartitionResponse:
        state = await read_cluster_state(self._metadata, self._broker.settings.liveness)
        placement = state.partition(request.topic, request.partition)
        if request.agent_id:
            _check_target(state, placement, request.agent_id)
        await self._metadata.pin_partition(placement.partition, request.agent_id)
        return pb.PinPartitionResponse()

    async def _drain_agent(self, request: pb.DrainAgentRequest, _: int) -> pb.DrainAgentResponse:
        await self._metadata.drain_agent(request.agent_id)
        return pb.DrainAgentResponse()


def _check_target(state: ClusterState, placement: Placement, agent_id: str) -> None:
    """A pin on an agent that cannot lead the partition would only seem to do something."""
    found = state.state_of(state.agent(agent_id))
    if found is not AgentState.LIVE:
        raise InvalidInput(f"agent {agent_id!r} is {found.value}", hint="choose one that is live, or start it again")
    missing = waits_for(placement)
    if missing is not None and missing != agent_id:
        raise InvalidInput(
            f"{name_of(placement)} cannot be moved: agent {missing} may hold acknowledged records of it",
            hint=f"start agent {missing}",
        )


def _page(limit: int) -> int:
    return min(limit or _DEFAULT_PAGE, _LARGEST_PAGE)


def _agent(agent: AgentRow) -> pb.Agent:
    info = agent.info
    return pb.Agent(
        agent_id=info.agent_id,
        node_id=agent.node_id,
        kafka_address=info.kafka_address,
        grpc_address=info.address,
        zone=info.zone,
        agent_group=info.agent_group,
        started_at_ms=agent.started_at_ms,
        silent_ms=agent.silent_ms,
        is_draining=agent.is_draining,
    )


def _lease(placement: Placement) -> pb.Lease:
    return pb.Lease(
        topic=placement.topic,
        partition=placement.partition.partition,
        agent_id=placement.agent_id,
        epoch=placement.epoch,
        left_ms=placement.lease_left_ms,
        wal_agent_id=placement.wal_agent_id,
        pinned_to=placement.pinned_to,
    )


def _transfer(transfer: Transfer) -> pb.Transfer:
    return pb.Transfer(
        transfer_id=str(transfer.transfer_id),
        topic=transfer.topic,
        partition=transfer.partition.partition,
        from_agent_id=transfer.from_agent_id,
        to_agent_id=transfer.to_agent_id,
        state=transfer.state.value,
        reason=transfer.reason,
        created_at_ms=transfer.created_at_ms,
    )


def _segment(row: SegmentRow) -> pb.Segment:
    return pb.Segment(
        base_offset=row.base_offset,
        end_offset=row.end_offset,
        record_count=row.record_count,
        size_bytes=row.size_bytes,
        min_timestamp_ms=row.min_timestamp_ms,
        max_timestamp_ms=row.max_timestamp_ms,
        epoch=row.epoch,
        object_key=row.object_key,
        created_at_ms=row.created_at_ms,
    )
