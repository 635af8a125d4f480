"""The REST API's messages about topics, their partitions and segments."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from streamhouse.model.topic import MAX_PARTITIONS
from streamhouse.wire.http.rest.paging import MAX_PAGE

TopicName = Annotated[
    str,
    Meta(
        # Described here and checked where names are checked for every door, which has its own error for it.
        extra_json_schema={"pattern": r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$"},
        description="1 to 249 letters, digits, '.', '_' or '-', other than '.' and '..'",
    ),
]
PartitionCount = Annotated[int, Meta(ge=1, le=MAX_PARTITIONS)]
RetentionMs = Annotated[
    int, Meta(ge=-1, le=2**63 - 1, description="How long records are kept, in milliseconds; -1 keeps them forever")
]
CleanupPolicy = Annotated[
    Literal["delete", "compact", "compact,delete", "delete,compact"],
    Meta(description="Delete old records, keep the newest of each key, or both"),
]
ConfigValue = Annotated[str, Meta(max_length=1000)] | int | float


class NewTopic(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is not given has the node's default. `retention_ms` and `cleanup_policy` are short for two of `config`."""

    name: TopicName
    partition_count: PartitionCount | None = None
    retention_ms: RetentionMs | None = None
    cleanup_policy: CleanupPolicy | None = None
    config: Annotated[
        dict[str, ConfigValue], Meta(description="Topic configs by Kafka's names, such as segment.bytes")
    ] = {}


class TopicChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is given is set, null goes back to the node's default, what is left out stays. The number of partitions can
    only grow, and not where the config streamhouse.partitions.fixed is true."""

    partition_count: PartitionCount | None = None
    retention_ms: RetentionMs | UnsetType | None = UNSET
    cleanup_policy: CleanupPolicy | UnsetType | None = UNSET
    config: dict[str, ConfigValue | None] = {}


class TopicAnswer(Struct, frozen=True, kw_only=True):
    name: str
    topic_id: UUID
    partition_count: int
    retention_ms: int
    cleanup_policy: str
    config: Annotated[dict[str, str], Meta(description="The topic's own configs")]
    effective_config: Annotated[dict[str, str], Meta(description="All configs, those of the node included")]
    created_at_ms: int


class TopicsAnswer(Struct, frozen=True, kw_only=True):
    """By name."""

    topics: list[TopicAnswer]
    next: Annotated[str | None, Meta(description="Ask again with `after` set to this; null at the end")] = None


class ConfigAnswer(Struct, frozen=True, kw_only=True):
    """One config, whose `value` counts. It was set for the topic, for this node or for all nodes while they run, by a
    flag or variable of this node, or in its settings; or it is the default. `no_effect_because`: it is taken and told
    again for Kafka's tools, and changes nothing here. `default` is what counts if it is not set here."""

    name: str
    value: str
    source: Literal["topic", "given", "node", "cluster", "setting", "default"]
    default: str
    type: str
    description: str
    no_effect_because: str | None


class ConfigsAnswer(Struct, frozen=True, kw_only=True):
    """By name."""

    configs: list[ConfigAnswer]


class PartitionPageQuery(Struct, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE, description="How many at most")] = MAX_PAGE
    after: Annotated[int, Meta(ge=-1, le=2**31 - 1, description="The last partition already seen")] = -1


class PartitionAnswer(Struct, frozen=True, kw_only=True):
    """One partition: [log_start_offset, high_watermark) can be read, what is below `committed_end` is in segments.

    `leader` is an agent's id, null while nobody leads. `waits_for` is the agent without which nobody may lead it, as
    its disk may hold acknowledged records; `pinned_to` the one that an operator moved it to. Without an answer of the
    leader the high watermark is the last that is known: of the metadata store alone, if `unheard` names the agent that
    may have more and was never heard."""

    partition: int
    leader: str | None
    leader_node_id: int | None
    epoch: int
    log_start_offset: int
    high_watermark: int
    unheard: str | None
    committed_end: int
    lease_left_ms: int
    waits_for: str | None
    pinned_to: str | None
    segment_count: int
    stored_bytes: Annotated[int, Meta(description="Of its segments in the object store")]


class PartitionsAnswer(Struct, frozen=True, kw_only=True):
    topic: str
    partition_count: int
    partitions: list[PartitionAnswer]
    next: Annotated[int | None, Meta(description="Ask again with `after` set to this; null at the end")] = None


class SegmentPageQuery(Struct, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE, description="How many at most")] = 1000
    after: Annotated[int, Meta(ge=-1, le=2**63 - 1, description="The last base offset already seen")] = -1


class SegmentAnswer(Struct, frozen=True, kw_only=True):
    """An object in the store with the records of [base_offset, end_offset)."""

    base_offset: int
    end_offset: int
    record_count: int
    size_bytes: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    epoch: int
    object_key: str
    checksum: int
    created_at_ms: int


class SegmentsAnswer(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    log_start_offset: int
    committed_end: int
    segments: list[SegmentAnswer]
    next: Annotated[int | None, Meta(description="Ask again with `after` set to this; null at the end")] = None
