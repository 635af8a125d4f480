"""The segments of one topic, as the metadata store has them, looked up there or by a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from streamhouse.cli.console import print_json, print_line, print_table
from streamhouse.cli.metadata_store import with_metadata
from streamhouse.cli.record_format import show_timestamp
from streamhouse.cli.suggestion import no_such_topic
from streamhouse.cli.where import Place
from streamhouse.client.rest import RestClient
from streamhouse.metadata.store import MetadataStore, SegmentRow
from streamhouse.model.errors import NotFound
from streamhouse.model.names import TopicPartition
from streamhouse.wire.http.rest.topics import SegmentAnswer


class PlacedSegment(NamedTuple):
    partition: int
    row: SegmentRow | SegmentAnswer


def find_segments(place: Place, topic: str, partitions: Sequence[int]) -> list[PlacedSegment]:
    """Of these partitions, or of all; NotFound says which topics or partitions there are."""
    if place.endpoint:
        with RestClient(place.endpoint) as client:
            wanted = _wanted(topic, partitions, client.topics())
            return [PlacedSegment(number, row) for number in wanted for row in client.segments(topic, number)]

    async def work(store: MetadataStore) -> list[PlacedSegment]:
        topics = {found.name: found for found in await store.list_topics()}
        wanted = _wanted(topic, partitions, {name: found.partition_count for name, found in topics.items()})
        held = await store.load_segments([TopicPartition(topics[topic].topic_id, number) for number in wanted])
        return [PlacedSegment(number, row) for number, rows in zip(wanted, held, strict=True) for row in rows]

    return with_metadata(place.settings, work)


def _wanted(topic: str, partitions: Sequence[int], counts: Mapping[str, int]) -> list[int]:
    if topic not in counts:
        raise no_such_topic(topic, counts)
    for number in partitions:
        if number >= counts[topic]:
            raise NotFound(f"{topic} has no partition {number}", hint=f"it has 0 to {counts[topic] - 1}")
    return sorted(set(partitions)) or list(range(counts[topic]))


def print_segments(topic: str, segments: Sequence[PlacedSegment], *, as_json: bool) -> None:
    if as_json:
        print_json([_as_json(topic, segment) for segment in segments])
    elif not segments:
        print_line(f"no segments of {topic} yet; a node uploads one when it is full or old enough")
    else:
        print_table(
            ("partition", "first offset", "last offset", "records", "epoch", "bytes", "uploaded", "key"),
            [
                (
                    partition,
                    row.base_offset,
                    row.end_offset - 1,
                    row.record_count,
                    row.epoch,
                    row.size_bytes,
                    show_timestamp(row.created_at_ms),
                    row.object_key,
                )
                for partition, row in segments
            ],
        )


def _as_json(topic: str, segment: PlacedSegment) -> dict[str, object]:
    row = segment.row
    return {
        "topic": topic,
        "partition": segment.partition,
        "base_offset": row.base_offset,
        "end_offset": row.end_offset,
        "record_count": row.record_count,
        "min_timestamp_ms": row.min_timestamp_ms,
        "max_timestamp_ms": row.max_timestamp_ms,
        "epoch": row.epoch,
        "created_at_ms": row.created_at_ms,
        "size_bytes": row.size_bytes,
        "key": row.object_key,
    }
