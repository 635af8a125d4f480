"""Topics over REST: make, list, describe, change, delete."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from msgspec import UNSET

from streamhouse.broker.topics import LONGEST_WAIT_MS, Topics
from streamhouse.model.config_units import without_units
from streamhouse.model.errors import (
    AlreadyExists,
    InvalidConfig,
    InvalidInput,
    InvalidName,
    InvalidPartitions,
    NotFound,
    PolicyViolation,
)
from streamhouse.model.topic import CONFIG_KEYS, PARTITIONS_FIXED, Topic, unknown_config
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.paging import page
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.wire.http.rest import topics as api
from streamhouse.wire.http.rest.paging import PageQuery

TAG = "topics"
RETENTION = "retention.ms"
CLEANUP = "cleanup.policy"

EXAMPLE = api.TopicAnswer(
    name="orders",
    topic_id=UUID("3f0b6a50-8d0f-4b2e-9c1d-5f6a7b8c9d0e"),
    partition_count=6,
    retention_ms=86_400_000,
    cleanup_policy="delete",
    config={RETENTION: "86400000"},
    effective_config={name: key.default for name, key in CONFIG_KEYS.items()} | {RETENTION: "86400000"},
    created_at_ms=1_767_225_600_000,
)


def add_topics(rest: Rest, context: DoorContext) -> None:
    topics = _TopicRoutes(context.broker.topics)
    one, every = f"{API}/topics/{{topic}}", f"{API}/topics"
    rest.route(
        "POST",
        every,
        topics.create,
        summary="Create a topic",
        tag=TAG,
        body=api.NewTopic,
        body_example=api.NewTopic(name="orders", partition_count=6, retention_ms=86_400_000),
        answer=api.TopicAnswer,
        answer_example=EXAMPLE,
        status=201,
        errors=(InvalidName, InvalidConfig, AlreadyExists),
    )
    rest.route(
        "GET",
        every,
        topics.all,
        summary="List the topics",
        tag=TAG,
        query=PageQuery,
        answer=api.TopicsAnswer,
        answer_example=api.TopicsAnswer(topics=[EXAMPLE]),
    )
    rest.route(
        "GET",
        one,
        topics.describe,
        summary="Describe a topic",
        tag=TAG,
        answer=api.TopicAnswer,
        answer_example=EXAMPLE,
        errors=(NotFound,),
    )
    rest.route(
        "PATCH",
        one,
        topics.change,
        summary="Change a topic's configuration, or add partitions",
        tag=TAG,
        body=api.TopicChange,
        body_example=api.TopicChange(retention_ms=None, config={"segment.ms": 10_000}),
        answer=api.TopicAnswer,
        answer_example=EXAMPLE,
        errors=(InvalidConfig, InvalidPartitions, PolicyViolation, NotFound),
    )
    rest.route("DELETE", one, topics.delete, summary="Delete a topic and its records", tag=TAG, errors=(NotFound,))


class _TopicRoutes:
    """Every answer is as the metadata store has it now: another node may have changed it a moment ago."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    async def create(self, call: Call) -> api.TopicAnswer:
        asked: api.NewTopic = call.body
        config = _with_short_forms(
            {name: str(value) for name, value in asked.config.items()},
            {RETENTION: asked.retention_ms, CLEANUP: asked.cleanup_policy},
        )
        given = without_units({name: value for name, value in config.items() if value is not None})
        return self._answer(
            await self._topics.create(asked.name, asked.partition_count, given, wait_ms=LONGEST_WAIT_MS)
        )

    async def all(self, call: Call) -> api.TopicsAnswer:
        asked: PageQuery = call.query
        await self._topics.refresh()
        topics, following = page(
            (topic for topic in self._topics if topic.name > asked.after), asked.limit, lambda topic: topic.name
        )
        return api.TopicsAnswer(topics=[self._answer(topic) for topic in topics], next=following)

    async def describe(self, call: Call) -> api.TopicAnswer:
        return self._answer(await self._find(call))

    async def change(self, call: Call) -> api.TopicAnswer:
        asked: api.TopicChange = call.body
        short = {RETENTION: asked.retention_ms, CLEANUP: asked.cleanup_policy}
        changes = _with_short_forms(
            {name: None if value is None else str(value) for name, value in asked.config.items()},
            {name: value for name, value in short.items() if value is not UNSET},
        )
        topic = await self._find(call)
        wanted = asked.partition_count
        grows = wanted is not None and wanted != topic.partition_count
        if wanted is not None and grows and PARTITIONS_FIXED not in changes:
            await self._topics.grow(topic, wanted, validate_only=True)  # what is refused changes nothing at all
        if changes or not grows:
            await self._topics.change_config(topic, lambda config: _changed(config, changes))
        if wanted is not None and grows:
            await self._topics.grow(topic, wanted, wait_ms=LONGEST_WAIT_MS)
        return self._answer(self._topics.get(topic.name))

    async def delete(self, call: Call) -> None:
        await self._topics.delete(await self._find(call))

    async def _find(self, call: Call) -> Topic:
        await self._topics.refresh()
        return self._topics.get(call.path["topic"])

    def _answer(self, topic: Topic) -> api.TopicAnswer:
        effective = self._topics.told_config_of(topic)
        return api.TopicAnswer(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_count=topic.partition_count,
            retention_ms=int(effective[RETENTION]),
            cleanup_policy=effective[CLEANUP],
            config=dict(topic.config),
            effective_config=effective,
            created_at_ms=topic.created_at_ms,
        )


def _with_short_forms(config: Mapping[str, str | None], short: Mapping[str, object]) -> dict[str, str | None]:
    """Of two values for one config nobody could say which is meant."""
    for name, value in short.items():
        if value is not None and name in config:
            raise InvalidInput(f"{name} is given twice", hint="give it once: by its own field, or in `config`")
    return {**{name: None if value is None else str(value) for name, value in short.items()}, **config}


def _changed(config: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    unknown = [name for name in changes if name not in CONFIG_KEYS]
    if unknown:  # which to set to null would otherwise go unnoticed
        raise unknown_config(unknown[0])
    given = without_units({name: value for name, value in changes.items() if value is not None})
    return {name: value for name, value in {**config, **changes, **given}.items() if value is not None}
