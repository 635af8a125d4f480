"""The REST API's messages about consumer groups, and about the members that a node keeps for callers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict

from streamhouse.format.rows import Record
from streamhouse.wire.http.rest.records import (
    MAX_BYTES,
    MAX_RECORDS,
    MAX_WAIT_MS,
    Offset,
    Partition,
    RecordAnswer,
    ShowQuery,
    Time,
)
from streamhouse.wire.http.rest.topics import TopicName

Timestamp = Annotated[Time, Meta(description="Milliseconds since 1970")]

MAX_IDLE_MS = 3_600_000
MAX_TOPICS = 100
MAX_OFFSETS = 10_000


class PartitionRef(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    topic: TopicName
    partition: Partition


class PartitionOffset(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    topic: TopicName
    partition: Partition
    offset: Annotated[Offset, Meta(description="The next one to be read")]


class GroupSummary(Struct, frozen=True, kw_only=True):
    """`type` is the rebalance protocol: classic or consumer. `coordinator` is the agent that looks after the group,
    null while none does; the `state` is unknown while nobody tells it."""

    group_id: str
    state: str
    type: str
    coordinator: str | None


class GroupsAnswer(Struct, frozen=True, kw_only=True):
    """By name. Which groups there are, and who looks after them, is as it was before, if `metadata_silent_since_ms`
    says that the metadata store does not answer."""

    groups: list[GroupSummary]
    next: Annotated[str | None, Meta(description="Ask again with `after` set to this; null at the end")] = None
    metadata_silent_since_ms: int | None = None


class MemberDescription(Struct, frozen=True, kw_only=True):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[PartitionRef]


class PartitionProgress(Struct, frozen=True, kw_only=True):
    """How far a group is: null where nothing was committed, the topic is gone, or nobody can say where the log ends, as
    the agent that may have more of it is away and was never heard."""

    topic: str
    partition: int
    committed_offset: int | None
    log_start_offset: int | None
    end_offset: int | None
    lag: int | None
    member_id: str | None


class GroupDescription(Struct, frozen=True, kw_only=True):
    """`lag` is the sum over the partitions: null if it is not known of one that may have records. Where those begin and
    end is as it was before, if `metadata_silent_since_ms` says that the metadata store does not answer."""

    group_id: str
    state: str
    type: str
    assignor: str
    lag: int | None
    members: list[MemberDescription]
    partitions: list[PartitionProgress]
    metadata_silent_since_ms: int | None = None


MEMBER_SECRET = "Streamhouse-Member-Secret"
"""The header with which callers show that a member is theirs: its id alone can be read by everybody."""


class JoinRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`reset` says where a partition is read from of which the group committed nothing. A member that asks for nothing
    for `max_idle_ms` is taken out of the group."""

    topics: Annotated[list[TopicName], Meta(min_length=1, max_length=MAX_TOPICS)]
    reset: Literal["earliest", "latest", "error"] = "earliest"
    client_id: Annotated[str, Meta(max_length=128)] = ""
    max_idle_ms: Annotated[int, Meta(ge=1000, le=MAX_IDLE_MS)] = 300_000


class MemberAnswer(Struct, frozen=True, kw_only=True):
    """A member, which lives on the node that it joined at: `agent_id`. What it is assigned comes and goes.
    `member_secret` is told once, to whoever joined."""

    group_id: str
    member_id: str
    member_secret: str | None = None
    epoch: int
    assignment: list[PartitionRef]
    max_idle_ms: int
    agent_id: str


class PollRequest(ShowQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_RECORDS, description="How many records at most")] = 500
    max_bytes: Annotated[int, Meta(ge=1, le=MAX_BYTES, description="How much of them, about; at least one")] = 2**20
    max_wait_ms: Annotated[int, Meta(ge=0, le=MAX_WAIT_MS, description="How long to wait for the first")] = 500

    def show_record(self, topic: str, partition: int, record: Record) -> GroupRecord:
        return GroupRecord(topic=topic, **asdict(self.show(partition, record)))


class GroupRecord(RecordAnswer, frozen=True, kw_only=True):
    """A stored record, and its topic."""

    topic: str


class PollAnswer(Struct, frozen=True, kw_only=True):
    """The next records, in offset order within a partition; none if nothing came in time. `epoch` and `assignment` are
    as of now: they change when members come and go."""

    records: list[GroupRecord]
    epoch: int
    assignment: list[PartitionRef]


class CommitRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without offsets: behind everything that polls have returned."""

    offsets: Annotated[list[PartitionOffset], Meta(max_length=MAX_OFFSETS)] | None = None


class SeekRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Give one of the two: places in partitions that the member is assigned, or a time for all of them. Nothing is
    committed by it."""

    offsets: Annotated[list[PartitionOffset], Meta(max_length=MAX_OFFSETS)] | None = None
    timestamp_ms: Timestamp | None = None


class SeekAnswer(Struct, frozen=True, kw_only=True):
    offsets: list[PartitionOffset]


class ResetRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`to` says where to; for offset, time and shift the field of that meaning says which. Without topics: all that the
    group committed offsets of. Offsets stay within what the log holds. The group must have no members."""

    to: Literal["earliest", "latest", "offset", "time", "shift"]
    topics: Annotated[list[TopicName], Meta(max_length=MAX_TOPICS)] = []
    offset: Offset | None = None
    timestamp_ms: Timestamp | None = None
    shift_by: Annotated[int, Meta(ge=-(2**63) + 1, le=2**63 - 1)] | None = None
    dry_run: Annotated[bool, Meta(description="Say what would change and change nothing")] = False


class OffsetMove(Struct, frozen=True, kw_only=True):
    """`new_offset` is null where there was nothing to shift from."""

    topic: str
    partition: int
    old_offset: int | None
    new_offset: int | None


class ResetAnswer(Struct, frozen=True, kw_only=True):
    group_id: str
    dry_run: bool
    partitions: list[OffsetMove]
