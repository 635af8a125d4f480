"""The names of stored objects: they sort by offset, and the epoch keeps a deposed leader off its successor's keys."""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID

_SEGMENT = re.compile(
    r"segments/(?P<topic>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/(?P<partition>\d{5,10})"
    r"/(?P<base_offset>\d{20})-(?P<epoch>\d{8,10})-(?P<unique>[0-9a-f]{32})\.strm",
    re.ASCII,
)

SEGMENTS_PREFIX = "segments/"


class SegmentKey(NamedTuple):
    """What a segment's key says about it."""

    topic_id: UUID
    partition: int
    base_offset: int
    epoch: int
    unique: UUID


def segment_prefix(topic_id: UUID, partition: int | None = None) -> str:
    """What the keys of a topic's segments, or of one of its partitions', start with."""
    topic = f"{SEGMENTS_PREFIX}{topic_id}/"
    return topic if partition is None else f"{topic}{partition:05d}/"


def segment_key(topic_id: UUID, partition: int, base_offset: int, epoch: int, unique: UUID) -> str:
    """A key of its own for every attempt: `unique` is new each time, so an upload never meets another's object."""
    return f"{segment_prefix(topic_id, partition)}{base_offset:020d}-{epoch:08d}-{unique.hex}.strm"


def parse_segment_key(key: str) -> SegmentKey | None:
    """The parts of a segment's key; None for any other object, which is not ours to judge."""
    match = _SEGMENT.fullmatch(key)
    if match is None:
        return None
    parsed = SegmentKey(
        UUID(match["topic"]),
        int(match["partition"]),
        int(match["base_offset"]),
        int(match["epoch"]),
        UUID(match["unique"]),
    )
    # Only what `segment_key` writes: a number with needless zeros would be a second name for the same segment.
    return parsed if segment_key(*parsed) == key else None
