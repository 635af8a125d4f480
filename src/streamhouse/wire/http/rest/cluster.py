"""The REST API's messages about the cluster: agents, leases, transfers, pipelines, health."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from streamhouse.wire.http.rest.paging import MAX_PAGE


class AgentAnswer(Struct, frozen=True, kw_only=True):
    """`silent_ms`: how long ago its last heartbeat was. A silent agent is taken for dead. `answers`: whether it
    answered the node that was asked for this; null if that was not tried, as for the node itself."""

    agent_id: str
    node_id: int
    state: Literal["live", "draining", "silent"]
    address: Annotated[str, Meta(description="For other agents")]
    kafka_address: Annotated[str, Meta(description="For Kafka clients")]
    zone: str
    agent_group: str
    started_at_ms: int
    silent_ms: int
    partitions_led: int
    shards_coordinated: int
    answers: bool | None = None
    unanswered_since_ms: int | None = None
    unanswered_why: str = ""


class DrainAnswer(AgentAnswer, frozen=True, kw_only=True):
    """The agent, and what whoever drains it should know: that nobody else is there to lead. Else `note` is empty."""

    note: str = ""


class AgentsAnswer(Struct, frozen=True, kw_only=True):
    agents: list[AgentAnswer]


class LeaseQuery(Struct, frozen=True, kw_only=True):
    topic: Annotated[str, Meta(max_length=249, description="Only of this topic")] = ""
    agent: Annotated[str, Meta(max_length=128, description="Only those that this agent holds")] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE, description="How many at most")] = 1000
    after: Annotated[str, Meta(max_length=300, description="The last TOPIC/PARTITION already seen")] = ""


class LeaseAnswer(Struct, frozen=True, kw_only=True):
    """Who holds the right to write to a partition; `is_live` is false for one that ran out or was given back."""

    topic: str
    partition: int
    agent_id: str
    epoch: int
    is_live: bool
    lease_left_ms: int


class LeasesAnswer(Struct, frozen=True, kw_only=True):
    """By topic and partition."""

    leases: list[LeaseAnswer]
    next: Annotated[str | None, Meta(description="Ask again with `after` set to this; null at the end")] = None


class PlacementQuery(Struct, frozen=True, kw_only=True):
    topic: Annotated[str, Meta(max_length=249, description="Only of this topic")] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE, description="How many at most")] = 1000
    after: Annotated[str, Meta(max_length=300, description="The last TOPIC/PARTITION already seen")] = ""


class PlacementAnswer(Struct, frozen=True, kw_only=True):
    """Where a partition is, as the metadata store knows it: [log_start_offset, high_watermark) is durable for it, what
    is below `committed_end` is in segments.

    `leader` is an agent's id, null while nobody leads. `waits_for` is the agent without which nobody may lead it, as
    its disk may hold acknowledged records; `pinned_to` the one that an operator moved it to, null if the ring
    decides."""

    topic: str
    topic_id: UUID
    partition: int
    leader: str | None
    epoch: int
    log_start_offset: int
    high_watermark: int
    committed_end: int
    lease_left_ms: int
    waits_for: str | None
    pinned_to: str | None


class PlacementsAnswer(Struct, frozen=True, kw_only=True):
    """By topic and partition."""

    placements: list[PlacementAnswer]
    next: Annotated[str | None, Meta(description="Ask again with `after` set to this; null at the end")] = None


class Pin(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is to lead a partition, whoever owns it."""

    agent_id: Annotated[str, Meta(min_length=1, max_length=128)]


class TransferQuery(Struct, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE, description="How many at most")] = 1000


class TransferAnswer(Struct, frozen=True, kw_only=True):
    """One hand-over of one partition from agent to agent."""

    transfer_id: UUID
    topic: str
    partition: int
    from_agent_id: str
    to_agent_id: str
    state: Literal["pending", "accepted", "completed", "rejected", "failed"]
    reason: str
    created_at_ms: int


class TransfersAnswer(Struct, frozen=True, kw_only=True):
    """Newest first."""

    transfers: list[TransferAnswer]


class PipelineQuery(Struct, frozen=True, kw_only=True):
    """One sink's query, or the dead letters'; the counts of rows are of this run."""

    query: str
    guarantee: str
    batch_id: int | None
    at: str | None
    rows_per_second: float
    batch_ms: int
    watermark: str | None
    state_rows: int
    lag: dict[str, int]
    input_rows: int
    output_rows: int
    late_rows: int


class PipelineAnswer(Struct, frozen=True, kw_only=True):
    """What is known of a pipeline's last run. A running one writes every few seconds; a silent one has not for half a
    minute, though its process is there. One that died ended without a word. Of an unknown one another version wrote a
    state that this node does not have."""

    name: str
    file: str
    master: str
    pid: int
    started_at_ms: int
    updated_at_ms: int
    state: Literal["running", "silent", "ended", "failed", "died", "unknown"]
    error: str | None
    dead_letters: int
    queries: list[PipelineQuery]
    dead_letter_topic: Annotated[str | None, Meta(description="Where its dead letters are; null if it has none")] = None
    has_dead_letter_topic: Annotated[
        bool, Meta(description="Whether there is that topic; the first letter makes it")
    ] = False


class PipelinesAnswer(Struct, frozen=True, kw_only=True):
    """Those that ran on this node's machine as its user, by name."""

    pipelines: list[PipelineAnswer]


class PipelineHistory(Struct, frozen=True, kw_only=True):
    """Rows of all its queries together, and the lag of the one that is furthest behind; dead letters do not count."""

    name: str
    times_ms: list[int]
    rows_per_second: list[float | None]
    lag: list[float | None]


class PipelineHistoriesAnswer(Struct, frozen=True, kw_only=True):
    """Up to an hour of what this node saw, oldest first; null where nothing was known. `at_ms` is its clock, now."""

    at_ms: int
    pipelines: list[PipelineHistory]


class ClusterHealth(Struct, frozen=True, kw_only=True):
    """`status` is ok when every partition and every coordinator shard has a leader, every agent is alive and answers
    this node, no hand-over fails and no producer waits long: when there is no alert about the cluster. It is degraded
    when something is missing that the others make up for or wait for, and down when no agent is alive but such as drain
    and have nothing left. `live_agents` are without those that drain."""

    status: Literal["ok", "degraded", "down"]
    cluster_id: str
    agents: int
    live_agents: int
    agents_not_answering: int
    topics: int
    partitions: int
    partitions_without_leader: int
    shards: int
    shards_without_coordinator: int
    transfers_under_way: int
    hand_overs_stuck: int


class NodeAnswer(Struct, frozen=True, kw_only=True):
    """The node that was asked, and where clients are told to call it."""

    agent_id: str
    node_id: Annotated[int, Meta(description="-1: a server without an agent, which leads nothing")]
    cluster_id: str
    version: str
    kafka_address: str
    http_address: str


class NodeHealth(Struct, frozen=True, kw_only=True):
    """Of a node that is not well there is a problem document instead."""

    status: Literal["ok"]
