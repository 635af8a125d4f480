"""The REST API's messages for whoever watches: what this node does, the hash ring, the WAL, a segment's blocks."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from streamhouse.wire.http.rest.topics import SegmentAnswer

MAX_RING_PARTITIONS = 2000
"""Of each its place on the ring is worked out."""
MAX_LINKS = 20
"""Of the agents and partitions that an alert is about."""
MAX_BLOCKS = 1000
"""Of each block in a page its header is read from the object store."""


class NodeActivity(Struct, frozen=True, kw_only=True):
    """What a node has done since it started: read it twice for a rate. Latencies are of the last minute or so, null
    while there was nothing to measure; while nothing becomes durable, the 99th percentile is how long that is so."""

    agent_id: str
    node_id: Annotated[int, Meta(description="-1: a server without an agent, which leads nothing")]
    records_in: int
    bytes_in: int
    records_out: int
    bytes_out: int
    produce_p50_ms: float | None
    produce_p99_ms: float | None
    buffered_bytes: Annotated[int, Meta(description="Records not yet in the object store")]
    buffer_limit_bytes: int
    partitions_led: int


class ClusterSummary(Struct, frozen=True, kw_only=True):
    """`status` is ok only if there is no alert about the cluster, and unknown while the metadata store is silent.
    `records_written` is the sum of the partitions' ends: it grows with every record of any producer, and does not
    shrink when a node is gone. So it is with `total_lag`, of all groups together; it is null where groups have too many
    offsets to add them up. `without` are agents that have not answered the node that is asked since it started: what
    the metadata store does not know of their records is in none of these sums. What is stored, and what groups have
    committed, are up to five seconds old."""

    status: Literal["ok", "degraded", "down", "unknown"]
    cluster_id: str
    live_agents: int
    answering_agents: Annotated[int, Meta(description="Those of the live ones that answered, the one asked included")]
    agents: int
    topics: int
    partitions: int
    partitions_without_leader: int
    records_written: int
    records_kept: Annotated[int, Meta(description="From each partition's log start to its end")]
    stored_segments: int
    stored_bytes: int
    groups: int
    total_lag: int | None
    without: list[str]


class AlertPartition(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int


class Alert(Struct, frozen=True, kw_only=True):
    """`agents`, `partitions` and `pipelines` are what it is about, the first few of them. `commands` are for a person
    to run, after a thought."""

    severity: Literal["critical", "warning"]
    code: Annotated[
        str, Meta(description="Stays the same while the text may change, such as partitions_without_leader")
    ]
    text: str
    what_to_do: str
    agents: list[str] = []
    partitions: list[AlertPartition] = []
    pipelines: list[str] = []
    commands: list[str] = []


class UnansweredAgent(Struct, frozen=True, kw_only=True):
    """An agent that did not answer the node that was asked, and since when."""

    agent_id: str
    since_ms: int
    why: str


class OverviewAnswer(Struct, frozen=True, kw_only=True):
    """`at_ms` is this node's clock, to divide differences by. `node` is the one that was asked, `nodes` are all that
    answered it, `unanswered` those that did not: of what they do nothing is known. `cluster_at_ms` is when the metadata
    store was asked for what is said of the cluster; `metadata_silent_since_ms` is null while it answers. The worst
    alerts come first."""

    at_ms: int
    node: NodeActivity
    nodes: list[NodeActivity]
    unanswered: list[UnansweredAgent]
    cluster_at_ms: int
    metadata_silent_since_ms: int | None
    cluster: ClusterSummary
    alerts: list[Alert]


class RingAgent(Struct, frozen=True, kw_only=True):
    """`positions` are its places on the ring as fractions of the whole, ascending: what lies before each of them, back
    to the place before, is its part of the ring. One that is not live has none. `owns` is how many partitions it should
    lead: agents that have equally little get what lies in their parts, so that all have about the same."""

    agent_id: str
    state: Literal["live", "draining", "silent"]
    zone: str
    agent_group: str
    positions: list[float]
    share: Annotated[float, Meta(description="How much of the ring is its own, from 0 to 1")]
    owns: int


class RingPartition(Struct, frozen=True, kw_only=True):
    """`owner` is the agent that should lead it, `leader` the one that does: where they differ it is on its way, or
    `waits_for` the one agent whose disk may hold acknowledged records of it."""

    topic: str
    partition: int
    position: float
    owner: str | None
    leader: str | None
    epoch: int
    lease_left_ms: int
    pinned_to: str | None
    waits_for: str | None


class RingQuery(Struct, frozen=True, kw_only=True):
    topic: Annotated[str, Meta(max_length=249, description="Only partitions of this topic")] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_RING_PARTITIONS, description="How many partitions at most")] = 1000
    after: Annotated[str, Meta(max_length=300, description="The last TOPIC/PARTITION already seen")] = ""


class RingAnswer(Struct, frozen=True, kw_only=True):
    """Agents by id, partitions by topic and number."""

    agents: list[RingAgent]
    partitions: list[RingPartition]
    next: Annotated[str | None, Meta(description="Ask again with `after` set to this; null at the end")] = None


class WalFileAnswer(Struct, frozen=True, kw_only=True):
    """`partitions_needing_it`: so many have records in it that are in no segment yet; with none it is used again."""

    name: str
    size_bytes: int
    is_written_now: bool
    partitions_needing_it: int


class LocalWalAnswer(Struct, frozen=True, kw_only=True):
    """On the node's own disk. `unsynced` is what was appended and is not safe yet, so not acknowledged."""

    files: list[WalFileAnswer]
    size_bytes: int
    unsynced_batches: int
    unsynced_bytes: int
    problem: Annotated[str | None, Meta(description="Why appends are refused, if they are")]


