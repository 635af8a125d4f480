"""What those who watch ask of the metadata store: how much there is in the object store, and how far groups are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from streamhouse.model.names import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSize:
    """Segments that are committed; what they replaced and nobody has removed yet does not count."""

    segment_count: int
    size_bytes: int


NOTHING_STORED = StoredSize(segment_count=0, size_bytes=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPosition:
    """Where a group is in a partition. A commit below 0 is none."""

    group_id: str
    partition: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTopic:
    """What there is of a topic in segments; `newest_ms` is the latest time that a record of them says."""

    size: StoredSize
    newest_ms: int


class TotalsStore(Protocol):
    async def stored_size(self) -> StoredSize:
        """Of all topics together. It reads every segment's row, so keep the answer for a while."""

    async def stored_sizes(self, topic_id: UUID) -> Mapping[int, StoredSize]:
        """By partition; one without segments is left out, and a topic that is gone has none."""

    async def stored_topics(self) -> Mapping[UUID, StoredTopic]:
        """By topic; one without segments is left out. It reads every segment's row, as `stored_size` does."""

    async def list_topic_positions(
        self, topic_id: UUID, group_limit: int, *, after_group: str = ""
    ) -> list[GroupPosition]:
        """In one topic, by group id and partition: all those of so many groups, from the first behind `after_group`."""

    async def list_group_positions(self, limit: int) -> list[GroupPosition]:
        """Of all groups, by group id and partition."""
