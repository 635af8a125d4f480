"""Topic descriptors: small JSON objects in the bucket from which a topic's name and configs can be read back.

The metadata store is what counts. These are for the day when it is lost and the bucket is not."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID, uuid5

import msgspec

from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptData, Unsupported
from streamhouse.model.topic import Topic

FORMAT = 1


class TopicDescriptor(NamedTuple):
    """Versions of a topic's descriptor count up from 1."""

    topic: Topic
    version: int


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON."""

    format: int
    version: int
    topic_id: UUID
    name: str
    partition_count: int
    config: dict[str, str]
    created_at_ms: int


def content_id(topic: Topic) -> UUID:
    """The same for all descriptors that say the same of a topic, whatever their versions."""
    return uuid5(topic.topic_id, encode_descriptor(TopicDescriptor(topic, 0)).decode())


def encode_descriptor(descriptor: TopicDescriptor) -> bytes:
    topic, version = descriptor
    stored = _Stored(
        format=FORMAT,
        version=version,
        topic_id=topic.topic_id,
        name=topic.name,
        partition_count=topic.partition_count,
        config=dict(topic.config),
        created_at_ms=topic.created_at_ms,
    )
    return msgspec.json.format(msgspec.json.encode(stored, order="deterministic"), indent=1)


def decode_descriptor(data: Buffer) -> TopicDescriptor:
    try:
        stored = msgspec.json.decode(data, type=_Stored)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise CorruptData(f"a topic descriptor cannot be read: {problem}") from None
    if stored.format != FORMAT:
        raise Unsupported(f"topic descriptors of format {stored.format} are not known here", hint="upgrade streamhouse")
    topic = Topic(
        name=stored.name,
        topic_id=stored.topic_id,
        partition_count=stored.partition_count,
        config=stored.config,
        created_at_ms=stored.created_at_ms,
    )
    return TopicDescriptor(topic, stored.version)
