"""What goes on in each topic, over REST: how much it holds, how fast it is written and read, when last, by how many."""

from __future__ import annotations

from collections import Counter, defaultdict
from uuid import UUID

from streamhouse.broker.topics import Topics
from streamhouse.model.errors import MetadataUnavailable
from streamhouse.server.http.rest.paging import page
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.sampler import Look, Sampler
from streamhouse.wire.http.rest import activity as api
from streamhouse.wire.http.rest.paging import PageQuery

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


def add_topic_activity(rest: Rest, topics: Topics, sampler: Sampler) -> None:
    rest.route(
        "GET",
        f"{API}/topic-activity",
        _Activity(topics, sampler).all,
        summary="How much each topic holds, and how fast it is written and read",
        description="Made to be asked every few seconds: it is worked out once for all who ask, and what is stored is "
        "up to ten seconds old.",
        tag="topics",
        query=PageQuery,
        answer=api.TopicActivityAnswer,
        answer_example=_EXAMPLE,
        errors=(MetadataUnavailable,),
    )


class _Activity:
    def __init__(self, topics: Topics, sampler: Sampler) -> None:
        self._topics = topics
        self._sampler = sampler

    async def all(self, call: Call) -> api.TopicActivityAnswer:
        query: PageQuery = call.query
        await self._topics.refresh()
        look = await self._sampler.look()
        stored = await self._sampler.stored_topics()
        records = _records(look)
        readers = _readers(look)
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
                    records=records[topic_id],
                    stored_bytes=None if stored is None else 0 if kept is None else kept.size.size_bytes,
                    written_per_s=growth.written_per_s(topic_id),
                    read_per_s=growth.read_per_s(topic_id),
                    last_write_ms=growth.last_write_ms.get(topic_id, newest_ms),
                    groups=None if readers is None else len(readers.get(topic_id, ())),
                )
            )
        return api.TopicActivityAnswer(at_ms=look.at_ms, topics=answers, without=list(look.missing), next=following)


def _records(look: Look) -> Counter[UUID]:
    records: Counter[UUID] = Counter()
    for placement in look.state.placements:
        partition = placement.partition
        records[partition.topic_id] += max(0, look.ends.get(partition, 0) - placement.log_start_offset)
    return records


def _readers(look: Look) -> dict[UUID, set[str]] | None:
    if look.positions is None:
        return None
    readers: defaultdict[UUID, set[str]] = defaultdict(set)
    for position in look.positions:
        readers[position.partition.topic_id].add(position.group_id)
    return readers