class WalObjectAnswer(Struct, frozen=True, kw_only=True):
    key: Annotated[str, Meta(description="Empty until its upload begins")]
    size_bytes: int
    partitions: int
    is_stored: Annotated[bool, Meta(description="Uploaded, and waits to be committed")]


class ObjectWalAnswer(Struct, frozen=True, kw_only=True):
    """In the object store: what is gathered for the next object, and the objects on their way, oldest first."""

    gathered_batches: int
    gathered_bytes: int
    in_flight: list[WalObjectAnswer]


class WalAnswer(Struct, frozen=True, kw_only=True):
    """A node's write-ahead logs; `local` is null on a node without a disk of its own. `uncovered` is what the WALs are
    needed for: durable, but in no segment yet."""

    agent_id: str
    local: LocalWalAnswer | None
    object: ObjectWalAnswer
    uncovered_records: int
    uncovered_bytes: int


class WalsAnswer(Struct, frozen=True, kw_only=True):
    """Of all agents that answered, by id; `unanswered` are the others."""

    wals: list[WalAnswer]
    unanswered: list[UnansweredAgent]


class BlockPageQuery(Struct, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_BLOCKS, description="How many blocks at most")] = 100
    after: Annotated[int, Meta(ge=-1, le=2**31 - 1, description="The number of the last block already seen")] = -1


class BlockAnswer(Struct, frozen=True, kw_only=True):
    """A run of whole batches at [position, position + size_bytes) of the object, with the records of [first_offset,
    end_offset). `problem` says what is wrong with its header; then codec and raw size are not known."""

    block: int
    first_offset: int
    end_offset: int
    record_count: int
    max_timestamp_ms: int
    position: int
    size_bytes: int
    raw_bytes: Annotated[int | None, Meta(description="Before compression")]
    codec: Literal["none", "lz4"] | None
    problem: str | None


class OpenedSegment(Struct, frozen=True, kw_only=True):
    """A segment and the blocks that its index lists, in order."""

    topic: str
    partition: int
    segment: SegmentAnswer
    block_count: int
    index_position: Annotated[int, Meta(description="Where the blocks end")]
    blocks: list[BlockAnswer]
    next: Annotated[int | None, Meta(description="Ask again with `after` set to this; null at the end")] = None
