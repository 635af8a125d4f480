"""What the REST API says of agents, placements and transfers, and commands that look into the database do too."""

from __future__ import annotations

from uuid import UUID

from streamhouse.cluster.state import ClusterState, leader_of, waits_for
from streamhouse.metadata.cluster import AgentRow, Placement, Transfer
from streamhouse.wire.http.rest import cluster as api

AGENT_EXAMPLE = api.AgentAnswer(
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
PLACEMENT_EXAMPLE = api.PlacementAnswer(
    topic="orders",
    topic_id=UUID("3f0b6a50-8d0f-4b2e-9c1d-5f6a7b8c9d0e"),
    partition=3,
    leader="agent-1",
    epoch=3,
    log_start_offset=0,
    high_watermark=1042,
    committed_end=1000,
    lease_left_ms=28_700,
    waits_for=None,
    pinned_to="agent-2",
)


def agent_answer(agent: AgentRow, state: ClusterState) -> api.AgentAnswer:
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


def placement_answer(placement: Placement) -> api.PlacementAnswer:
    return api.PlacementAnswer(
        topic=placement.topic,
        topic_id=placement.partition.topic_id,
        partition=placement.partition.partition,
        leader=leader_of(placement),
        epoch=placement.epoch,
        log_start_offset=placement.log_start_offset,
        high_watermark=placement.durable_end,
        committed_end=placement.committed_end,
        lease_left_ms=max(0, placement.lease_left_ms),
        waits_for=waits_for(placement),
        pinned_to=placement.pinned_to or None,
    )


def transfer_answer(transfer: Transfer) -> api.TransferAnswer:
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
