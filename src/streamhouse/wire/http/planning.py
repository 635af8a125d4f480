"""The planning API's messages: what Spark asks of a node before it reads from, and after it wrote to, the object store.

Everything is JSON in POST bodies and answers, except the tail and objects, which are bytes. Offset ranges are
[start, end). Errors are {"error": kind, "message": …, "hint": …}, where kind names one of the error tree."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

PREFIX = "/v1/planning"

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""JSON has larger numbers than what keeps and carries offsets and times."""

EARLIEST = -2
LATEST = -1
"""Times of `OffsetQuestion` that are none, with Kafka's numbers."""


class ObjectsLocation(Struct, frozen=True, kw_only=True):
    """Where the objects are, without the keys to them: s3://bucket/prefix or file:///directory."""

    url: str
    endpoint: str = ""
    region: str = ""
    path_style: bool = True


class ClusterAnswer(Struct, frozen=True, kw_only=True):
    """GET /cluster. `kafka` are the addresses at which Kafka clients begin."""

    cluster_id: str
    kafka: list[str]
    objects: ObjectsLocation


class TopicAnswer(Struct, frozen=True, kw_only=True):
    """One of GET /topics, by name; `config` is the effective one."""

    name: str
    topic_id: UUID
    partition_count: int
    config: dict[str, str]


class PartitionOffset(Struct, frozen=True, kw_only=True):
    topic: str
    partition: Int64
    offset: Int64


class OffsetQuestion(Struct, frozen=True, kw_only=True):
    """EARLIEST, LATEST (the high watermark), or a time: the first record at or after it. `topic_id`, here and below:
    only of that topic, and not of one that was made under its name after it was deleted."""

    topic: str
    partition: Int64
    timestamp_ms: Int64
    topic_id: UUID | None = None


class OffsetsRequest(Struct, frozen=True, kw_only=True):
    """POST /offsets."""

    questions: list[OffsetQuestion]


class OffsetsAnswer(Struct, frozen=True, kw_only=True):
    """In the order asked; None where all records are older than the time."""

    offsets: list[int | None]


class RangeQuestion(Struct, frozen=True, kw_only=True):
    """Timestamps, in milliseconds and both included, only leave out blocks that have none in between."""

    topic: str
    partition: Int64
    start: Int64
    end: Int64
    min_timestamp_ms: Int64 | None = None
    max_timestamp_ms: Int64 | None = None
    topic_id: UUID | None = None


class RangesRequest(Struct, frozen=True, kw_only=True):
    """POST /ranges. No piece is larger than `piece_bytes` unless a single block is. `presign`: with URLs to read at."""

    questions: list[RangeQuestion]
    piece_bytes: Int64 = 16 * 2**20
    presign: bool = False


class Piece(Struct, frozen=True, kw_only=True):
    """Whole blocks of one segment, bytes [start_byte, end_byte) of the object; of their records, those with offsets in
    [start, end) are asked for. `record_count` is of the whole blocks."""

    key: str
    start_byte: int
    end_byte: int
    start: int
    end: int
    record_count: int
    url: str | None = None


class RangeAnswer(Struct, frozen=True, kw_only=True):
    """The pieces in offset order; what is in no segment yet is the tail, [tail_start, tail_end), empty if they are the
    same. `log_start_offset` tells what of the range has been deleted."""

    log_start_offset: int
    high_watermark: int
    pieces: list[Piece]
    tail_start: int
    tail_end: int
    tail_bytes: int


class RangesAnswer(Struct, frozen=True, kw_only=True):
    ranges: list[RangeAnswer]


class TailRequest(Struct, frozen=True, kw_only=True):
    """POST /tail: whole batches from the one that holds `start` on, up to the high watermark, at least one if there is
    one, else about `max_bytes`; the answer is their bytes."""

    topic: str
    partition: Int64
    start: Int64
    max_bytes: Int64 = 8 * 2**20
    topic_id: UUID | None = None


class SegmentInfo(Struct, frozen=True, kw_only=True):
    """A segment as the metadata store has it."""

    base_offset: int
    end_offset: int
    record_count: int
    size_bytes: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    epoch: int
    object_key: str
    checksum: int
    created_at_ms: int = 0


class SegmentsRequest(Struct, frozen=True, kw_only=True):
    """POST /segments. `to_replace`: with a new generation for what is to take the place of some of them; no segment of
    an older one can be registered any more."""

    topic: str
    partition: Int64
    to_replace: bool = False


class SegmentsAnswer(Struct, frozen=True, kw_only=True):
    """By base offset, without gaps up to `committed_end`. `generation` is 0 if none was asked for."""

    topic_id: UUID
    log_start_offset: int
    committed_end: int
    segments: list[SegmentInfo]
    generation: int = 0


class ReplaceRequest(Struct, frozen=True, kw_only=True):
    """POST /replace: put new segments in the place of neighbouring old ones, all at once. Both must cover the same
    offsets, though the new ones need not have a record at each. Safe to repeat with the same `commit_id`."""

    topic: str
    partition: Int64
    commit_id: UUID
    removed: list[str]
    added: list[SegmentInfo]


class StageRequest(Struct, frozen=True, kw_only=True):
    """POST /stage: URLs to PUT these staging objects at, for executors without keys to the object store."""

    keys: list[str]


class StageAnswer(Struct, frozen=True, kw_only=True):
    urls: list[str]


class StagedRun(Struct, frozen=True, kw_only=True):
    """Whole record batches of one partition, bytes [start_byte, end_byte) of a staging object."""

    topic: str
    partition: Int64
    start_byte: Int64
    end_byte: Int64
    record_count: Int64


class StagedObject(Struct, frozen=True, kw_only=True):
    key: str
    runs: list[StagedRun]


class AdoptRequest(Struct, frozen=True, kw_only=True):
    """POST /adopt: append what was staged, once for each (sink, batch), in the order given. If an earlier try has got
    as far as this, its objects are the ones that count, and these are removed."""

    sink_id: str
    batch_id: Int64
    objects: list[StagedObject]


class AdoptAnswer(Struct, frozen=True, kw_only=True):
    """`is_repeat`: an earlier try's objects are in the log, not these. `record_count` is theirs."""

    is_repeat: bool
    record_count: int


class AbandonRequest(Struct, frozen=True, kw_only=True):
    """POST /abandon: remove staging objects, unless a batch that was begun needs them."""

    keys: list[str]


class PinRequest(Struct, frozen=True, kw_only=True):
    """POST /pin: keep records from these offsets on from retention until `ttl_ms` from now; replaces the pin's earlier
    ones. Without offsets the pin is removed."""

    pin_id: str
    ttl_ms: Int64
    offsets: list[PartitionOffset]


class ErrorAnswer(Struct, frozen=True, kw_only=True):
    error: str
    message: str
    hint: str | None = None
