"""Keeps a descriptor of each topic in the object store, so that the bucket alone says which topics there are.

The agent that leads a topic's first partition writes it, and who creates a topic does so at once. The metadata store is
ahead by as long as that takes: an object store that is away keeps nobody from creating a topic."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol
from uuid import UUID

from streamhouse.format.object_keys import (
    TopicDescriptorKey,
    parse_topic_descriptor_key,
    topic_descriptor_key,
    topic_descriptor_prefix,
)
from streamhouse.format.topic_descriptor import TopicDescriptor, content_id, encode_descriptor
from streamhouse.model.errors import AlreadyExists, Unavailable
from streamhouse.model.topic import Topic
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.retry import backoff_ms
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)
# How long the maker of a topic waits for its descriptor, which otherwise comes a little later.
_CREATED_WAIT_MS = 1_000


class Descriptors(Protocol):
    """Told of what happened to topics, after the metadata store knows it."""

    async def created(self, topic: Topic) -> None:
        """Returns soon, also when there is no descriptor yet."""

    def changed(self, topic: Topic) -> None: ...

    async def settled(self, topic: Topic) -> None:
        """Waits a little for what is under way for the topic."""

    def deleted(self, topic: Topic) -> None: ...


class NoDescriptors:
    """For topics that nobody would want back."""

    async def created(self, topic: Topic) -> None:
        return

    def changed(self, topic: Topic) -> None:
        return

    async def settled(self, topic: Topic) -> None:
        return

    def deleted(self, topic: Topic) -> None:
        return


class TopicDescriptors:
    def __init__(self, objects: ObjectStore, clock: Clock, *, leads: Callable[[Topic], bool]) -> None:
        """`leads`: whether this node leads a topic's first partition."""
        self._objects = objects
        self._clock = clock
        self._leads = leads
        self._tasks = TaskGroup("descriptors")
        self._described: dict[UUID, Topic] = {}
        self._last: dict[UUID, asyncio.Task[None]] = {}

    async def created(self, topic: Topic) -> None:
        await asyncio.wait([self._start(topic)], timeout=_CREATED_WAIT_MS / 1000)

    def changed(self, topic: Topic) -> None:
        if self._leads(topic):
            self._start(topic)

    async def settled(self, topic: Topic) -> None:
        if (under_way := self._last.get(topic.topic_id)) is not None:
            await asyncio.wait([under_way], timeout=_CREATED_WAIT_MS / 1000)

    def deleted(self, topic: Topic) -> None:
        self._start(topic, is_gone=True)

    def start(self, topics: Callable[[], Iterable[Topic]], *, interval_ms: int, check_ms: int) -> None:
        """Write what is missing, again and again, and look whether what was written is still so, now and then."""
        self._tasks.start(self._keep(topics, interval_ms, check_ms), "keep")

    async def close(self) -> None:
        await self._tasks.cancel()

    async def _keep(self, topics: Callable[[], Iterable[Topic]], interval_ms: int, check_ms: int) -> None:
        checked_at_ms = self._clock.monotonic_ms()
        while True:
            for topic in list(topics()):
                if self._leads(topic) and self._described.get(topic.topic_id) != topic:
                    await asyncio.wait([self._start(topic)])
            await self._clock.sleep_ms(interval_ms)
            if self._clock.monotonic_ms() - checked_at_ms >= check_ms:
                checked_at_ms = self._clock.monotonic_ms()
                self._described.clear()

    def _start(self, topic: Topic, *, is_gone: bool = False) -> asyncio.Task[None]:
        """What is done to one topic's descriptors is done in order."""
        before = self._last.get(topic.topic_id)
        task = self._tasks.start(self._work(topic, is_gone, before), topic.name)
        self._last[topic.topic_id] = task
        return task

    async def _work(self, topic: Topic, is_gone: bool, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            if is_gone:
                await self._remove(topic)
            else:
                await self._write(topic)
        except Unavailable as problem:
            _log.warning("the descriptor of topic %s is left for later: %s", topic.name, problem)
        finally:
            if self._last.get(topic.topic_id) is asyncio.current_task():
                del self._last[topic.topic_id]

    async def _write(self, topic: Topic) -> None:
        found = await self._find(topic.topic_id)
        newest = found[-1] if found else TopicDescriptorKey(topic.topic_id, 0, UUID(int=0))
        unique = content_id(topic)
        if newest.unique != unique:
            if found and not self._leads(topic):
                return  # its leader has been here, and knows better
            newest = TopicDescriptorKey(topic.topic_id, newest.version + 1, unique)
            try:
                content = encode_descriptor(TopicDescriptor(topic, newest.version))
                await self._objects.create(topic_descriptor_key(*newest), [content])
            except AlreadyExists:
                pass  # by whoever says the same
        outdated = [topic_descriptor_key(*key) for key in found if key != newest]
        if outdated:
            await self._objects.delete(outdated)
        self._described[topic.topic_id] = topic

    async def _remove(self, topic: Topic) -> None:
        """Only of a topic that was deleted just now. What a metadata store has never heard of may be what another one
        has lost, and is never removed."""
        self._described.pop(topic.topic_id, None)
        for wait_ms in backoff_ms():
            try:
                found = await self._find(topic.topic_id)
                if found:
                    await self._objects.delete([topic_descriptor_key(*key) for key in found])
                return
            except Unavailable as problem:
                _log.warning("cannot remove the descriptor of topic %s, trying again: %s", topic.name, problem)
                await self._clock.sleep_ms(wait_ms)

    async def _find(self, topic_id: UUID) -> list[TopicDescriptorKey]:
        """Oldest first."""
        listed = [item.key async for item in self._objects.list(topic_descriptor_prefix(topic_id))]
        return sorted(key for key in map(parse_topic_descriptor_key, listed) if key is not None)
