"""The REST API's messages about what has been going on: the last hour, each topic, each topic's consumers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Trend = Literal["growing", "falling", "steady"]


class HistoryQuery(Struct, frozen=True, kw_only=True):
    since_ms: Annotated[int, Meta(ge=0, le=2**53, description="Only samples of this time or later")] = 0


class HistoryAnswer(Struct, frozen=True, kw_only=True):
    """Samples of the last hour, oldest first, of the cluster as the node that is asked saw it: they begin with its
    start. `series` are per second, in milliseconds, bytes or records, by name; null where nothing was known, also
    between two samples when the node did not measure."""

    agent_id: str
    period_ms: int
    times_ms: list[int]
    series: dict[str, list[float | None]]


class TopicActivity(Struct, frozen=True, kw_only=True):
    """`records` are those that are kept; `stored_bytes` those of them in segments. Rates are of the last half minute;
    `read_per_s` is how fast the groups together commit, `groups` are those that have committed offsets of it.
    `last_write_ms` is when this node saw it grow, to 15 seconds, or before that the time of the newest record in
    segments. Null is what is not known, or not yet."""

    name: str
    partition_count: int
    records: int
    stored_bytes: int | None
    written_per_s: float | None
    read_per_s: float | None
    last_write_ms: int | None
    groups: int | None


class TopicActivityAnswer(Struct, frozen=True, kw_only=True):
    """`without` is as in the overview's `cluster`: agents of whose `records` some may not be counted. Which topics
    there are, and what of them is in segments, is as it was before, if `metadata_silent_since_ms` says that the
    metadata store does not answer."""

    at_ms: int
    topics: list[TopicActivity]
    without: list[str]
    next: str | None = None
    metadata_silent_since_ms: int | None = None


class ConsumersQuery(Struct, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=20, description="How many groups at most")] = 10
    after: Annotated[str, Meta(max_length=300, description="The last group already seen: a page's `next`")] = ""


class ConsumedPartition(Struct, frozen=True, kw_only=True):
    """`lag_ms` is how long ago the next record that the group has to read was written, by the record's own time: 0 if
    there is none, null if it cannot be read now. `end_offset` is null where nobody can say, as the agent that may have
    more of the log is away and was never heard."""

    partition: int
    committed_offset: int | None
    end_offset: int | None
    lag: int | None
    lag_ms: int | None
    member_id: str | None
    client_id: str | None


class TopicConsumer(Struct, frozen=True, kw_only=True):
    """`lag` is null if it is not known of a partition that may have records, and so are `lag_ms`, which is that of the
    partition that is furthest behind, and `trend`. `lag_times_ms` and `lag_history` are up to an hour of
    what this node saw, null where nothing was known; `trend` is of the last five minutes of it."""

    group_id: str
    state: str
    lag: int | None
    lag_ms: int | None
    trend: Trend | None
    lag_times_ms: list[int]
    lag_history: list[float | None]
    partitions: list[ConsumedPartition]


class PartitionLagHistory(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    lag: list[float | None]


class GroupHistoryAnswer(Struct, frozen=True, kw_only=True):
    """`lag` of all partitions together, and of the partitions that are furthest behind, at `times_ms`: up to an hour of
    what this node saw; null where nothing was known. `at_ms` is this node's clock, now."""

    group_id: str
    at_ms: int
    times_ms: list[int]
    lag: list[float | None]
    partitions: list[PartitionLagHistory]


class ConsumersAnswer(Struct, frozen=True, kw_only=True):
    """What groups have committed is as it was before, if `metadata_silent_since_ms` says that the metadata store does
    not answer."""

    topic: str
    groups: list[TopicConsumer]
    next: str | None = None
    metadata_silent_since_ms: int | None = None
