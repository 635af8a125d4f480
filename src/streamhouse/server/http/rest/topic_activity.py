"""What goes on in each topic, over REST: how much it holds, how fast it is written and read, when last, by how many."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from streamhouse.model.errors import MetadataUnavailable
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.runtime.watched import Watched
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.paging import page
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.sampler import Look, Sampler
from streamhouse.wire.http.rest import activity as api
from streamhouse.wire.http.rest.paging import PageQuery

_PATIENCE_MS = 2_000
_EXAMPLE = api.TopicActivityAnswer(
    at_ms=1_767_225_600_000,
    topics=[
        api.TopicActivity(
            name="orders",
            partition_count=6,
            records=1_200_000,
            stored_bytes=600_000_000,
            written_per_s=250.5,
            read_per_s=480.0,
            last_write_ms=1_767_225_590_000,
            groups=2,
        )
    ],
    without=[],
)


def add_topic_activity(rest: Rest, context: DoorContext, sampler: Sampler, tasks: TaskGroup) -> None:
    rest.route(
        "GET",
        f"{API}/topic-activity",
        _Activity(context, sampler, tasks).all,
        summary="How much each topic holds, and how fast it is written and read",
        description="Made to be asked every few seconds: it is worked out once for all who ask, and what is stored is "
        "up to ten seconds old.",
        tag="topics",
        query=PageQuery,
        answer=api.TopicActivityAnswer,
        answer_example=_EXAMPLE,
        errors=(MetadataUnavailable,),
    )


class _Counts(NamedTuple):
    """By topic. `groups` are None while nobody can say."""

    look: Look
    records: Mapping[UUID, int]
    groups: Mapping[UUID, int] | None


class _Activity:
    def __init__(self, context: DoorContext, sampler: Sampler, tasks: TaskGroup) -> None:
        self._topics = context.broker.topics
        self._names = Watched(self._topics.refresh, context.broker.clock, tasks, "topics", patience_ms=_PATIENCE_MS)
        self._sampler = sampler
        self._counted: _Counts | None = None

    async def all(self, call: Call) -> api.TopicActivityAnswer:
        query: PageQuery = call.query
        _, look, stored = await asyncio.gather(self._names.look(), self._sampler.look(), self._sampler.stored_topics())
        counts = self._counts(look)
        growth = self._sampler.growth
        topics, following = page(
            (topic for topic in self._topics if topic.name > query.after), query.limit, lambda topic: topic.name
        )
        answers: list[api.TopicActivity] = []
        for topic in topics:
            topic_id = topic.topic_id
            kept = None if stored is None else stored.get(topic_id)
            newest_ms = None if kept is None else min(kept.newest_ms, look.at_ms)
            answers.append(
                api.TopicActivity(
                    name=topic.name,
                    partition_count=topic.partition_count,
                    records=counts.records.get(topic_id, 0),
                    stored_bytes=None if stored is None else 0 if kept is None else kept.size.size_bytes,
                    written_per_s=growth.written_per_s(topic_id),
                    read_per_s=growth.read_per_s(topic_id),
                    last_write_ms=growth.last_write_ms.get(topic_id, newest_ms),
                    groups=None if counts.groups is None else counts.groups.get(topic_id, 0),
                )
            )
        silence = self._names.silence
        return api.TopicActivityAnswer(
            at_ms=look.at_ms,
            topics=answers,
            without=list(look.missing),
            next=following,
            metadata_silent_since_ms=None if silence is None else silence.since_ms,
        )

    def _counts(self, look: Look) -> _Counts:
        """Once for each look, however many ask."""
        if self._counted is None or self._counted.look is not look:
            self._counted = _Counts(look, _records(look), _groups(look))
        return self._counted


def _records(look: Look) -> Counter[UUID]:
    records: Counter[UUID] = Counter()
    for placement in look.state.placements:
        partition = placement.partition
        records[partition.topic_id] += max(0, look.ends.get(partition, 0) - placement.log_start_offset)
    return records


def _groups(look: Look) -> dict[UUID, int] | None:
    if look.positions is None:
        return None
    readers: defaultdict[UUID, set[str]] = defaultdict(set)
    for position in look.positions:
        readers[position.partition.topic_id].add(position.group_id)
    return {topic_id: len(groups) for topic_id, groups in readers.items()}
