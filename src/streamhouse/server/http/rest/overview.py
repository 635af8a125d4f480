"""The overview over REST: what the nodes do, how the cluster is, and what somebody should look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from streamhouse.broker.broker import NOT_A_NODE
from streamhouse.client.peer import NodeWork
from streamhouse.metadata.totals import GroupPosition, StoredSize
from streamhouse.model.errors import MetadataUnavailable
from streamhouse.model.names import TopicPartition
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.alerts import alerts_of
from streamhouse.server.http.rest.cluster import wholeness_of
from streamhouse.server.http.rest.known_ends import KnownEnds
from streamhouse.server.http.rest.pipelines import PipelineRuns, pipeline_alerts
from streamhouse.server.http.rest.recent import Recent
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.sampler import Sampler
from streamhouse.server.http.rest.watch import ClusterWatch, Seen
from streamhouse.wire.http.rest import console as api

_TOTALS_AGE_MS = 5_000
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
    unanswered=[api.UnansweredAgent(agent_id="agent-2", since_ms=1_767_225_598_000, why="no answer within 1500 ms")],
    cluster_at_ms=1_767_225_600_000,
    metadata_silent_since_ms=None,
    cluster=api.ClusterSummary(
        status="degraded",
        cluster_id="t0kfvAQYRYeJ8cBzWgJ1kA",
        live_agents=2,
        answering_agents=1,
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
        without=["agent-3"],
    ),
    alerts=[
        api.Alert(
            severity="warning",
            code="agents_silent",
            text="1 of 3 agents sent no heartbeat for too long: agent-3.",
            what_to_do="Look whether the process runs and reaches the metadata store.",
            agents=["agent-3"],
            commands=["streamhouse agent forget agent-3 --metadata postgresql://…"],
        )
    ],
)


class _Totals(NamedTuple):
    """`positions` are None if there are too many."""

    stored: StoredSize
    group_count: int
    positions: list[GroupPosition] | None


def add_overview(rest: Rest, context: DoorContext, watch: ClusterWatch, known: KnownEnds, sampler: Sampler) -> None:
    rest.route(
        "GET",
        f"{API}/overview",
        _OverviewRoutes(context, watch, known, sampler).overview,
        summary="What the nodes do, how the cluster is, and what to look at",
        tag="cluster",
        answer=api.OverviewAnswer,
        answer_example=_EXAMPLE,
    )


class _OverviewRoutes:
    def __init__(self, context: DoorContext, watch: ClusterWatch, known: KnownEnds, sampler: Sampler) -> None:
        self._broker = context.broker
        self._metadata = context.metadata
        self._watch = watch
        self._sampler = sampler
        self._totals = watch.also(self._read_totals, "totals")
        self._looks = Recent(self._totals.look, context.broker.clock, _TOTALS_AGE_MS)
        self._work = context.work
        self._pipelines = Recent(PipelineRuns(context).read, context.broker.clock, _TOTALS_AGE_MS)
        self._ends = known

    async def overview(self, _: Call) -> api.OverviewAnswer:
        seen = await self._watch.seen()
        totals = await self._totals_as_known()
        now_ms = self._broker.clock.now_ms()
        work = {self._work.agent_id: self._work.own(), **seen.work.answers}
        node_ids = {agent.info.agent_id: agent.node_id for agent in seen.state.agents}
        nodes = [_activity(agent_id, node_ids.get(agent_id, NOT_A_NODE), work[agent_id]) for agent_id in work]
        alerts = alerts_of(seen, work, now_ms, usual_waits_ms=self._sampler.usual_waits_ms(work))
        of_pipelines = pipeline_alerts(await self._pipelines.get(), now_ms)
        silence = seen.metadata_silence
        return api.OverviewAnswer(
            at_ms=now_ms,
            node=nodes[0],
            nodes=nodes,
            unanswered=[
                api.UnansweredAgent(agent_id=agent_id, since_ms=each.since_ms, why=each.why)
                for agent_id, each in seen.work.silent.items()
            ],
            cluster_at_ms=seen.read_at_ms,
            metadata_silent_since_ms=None if silence is None else silence.since_ms,
            cluster=self._summary(seen, totals, work, is_well=not alerts),
            alerts=[*alerts, *of_pipelines],
        )

    async def _totals_as_known(self) -> _Totals:
        """As they were last, while the metadata store is silent."""
        await self._looks.get()
        if self._totals.answer is None:
            raise MetadataUnavailable("the metadata store does not answer", hint="try again when it is back")
        return self._totals.answer.value

    async def _read_totals(self) -> _Totals:
        stored = await self._metadata.stored_size()
        groups = await self._metadata.list_groups()
        positions = await self._metadata.list_group_positions(_MOST_POSITIONS + 1)
        return _Totals(stored, len(groups), None if len(positions) > _MOST_POSITIONS else positions)

    def _summary(
        self, seen: Seen, totals: _Totals, work: Mapping[str, NodeWork], *, is_well: bool
    ) -> api.ClusterSummary:
        state = seen.state
        whole = wholeness_of(state, self._broker.clock.now_ms())
        starts = {placement.partition: placement.log_start_offset for placement in state.placements}
        ends = self._ends.update(state, work)
        status: Literal["ok", "degraded", "down", "unknown"] = "ok" if is_well else "degraded"
        if seen.metadata_silence is not None:
            status = "unknown"
        elif whole.is_down:
            status = "down"
        return api.ClusterSummary(
            status=status,
            cluster_id=self._broker.identity.cluster_id,
            live_agents=whole.live_agents,
            answering_agents=whole.live_agents - seen.unanswered_live,
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
            without=self._ends.missing(state, work),
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
