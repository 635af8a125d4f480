"""The cluster over REST: its agents, who may write what, what is being handed over, pipelines, and how all of it is."""

from __future__ import annotations

import asyncio
from typing import Literal, NamedTuple
from uuid import UUID

import msgspec

from streamhouse.cluster.state import AgentState, ClusterState, name_of, read_cluster_health, read_cluster_state
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.metadata.cluster import AgentRow, Placement, Transfer
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.paging import page
from streamhouse.server.http.rest.positions import after_name
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.wire.http.rest import cluster as api

TAG = "cluster"

_AGENT_EXAMPLE = api.AgentAnswer(
    agent_id="agent-1",
    node_id=1,
    state="live",
    address="10.0.0.1:50052",
    kafka_address="10.0.0.1:9092",
    zone="eu-1a",
    agent_group="default",
    started_at_ms=1_767_225_600_000,
    silent_ms=4200,
    partitions_led=6,
    shards_coordinated=16,
)
_LEASE_EXAMPLE = api.LeaseAnswer(
    topic="orders", partition=0, agent_id="agent-1", epoch=3, is_live=True, lease_left_ms=28_700
)
_TRANSFER_EXAMPLE = api.TransferAnswer(
    transfer_id=UUID("0c7a3c1e-5b1d-4f0e-8a3b-2f4f5a6b7c8d"),
    topic="orders",
    partition=3,
    from_agent_id="agent-1",
    to_agent_id="agent-2",
    state="completed",
    reason="",
    created_at_ms=1_767_225_600_000,
)
_HEALTH_EXAMPLE = api.ClusterHealth(
    status="ok",
    cluster_id="t0kfvAQYRYeJ8cBzWgJ1kA",
    agents=3,
    live_agents=3,
    topics=1,
    partitions=6,
    partitions_without_leader=0,
    shards=SHARD_COUNT,
    shards_without_coordinator=0,
    transfers_under_way=0,
    hand_overs_stuck=0,
)
_QUERY_EXAMPLE = api.PipelineQuery(
    query="revenue",
    guarantee="exactly once",
    batch_id=17,
    at="2026-01-01T00:00:00Z",
    rows_per_second=1250.5,
    batch_ms=420,
    watermark=None,
    state_rows=0,
    lag={"orders/0": 12},
    input_rows=52_000,
    output_rows=51_998,
    late_rows=0,
)
_PIPELINE_EXAMPLE = api.PipelineAnswer(
    name="revenue",
    file="revenue.yaml",
    master="local[*]",
    pid=4711,
    started_at_ms=1_767_225_600_000,
    updated_at_ms=1_767_225_642_000,
    state="running",
    error=None,
    dead_letters=2,
    dead_letter_topic="orders-dead",
    queries=[_QUERY_EXAMPLE],
)


def add_cluster(rest: Rest, context: DoorContext) -> None:
    cluster = _ClusterRoutes(context)
    rest.route(
        "GET",
        f"{API}/agents",
        cluster.agents,
        summary="List the agents",
        tag=TAG,
        answer=api.AgentsAnswer,
        answer_example=api.AgentsAnswer(agents=[_AGENT_EXAMPLE]),
    )
    rest.route(
        "GET",
        f"{API}/leases",
        cluster.leases,
        summary="List who may write to which partition",
        tag=TAG,
        query=api.LeaseQuery,
        answer=api.LeasesAnswer,
        answer_example=api.LeasesAnswer(leases=[_LEASE_EXAMPLE]),
    )
    rest.route(
        "GET",
        f"{API}/transfers",
        cluster.transfers,
        summary="List the hand-overs of partitions, finished ones too",
        tag=TAG,
        query=api.TransferQuery,
        answer=api.TransfersAnswer,
        answer_example=api.TransfersAnswer(transfers=[_TRANSFER_EXAMPLE]),
    )
    rest.route(
        "GET",
        f"{API}/pipelines",
        cluster.pipelines,
        summary="List the pipelines that ran on this node's machine",
        tag=TAG,
        answer=api.PipelinesAnswer,
        answer_example=api.PipelinesAnswer(pipelines=[_PIPELINE_EXAMPLE]),
    )
    rest.route(
        "GET",
        f"{API}/cluster/health",
        cluster.health,
        summary="How the cluster is",
        tag=TAG,
        answer=api.ClusterHealth,
        answer_example=_HEALTH_EXAMPLE,
    )


