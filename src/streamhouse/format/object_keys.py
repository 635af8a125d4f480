"""The names of stored objects: segments sort by offset, WAL objects by time, staging objects by sink and batch, topic
descriptors by version, and no two writers of different content ever share one."""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID

_SEGMENT = re.compile(
    r"segments/(?P<topic>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/(?P<partition>\d{5,10})"
    r"/(?P<base_offset>\d{20})-(?P<epoch>\d{8,10})-(?P<unique>[0-9a-f]{32})\.strm",
    re.ASCII,
)

_WAL_OBJECT = re.compile(
    r"wal/(?P<agent>[A-Za-z0-9._-]{1,128})/(?P<sealed_at_ms>\d{15})-(?P<unique>[0-9a-f]{32})\.shwo", re.ASCII
)

_STAGED = re.compile(
    r"staging/(?P<sink>[A-Za-z0-9._-]{1,128})/(?P<batch>\d{20})-(?:\d{5,10}-[0-9a-f]{32}\.stage|[0-9a-f]{32}\.manifest)",
    re.ASCII,
)

_TOPIC_DESCRIPTOR = re.compile(
    r"topics/(?P<topic>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/(?P<version>\d{8,10})-(?P<unique>[0-9a-f]{32})\.json",
    re.ASCII,
)

_STAGED_SUFFIX = ".stage"
_MANIFEST_SUFFIX = ".manifest"
SEGMENTS_PREFIX = "segments/"
WAL_PREFIX = "wal/"
STAGING_PREFIX = "staging/"
TOPICS_PREFIX = "topics/"
PROBE_PREFIX = "probe/"


class SegmentKey(NamedTuple):
    """What a segment's key says about it."""

    topic_id: UUID
    partition: int
    base_offset: int
    epoch: int
    unique: UUID


class WalObjectKey(NamedTuple):
    """What a WAL object's key says about it."""

    agent_id: str
    sealed_at_ms: int
    unique: UUID


class StagingKey(NamedTuple):
    """Whose batch an object was staged for, or whose batch it is the manifest of."""

    sink_id: str
    batch_id: int


class TopicDescriptorKey(NamedTuple):
    """What a topic descriptor's key says about it; of several, the one that sorts last counts."""

    topic_id: UUID
    version: int
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


def wal_object_key(agent_id: str, sealed_at_ms: int, unique: UUID) -> str:
    """A key of its own for every object. The epochs are inside, one for each range; `unique` keeps a deposed process
    with the same agent id off its successor's keys."""
    return f"{WAL_PREFIX}{agent_id}/{sealed_at_ms:015d}-{unique.hex}.shwo"


def probe_key(agent_id: str) -> str:
    """What an agent writes to find out whether it can; there is no more than one of each."""
    return f"{PROBE_PREFIX}{agent_id}"


def parse_wal_object_key(key: str) -> WalObjectKey | None:
    """The parts of a WAL object's key; None for any other object, which is not ours to judge."""
    match = _WAL_OBJECT.fullmatch(key)
    if match is None or match["agent"] in (".", ".."):
        return None
    return WalObjectKey(match["agent"], int(match["sealed_at_ms"]), UUID(match["unique"]))


def staging_prefix(sink_id: str) -> str:
    """What the keys of all that a sink has staged start with. Its batches are not apart: each would leave a directory
    behind, where objects are files."""
    return f"{STAGING_PREFIX}{sink_id}/"


def staged_object_key(sink_id: str, batch_id: int, task: int, unique: UUID) -> str:
    """A key of its own for every object of every try of a task."""
    return f"{staging_prefix(sink_id)}{batch_id:020d}-{task:05d}-{unique.hex}{_STAGED_SUFFIX}"


def manifest_key(sink_id: str, batch_id: int, unique: UUID) -> str:
    """Of the list of objects that one try brings."""
    return f"{staging_prefix(sink_id)}{batch_id:020d}-{unique.hex}{_MANIFEST_SUFFIX}"


def parse_staging_key(key: str) -> StagingKey | None:
    """The sink and batch of a staged object or a manifest; None for any other object."""
    match = _STAGED.fullmatch(key)
    if match is None or match["sink"] in (".", "..") or int(match["batch"]) >= 2**63:
        return None
    return StagingKey(match["sink"], int(match["batch"]))


def parse_staged_object_key(key: str) -> StagingKey | None:
    """The sink and batch of what a task stages; None for any other object, also for a manifest, which nodes write."""
    return parse_staging_key(key) if key.endswith(_STAGED_SUFFIX) else None


def manifest_unique(key: str) -> UUID:
    """The part of a manifest's key that is its own."""
    return UUID(key.removesuffix(_MANIFEST_SUFFIX).rpartition("-")[2])


def topic_descriptor_prefix(topic_id: UUID) -> str:
    return f"{TOPICS_PREFIX}{topic_id}/"


def topic_descriptor_key(topic_id: UUID, version: int, unique: UUID) -> str:
    """`unique` follows from the content, so that a key tells whether it is what somebody else would write."""
    return f"{topic_descriptor_prefix(topic_id)}{version:08d}-{unique.hex}.json"


def parse_topic_descriptor_key(key: str) -> TopicDescriptorKey | None:
    """The parts of a topic descriptor's key; None for any other object."""
    match = _TOPIC_DESCRIPTOR.fullmatch(key)
    if match is None:
        return None
    parsed = TopicDescriptorKey(UUID(match["topic"]), int(match["version"]), UUID(match["unique"]))
    return parsed if topic_descriptor_key(*parsed) == key else None
