"""The overview over REST: what the nodes do, how the cluster is, and what somebody should look at."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from streamhouse.broker.broker import NOT_A_NODE
from streamhouse.client.peer import NodeWork
from streamhouse.cluster.state import ClusterState
from streamhouse.metadata.totals import GroupPosition, StoredSize
from streamhouse.model.names import TopicPartition
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.alerts import NodeCondition, alerts_of
from streamhouse.server.http.rest.cluster import wholeness_of
from streamhouse.server.http.rest.recent import Recent
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.wire.http.rest import console as api

_TOTALS_AGE_MS = 5_000
_WORK_AGE_MS = 1_000
_MOST_POSITIONS = 10_000
"""With more than these the lag of all groups is not worked out."""

_EXAMPLE_NODE = api.NodeActivity(
    agent_id="agent-1",
    node_id=1,
    records_in=1_250_000,
    bytes_in=640_000_000,
    records_out=2_500_000,
    bytes_out=1_280_000_000,
    produce_p50_ms=2.4,
    produce_p99_ms=9.1,
    buffered_bytes=4_194_304,
    buffer_limit_bytes=268_435_456,
    partitions_led=6,
)
_EXAMPLE = api.OverviewAnswer(
    at_ms=1_767_225_600_000,
    node=_EXAMPLE_NODE,
    nodes=[_EXAMPLE_NODE],
    cluster=api.ClusterSummary(
        status="degraded",
        cluster_id="t0kfvAQYRYeJ8cBzWgJ1kA",
        live_agents=2,
        agents=3,
        topics=1,
        partitions=6,
        partitions_without_leader=0,
        records_written=1_250_000,
        records_kept=1_200_000,
        stored_segments=40,
        stored_bytes=600_000_000,
        groups=1,
        total_lag=12,
    ),
    alerts=[
        api.Alert(
            severity="warning",
            code="agents_silent",
            text="1 of 3 agents sent no heartbeat for too long: agent-3.",
            what_to_do="Look whether the process runs and reaches the metadata store.",
        )
    ],
)


class _Totals(NamedTuple):
    """`positions` are None if there are too many."""

    stored: StoredSize
    group_count: int
    positions: list[GroupPosition] | None


def add_overview(rest: Rest, context: DoorContext, cluster: Recent[ClusterState]) -> None:
    rest.route(
        "GET",
        f"{API}/overview",
        _OverviewRoutes(context, cluster).overview,
        summary="What the nodes do, how the cluster is, and what to look at",
        tag="cluster",
        answer=api.OverviewAnswer,
        answer_example=_EXAMPLE,
    )


class _OverviewRoutes:
    def __init__(self, context: DoorContext, cluster: Recent[ClusterState]) -> None:
        self._broker = context.broker
        self._metadata = context.metadata
        self._cluster = cluster
        self._totals = Recent(self._read_totals, context.broker.clock, _TOTALS_AGE_MS)
        self._work = context.work
        self._others = Recent(context.work.others, context.broker.clock, _WORK_AGE_MS)

    async def overview(self, _: Call) -> api.OverviewAnswer:
        state, totals, others = await asyncio.gather(self._cluster.get(), self._totals.get(), self._others.get())
        work = {self._work.agent_id: self._work.own(), **others}
        node_ids = {agent.info.agent_id: agent.node_id for agent in state.agents}
        nodes = [_activity(agent_id, node_ids.get(agent_id, NOT_A_NODE), work[agent_id]) for agent_id in work]
        local_wal, _in_objects = self._broker.wal_states()
        condition = NodeCondition(
            buffer=self._broker.buffer, wal_problem=None if local_wal is None else local_wal.problem
        )
        return api.OverviewAnswer(
            at_ms=self._broker.clock.now_ms(),
            node=nodes[0],
            nodes=nodes,
            cluster=self._summary(state, totals, work),
            alerts=alerts_of(state, condition, self._broker.clock.now_ms()),
        )

    async def _read_totals(self) -> _Totals:
        stored = await self._metadata.stored_size()
        groups = await self._metadata.list_groups()
        positions = await self._metadata.list_group_positions(_MOST_POSITIONS + 1)
        return _Totals(stored, len(groups), None if len(positions) > _MOST_POSITIONS else positions)

    def _summary(self, state: ClusterState, totals: _Totals, work: Mapping[str, NodeWork]) -> api.ClusterSummary:
        whole = wholeness_of(state, self._broker.clock.now_ms())
        starts = {placement.partition: placement.log_start_offset for placement in state.placements}
        ends = {placement.partition: placement.durable_end for placement in state.placements}
        # Of what they lead, nodes know more than the metadata store.
        for node in work.values():
            for partition, end in node.ends.items():
                if partition in ends:
                    ends[partition] = max(ends[partition], end)
        return api.ClusterSummary(
            status=whole.status,
            cluster_id=self._broker.identity.cluster_id,
            live_agents=whole.live_agents,
            agents=len(state.agents),
            topics=len({placement.topic for placement in state.placements}),
            partitions=len(state.placements),
            partitions_without_leader=whole.leaderless,
            records_written=sum(ends.values()),
            records_kept=sum(ends.values()) - sum(starts.values()),
            stored_segments=totals.stored.segment_count,
            stored_bytes=totals.stored.size_bytes,
            groups=totals.group_count,
            total_lag=None if totals.positions is None else _lag(totals.positions, starts, ends),
        )


def _activity(agent_id: str, node_id: int, work: NodeWork) -> api.NodeActivity:
    return api.NodeActivity(
        agent_id=agent_id,
        node_id=node_id,
        records_in=work.records_in,
        bytes_in=work.bytes_in,
        records_out=work.records_out,
        bytes_out=work.bytes_out,
        produce_p50_ms=work.produce_p50_ms,
        produce_p99_ms=work.produce_p99_ms,
        buffered_bytes=work.buffered_bytes,
        buffer_limit_bytes=work.buffer_limit_bytes,
        partitions_led=len(work.ends),
    )


def _lag(positions: list[GroupPosition], starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]) -> int:
    """Below a log's start there is nothing left to read."""
    return sum(
        max(0, ends[each.partition] - max(each.offset, starts[each.partition]))
        for each in positions
        if each.partition in ends
    )