class _ClusterRoutes:
    def __init__(self, context: DoorContext) -> None:
        self._context = context
        self._metadata = context.metadata
        self._pipelines = msgspec.json.Decoder(list[api.PipelineAnswer])

    async def agents(self, _: Call) -> api.AgentsAnswer:
        state = await self._state()
        return api.AgentsAnswer(agents=[_agent_answer(agent, state) for agent in state.agents])

    async def leases(self, call: Call) -> api.LeasesAnswer:
        asked: api.LeaseQuery = call.query
        after = after_name(asked.after)
        found = (
            placement
            for placement in await self._metadata.list_placements()
            if placement.agent_id
            and (placement.topic, placement.partition.partition) > after
            and asked.topic in ("", placement.topic)
            and asked.agent in ("", placement.agent_id)
        )
        placements, following = page(found, asked.limit, name_of)
        return api.LeasesAnswer(leases=[_lease_answer(placement) for placement in placements], next=following)

    async def transfers(self, call: Call) -> api.TransfersAnswer:
        transfers = await self._metadata.list_transfers(limit=call.query.limit)
        return api.TransfersAnswer(transfers=[_transfer_answer(transfer) for transfer in transfers])

    async def pipelines(self, _: Call) -> api.PipelinesAnswer:
        records = await asyncio.to_thread(self._context.pipelines)
        return api.PipelinesAnswer(pipelines=self._pipelines.decode(msgspec.json.encode(records)))

    async def health(self, _: Call) -> api.ClusterHealth:
        broker = self._context.broker
        state = await read_cluster_health(self._metadata, broker.settings.liveness)
        whole = wholeness_of(state, broker.clock.now_ms())
        return api.ClusterHealth(
            status=whole.status,
            cluster_id=broker.identity.cluster_id,
            agents=len(state.agents),
            live_agents=whole.live_agents,
            topics=len({placement.topic for placement in state.placements}),
            partitions=len(state.placements),
            partitions_without_leader=whole.leaderless,
            shards=SHARD_COUNT,
            shards_without_coordinator=whole.uncoordinated,
            transfers_under_way=sum(not transfer.state.is_final for transfer in state.transfers),
            hand_overs_stuck=whole.stuck,
        )

    async def _state(self) -> ClusterState:
        return await read_cluster_state(self._metadata, self._context.broker.settings.liveness)


class Wholeness(NamedTuple):
    """What of the cluster is missing: so many partitions have no leader, so many shards no coordinator, and so many
    partitions cannot be handed over to who should lead them."""

    status: Literal["ok", "degraded", "down"]
    live_agents: int
    leaderless: int
    uncoordinated: int
    stuck: int


def wholeness_of(state: ClusterState, now_ms: int) -> Wholeness:
    live = sum(each is AgentState.LIVE for each in state.states().values())
    leaderless = sum(placement.lease_left_ms <= 0 for placement in state.placements)
    uncoordinated = SHARD_COUNT - sum(shard.lease_left_ms > 0 for shard in state.shards)
    stuck = len(state.stuck_hand_overs(now_ms))
    is_whole = live == len(state.agents) and not leaderless and not uncoordinated and not stuck
    return Wholeness("down" if not live else "ok" if is_whole else "degraded", live, leaderless, uncoordinated, stuck)


def _agent_answer(agent: AgentRow, state: ClusterState) -> api.AgentAnswer:
    info = agent.info
    return api.AgentAnswer(
        agent_id=info.agent_id,
        node_id=agent.node_id,
        state=state.state_of(agent).value,
        address=info.address,
        kafka_address=info.kafka_address,
        zone=info.zone,
        agent_group=info.agent_group,
        started_at_ms=agent.started_at_ms,
        silent_ms=agent.silent_ms,
        partitions_led=len(state.led_by(info.agent_id)),
        shards_coordinated=len(state.shards_of(info.agent_id)),
    )


def _lease_answer(placement: Placement) -> api.LeaseAnswer:
    return api.LeaseAnswer(
        topic=placement.topic,
        partition=placement.partition.partition,
        agent_id=placement.agent_id,
        epoch=placement.epoch,
        is_live=placement.lease_left_ms > 0,
        lease_left_ms=max(0, placement.lease_left_ms),
    )


def _transfer_answer(transfer: Transfer) -> api.TransferAnswer:
    return api.TransferAnswer(
        transfer_id=transfer.transfer_id,
        topic=transfer.topic,
        partition=transfer.partition.partition,
        from_agent_id=transfer.from_agent_id,
        to_agent_id=transfer.to_agent_id,
        state=transfer.state.value,
        reason=transfer.reason,
        created_at_ms=transfer.created_at_ms,
    )
