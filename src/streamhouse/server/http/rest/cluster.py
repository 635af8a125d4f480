"""The cluster over REST: its agents, who may write what, what is being handed over, and how all of it is."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import msgspec

from streamhouse import __version__
from streamhouse.cluster.state import AgentState, ClusterState, name_of
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.metadata.cluster import AgentRow, Placement
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.alerts import alerts_of
from streamhouse.server.http.rest.cluster_answers import AGENT_EXAMPLE, agent_answer, transfer_answer
from streamhouse.server.http.rest.paging import page
from streamhouse.server.http.rest.positions import after_name
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.sampler import Sampler
from streamhouse.server.http.rest.watch import ClusterWatch, Seen
from streamhouse.wire.http.rest import cluster as api

TAG = "cluster"

_NODE_EXAMPLE = api.NodeAnswer(
    agent_id="agent-1",
    node_id=1,
    cluster_id="t0kfvAQYRYeJ8cBzWgJ1kA",
    version="0.1.0",
    kafka_address="10.0.0.1:9092",
    http_address="10.0.0.1:8080",
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
    agents_not_answering=0,
    topics=1,
    partitions=6,
    partitions_without_leader=0,
    shards=SHARD_COUNT,
    shards_without_coordinator=0,
    transfers_under_way=0,
    hand_overs_stuck=0,
)


def add_cluster(rest: Rest, context: DoorContext, watch: ClusterWatch, sampler: Sampler) -> None:
    cluster = _ClusterRoutes(context, watch, sampler)
    rest.route(
        "GET",
        f"{API}/agents",
        cluster.agents,
        summary="List the agents",
        tag=TAG,
        answer=api.AgentsAnswer,
        answer_example=api.AgentsAnswer(agents=[AGENT_EXAMPLE]),
    )
    rest.route(
        "GET",
        f"{API}/node",
        cluster.node,
        summary="Which node this is, and where clients are told to call it",
        tag=TAG,
        answer=api.NodeAnswer,
        answer_example=_NODE_EXAMPLE,
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
        f"{API}/cluster/health",
        cluster.health,
        summary="How the cluster is",
        tag=TAG,
        answer=api.ClusterHealth,
        answer_example=_HEALTH_EXAMPLE,
    )


class _ClusterRoutes:
    def __init__(self, context: DoorContext, watch: ClusterWatch, sampler: Sampler) -> None:
        self._context = context
        self._watch = watch
        self._sampler = sampler
        self._metadata = context.metadata

    async def agents(self, _: Call) -> api.AgentsAnswer:
        seen = await self._watch.seen_now()
        return api.AgentsAnswer(agents=[self._agent(agent, seen) for agent in seen.state.agents])

    def _agent(self, agent: AgentRow, seen: Seen) -> api.AgentAnswer:
        agent_id = agent.info.agent_id
        silence = seen.unanswered(agent_id)
        return msgspec.structs.replace(
            agent_answer(agent, seen.state),
            answers=False if silence is not None else True if agent_id in seen.work.answers else None,
            unanswered_since_ms=None if silence is None else silence.since_ms,
            unanswered_why="" if silence is None else silence.why,
        )

    async def node(self, _: Call) -> api.NodeAnswer:
        identity = self._context.broker.identity
        return api.NodeAnswer(
            agent_id=identity.agent_id,
            node_id=identity.node_id,
            cluster_id=identity.cluster_id,
            version=__version__,
            kafka_address=identity.kafka_address,
            http_address=identity.http_address,
        )

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
        return api.TransfersAnswer(transfers=[transfer_answer(transfer) for transfer in transfers])

    async def health(self, _: Call) -> api.ClusterHealth:
        broker, own = self._context.broker, self._context.work
        seen = await self._watch.seen_now()
        work = {own.agent_id: own.own(), **seen.work.answers}
        now_ms = broker.clock.now_ms()
        state = seen.state
        whole = wholeness_of(state, now_ms)
        alerts = alerts_of(seen, work, now_ms, usual_waits_ms=self._sampler.usual_waits_ms(work))
        return api.ClusterHealth(
            status="down" if whole.is_down else "degraded" if alerts else "ok",
            cluster_id=broker.identity.cluster_id,
            agents=len(state.agents),
            live_agents=whole.live_agents,
            agents_not_answering=seen.unanswered_live,
            topics=len({placement.topic for placement in state.placements}),
            partitions=len(state.placements),
            partitions_without_leader=whole.leaderless,
            shards=SHARD_COUNT,
            shards_without_coordinator=whole.uncoordinated,
            transfers_under_way=sum(not transfer.state.is_final for transfer in state.transfers),
            hand_overs_stuck=whole.stuck,
        )


class Wholeness(NamedTuple):
    """What of the cluster is missing: so many partitions have no leader, so many shards no coordinator, and so many
    partitions cannot be handed over to who should lead them. It is down when nobody can write."""

    is_down: bool
    live_agents: int
    leaderless: int
    uncoordinated: int
    stuck: int


def wholeness_of(state: ClusterState, now_ms: int) -> Wholeness:
    return Wholeness(
        is_down=not state.serving(),
        live_agents=sum(each is AgentState.LIVE for each in state.states().values()),
        leaderless=sum(placement.lease_left_ms <= 0 for placement in state.placements),
        uncoordinated=SHARD_COUNT - sum(shard.lease_left_ms > 0 for shard in state.shards),
        stuck=len(state.stuck_hand_overs(now_ms)),
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
