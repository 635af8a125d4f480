"""The logs that a job works on, as the node describes them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from streamhouse.client.planning import PlanningClient
from streamhouse.format.compression import Codec
from streamhouse.model.errors import NotFound
from streamhouse.model.topic import LogConfig, parse_log_config
from streamhouse.spark.jobs.objects import Objects
from streamhouse.spark.jobs.rewrite import RewritePointer, Source
from streamhouse.wire.http.planning import SegmentInfo, TopicAnswer

# What a topic's compression.type stands for where records are encoded again; producers' own choice is not one of them.
_CODECS = {"uncompressed": Codec.NONE, "gzip": Codec.GZIP, "snappy": Codec.SNAPPY, "zstd": Codec.ZSTD}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLog:
    """One partition: its segments from the oldest on, by offset and without gaps. `generation`: of what is to take the
    place of some of them, or 0 where nothing is."""

    topic: str
    topic_id: UUID
    partition: int
    config: LogConfig
    log_start_offset: int
    segments: tuple[SegmentInfo, ...]
    generation: int = 0

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"

    @property
    def codec(self) -> Codec:
        return _CODECS.get(self.config.compression, Codec.LZ4)

    def rewriting(
        self, run: range, kept: dict[int, bytes | None], *, objects: Objects, target_bytes: int
    ) -> RewritePointer:
        """A run of its segments; `kept` has the bits of those that lose records."""
        segments = self.segments[run.start : run.stop]
        return RewritePointer(
            objects=objects,
            topic_id=self.topic_id,
            partition=self.partition,
            base_offset=segments[0].base_offset,
            end_offset=segments[-1].end_offset,
            epoch=segments[-1].epoch,
            log_start_offset=self.log_start_offset,
            generation=self.generation,
            codec=self.codec,
            target_bytes=target_bytes,
            sources=tuple(
                Source(key=segment.object_key, record_count=segment.record_count, kept=kept.get(index))
                for index, segment in zip(run, segments, strict=True)
            ),
        )


def find_topics(client: PlanningClient, names: Collection[str]) -> list[TopicAnswer]:
    """Those named, which must exist, or all of them."""
    topics = {topic.name: topic for topic in client.topics()}
    for name in names:
        if name not in topics:
            raise NotFound(f"there is no topic {name!r}", hint="`streamhouse topic list` shows those that there are")
    return [topic for name, topic in sorted(topics.items()) if not names or name in names]


def stored_log(client: PlanningClient, topic: TopicAnswer, partition: int, *, to_replace: bool = False) -> StoredLog:
    answer = client.segments(topic.name, partition, to_replace=to_replace)
    return StoredLog(
        topic=topic.name,
        topic_id=answer.topic_id,
        partition=partition,
        config=parse_log_config(topic.config),
        log_start_offset=answer.log_start_offset,
        segments=tuple(answer.segments),
        generation=answer.generation,
    )
