"""Compaction by hand, through the planning API: what a job does, with the records to keep named by the test."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Protocol
from uuid import uuid4

from log_parts.compaction import rewritten, row_of
from streamhouse.client.planning import PlanningClient
from streamhouse.model.buffer import Buffer
from streamhouse.model.names import TopicPartition
from streamhouse.objects.blocking import blocking_store
from streamhouse.wire.http.planning import ReplaceRequest, SegmentInfo


class Objects(Protocol):
    def get(self, key: str) -> bytes: ...

    def create(self, key: str, parts: Sequence[Buffer]) -> None: ...


def prepare(
    client: PlanningClient,
    topic: str,
    segments: Sequence[SegmentInfo],
    kept: Collection[int],
    *,
    partition: int = 0,
    objects: Objects | None = None,
    **sizes: int,
) -> ReplaceRequest:
    """Neighbouring segments as one, with these offsets alone: in the object store, not registered yet. `objects` must
    be given where they are not in a directory."""
    objects = objects or blocking_store(client.cluster().objects.url)
    epoch = max(segment.epoch for segment in segments)
    encoded = rewritten(
        [objects.get(segment.object_key) for segment in segments],
        lambda record: record.offset in kept,
        epoch=epoch,
        **sizes,
    )
    topic_id = client.segments(topic, partition).topic_id
    row = row_of(TopicPartition(topic_id, partition), encoded, segments[0].base_offset, epoch)
    objects.create(row.object_key, encoded.parts)
    return ReplaceRequest(
        topic=topic,
        partition=partition,
        commit_id=uuid4(),
        removed=[segment.object_key for segment in segments],
        added=[SegmentInfo(**asdict(row))],
    )
