"""The topics of a node: looked up in memory, changed through the metadata store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from uuid import UUID

from streamhouse.broker.topic_descriptors import Descriptors, NoDescriptors
from streamhouse.core.record_rules import RecordRules
from streamhouse.log.engine import LogEngine
from streamhouse.log.leader import PartitionLeader
from streamhouse.metadata.store import TopicStore
from streamhouse.model.errors import AlreadyExists, InvalidName, InvalidPartitions, NotFound, NotLeader, PolicyViolation
from streamhouse.model.names import TopicPartition, check_topic_name, collision_key, name_collides
from streamhouse.model.topic import (
    LEAST_SEGMENT_BYTES,
    MAX_PARTITIONS,
    PARTITIONS_FIXED,
    LogConfig,
    Topic,
    check_config,
    check_partition_count,
    effective_config,
    parse_log_config,
)
from streamhouse.runtime.clock import Clock, SystemClock
from streamhouse.runtime.entropy import new_uuid

LONGEST_WAIT_MS = 5_000
"""For leaders of new partitions: other agents take up what is theirs within some rounds. Where that takes longer,
whoever made them is answered, and clients ask again."""


class Topics:
    def __init__(
        self,
        *,
        store: TopicStore,
        engine: LogEngine,
        node_defaults: Mapping[str, str],
        default_partitions: int,
        changed: Callable[[], None] = lambda: None,
        place: Callable[[], Awaitable[None]],
        led: Callable[[Sequence[TopicPartition], str, int], Awaitable[None]] | None = None,
        durability: Callable[[Topic, Mapping[str, str]], str] | None = None,
        descriptors: Descriptors | None = None,
        least_segment_bytes: int = LEAST_SEGMENT_BYTES,
        clock: Clock | None = None,
        auto_create_delay_ms: int = 0,
    ) -> None:
        """`changed` is called when a topic has come, gone or grown; `place` finds leaders for new partitions, as far as
        that is possible now; `led` waits until other agents, of that group, lead what falls to them, or so many
        milliseconds are over. `durability`: that of a topic with such a config where it is led."""
        self._store = store
        self._engine = engine
        self._node_defaults = node_defaults
        self._default_partitions = default_partitions
        self._changed = changed
        self._place = place
        self._led = led
        self._durability = durability
        self._descriptors = descriptors or NoDescriptors()
        self._least_segment_bytes = least_segment_bytes
        self._clock = clock or SystemClock()
        self._auto_create_delay_ms = auto_create_delay_ms
        self._deleted_at_ms: dict[str, int] = {}
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._leaders_by_name: dict[bytes, Sequence[PartitionLeader | None]] = {}
        self._leaders_by_id: dict[bytes, Sequence[PartitionLeader | None]] = {}
        self._unfinished: dict[str, UUID] = {}
        self._changes = asyncio.Lock()
        self._looks = 0

    def opened(self, topics: Iterable[Topic]) -> None:
        """The topics that were there at the start."""
        for topic in topics:
            self._remember(topic)

    def __iter__(self) -> Iterator[Topic]:
        return iter(sorted(self._by_name.values(), key=lambda topic: topic.name))

    def __len__(self) -> int:
        return len(self._by_name)

    def find(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def find_id(self, topic_id: UUID) -> Topic | None:
        return self._by_id.get(topic_id)

    def get(self, name: str) -> Topic:
        topic = self._by_name.get(name)
        if topic is None:
            raise NotFound(f"there is no topic {name[:300]!r}")
        return topic

    async def look_up(self, name: str, partition: int = 0) -> Topic:
        """The topic, if it has that partition, else NotFound. What is not known here another node may have made a
        moment ago, so the store is asked."""
        topic = self._by_name.get(name)
        if topic is None or topic.partition_count <= partition < MAX_PARTITIONS:
            await self.refresh()
            topic = self.get(name)
        if not 0 <= partition < topic.partition_count:
            raise NotFound(f"there is no partition {partition} of {topic.name}")
        return topic

    def leader(self, topic: Topic | None, partition: int) -> PartitionLeader:
        """The leader of a partition, if it is this node; else the error that says why not."""
        if topic is None or not 0 <= partition < topic.partition_count:
            raise NotFound(f"there is no partition {partition} of {topic.name if topic else 'that topic'}")
        leader = self._engine.leadership.leaders_of(topic)[partition]
        if leader is None:
            raise NotLeader(f"this agent does not lead {topic.name}/{partition}")
        return leader

    def leader_by_key(self, key: bytes, partition: int, *, is_id: bool) -> PartitionLeader | None:
        """The same for the hot path, by a topic's encoded name or id; None leaves it to others to say why not, or to
        look at the records first."""
        leaders = (self._leaders_by_id if is_id else self._leaders_by_name).get(key)
        return leaders[partition] if leaders is not None and 0 <= partition < len(leaders) else None

    def leaders_named(self, name: bytes) -> Sequence[PartitionLeader | None] | None:
        """All leaders of a topic by its encoded name, for a hot path that chooses the partition; as many as it has
        partitions, None where this node does not lead. None, too, for a topic whose rules want records looked at."""
        return self._leaders_by_name.get(name)

    def config_of(self, topic: Topic) -> dict[str, str]:
        """Every config, with the node's defaults where the topic has none of its own."""
        return effective_config(topic.config, self._node_defaults)

    def told_config_of(self, topic: Topic) -> dict[str, str]:
        """The same as it is told to clients: with the durability of the agents that lead it, which may not be this."""
        config = self.config_of(topic)
        if self._durability is not None:
            config["streamhouse.durability"] = self._durability(topic, config)
        return config

    def log_config_of(self, topic: Topic) -> LogConfig:
        """What its log goes by now, though the topic may be given as it was a while ago."""
        return parse_log_config(self.config_of(self._by_id.get(topic.topic_id, topic)))

    def has_rules(self, topic: Topic) -> bool:
        """Whether it asks anything of the records that come."""
        return topic.topic_id.bytes not in self._leaders_by_id

    def rules_of(self, topic: Topic) -> RecordRules:
        """What it asks of the records that come."""
        return RecordRules.of(parse_log_config(self.config_of(topic)))

    def set_defaults(self, node_defaults: Mapping[str, str]) -> None:
        """What topics go by, from now on, that have no config of their own."""
        self._node_defaults = node_defaults
        for topic in self._by_id.values():
            self._offer(topic)
            self._engine.reconfigure(topic)

    async def create(
        self,
        name: str,
        partition_count: int | None,
        config: Mapping[str, str | None],
        *,
        validate_only: bool = False,
        wait_ms: int = 0,
    ) -> Topic:
        """Create a topic, and lead it if that is possible now; None asks for the default number of partitions. For up
        to `wait_ms` it waits until others lead what falls to them."""
        await self.check_is_new(name)
        count = self._default_partitions if partition_count is None else partition_count
        check_partition_count(count)
        overrides = self._checked(config)
        async with self._changes:
            self._check_is_absent(name)
            if validate_only:
                self._check_collision(name)
                return Topic(name=name, topic_id=UUID(int=0), partition_count=count, config=overrides, created_at_ms=0)
            # A creation that broke off is taken up again under the id that it had.
            topic_id = self._unfinished.setdefault(name, new_uuid())
            try:
                topic = await self._store.create_topic(name, topic_id, count, overrides)
            except (AlreadyExists, InvalidName):
                del self._unfinished[name]
                await self._look()
                raise
            del self._unfinished[name]
            self._remember(topic)
            self._changed()
        await asyncio.gather(self._place(), self._descriptors.created(topic))
        await self._await_leaders(topic, range(count), wait_ms)
        return topic

    async def _await_leaders(self, topic: Topic, numbers: range, wait_ms: int) -> None:
        if self._led is None or wait_ms <= 0:
            return
        leaders = self.leaders_of(topic)
        elsewhere = [TopicPartition(topic.topic_id, number) for number in numbers if leaders[number] is None]
        if elsewhere:
            await self._led(elsewhere, self.config_of(topic)["streamhouse.agent.group"], min(wait_ms, LONGEST_WAIT_MS))

    async def check_is_new(self, name: str) -> None:
        """That it is a name and nobody's. What is known here another node may have deleted a moment ago, so the store
        is asked."""
        check_topic_name(name)
        if name in self._by_name:
            await self.refresh()
            self._check_is_absent(name)

    def _check_is_absent(self, name: str) -> None:
        if name in self._by_name:
            raise AlreadyExists(f"topic {name!r} exists already")

    def _check_collision(self, name: str) -> None:
        key = collision_key(name)
        for other in () if key is None else self._by_name:
            if collision_key(other) == key:
                raise name_collides(name, other)

    async def refresh(self) -> None:
        """See what other nodes have created, changed and deleted."""
        asked_after = self._looks
        async with self._changes:
            if self._looks == asked_after:  # else somebody has looked since we asked
                await self._look()

    async def _look(self) -> None:
        self._looks += 1
        stored = {topic.topic_id: topic for topic in await self._store.list_topics()}
        gone = [topic for topic in self._by_id.values() if topic.topic_id not in stored]
        come = [topic for topic in stored.values() if topic.topic_id not in self._by_id]
        for topic in gone:
            self._forget(topic)
        for topic in stored.values():
            self._learn(topic)
        if come or gone:
            self._changed()

    def was_just_deleted(self, name: str) -> bool:
        """Who asks for it now may only want to know whether it is gone. This is as this node heard of it: another that
        has never heard of the topic would create it."""
        deleted_at_ms = self._deleted_at_ms.get(name)
        return deleted_at_ms is not None and self._clock.monotonic_ms() - deleted_at_ms < self._auto_create_delay_ms

    async def ensure(self, name: str) -> Topic:
        """The topic, created with defaults if need be."""
        existing = self._by_name.get(name)
        if existing is not None:
            return existing
        try:
            return await self.create(name, None, {})
        except AlreadyExists:
            return self.get(name)

    async def delete(self, topic: Topic) -> None:
        async with self._changes:
            if topic.topic_id not in self._by_id:
                raise NotFound(f"there is no topic {topic.name!r}")
            with suppress(NotFound):  # an earlier try, whose answer was lost
                await self._store.delete_topic(topic.topic_id)
            self._forget(topic)
            self._descriptors.deleted(topic)
            self._changed()

    async def configure(self, topic: Topic, config: Mapping[str, str], *, validate_only: bool = False) -> None:
        """Replace the topic's own configs."""
        await self.change_config(topic, lambda _: config, validate_only=validate_only)

    async def change_config(
        self,
        topic: Topic,
        change: Callable[[Mapping[str, str]], Mapping[str, str]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Make new configs from the topic's own. Where another has changed the topic meanwhile, from what it has
        now, so that no change is lost."""
        async with self._changes:
            current = self._by_id.get(topic.topic_id, topic)
            while True:
                overrides = self._checked(change(current.config), current.config)
                if validate_only:
                    return
                current = await self._store.set_topic_config(current, overrides)
                self._learn(current)
                if current.config == overrides:
                    return

    def _checked(
        self, config: Mapping[str, str | None], stored: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, str]:
        """What a node has as its own default any topic may have as well."""
        least = min(self._least_segment_bytes, int(effective_config({}, self._node_defaults)["segment.bytes"]))
        return check_config(config, stored, least_segment_bytes=least, node_defaults=self._node_defaults)

    async def grow(self, topic: Topic, partition_count: int, *, validate_only: bool = False, wait_ms: int = 0) -> Topic:
        """Add partitions behind those that there are, and lead them if that is possible now, or wait as `create` does.

        Where another has changed the topic meanwhile, what it is now is judged again."""
        async with self._changes:
            current = self._by_id.get(topic.topic_id, topic)
            self._check_growth(current, partition_count)
            if validate_only:
                return replace(current, partition_count=partition_count)
            while current.partition_count != partition_count:
                self._check_growth(current, partition_count)
                current = await self._store.grow_topic(current, partition_count)
                self._learn(current)
        await asyncio.gather(self._place(), self._descriptors.settled(current))
        await self._await_leaders(current, range(topic.partition_count, partition_count), wait_ms)
        return current

    def _check_growth(self, topic: Topic, partition_count: int) -> None:
        has = topic.partition_count
        if partition_count == has:
            raise InvalidPartitions(f"topic {topic.name!r} has {has} partition(s) already")
        if partition_count < has:
            raise InvalidPartitions(
                f"topic {topic.name!r} has {has} partition(s), and {partition_count} would not be an increase",
                hint="partitions can be added, and not taken away",
            )
        check_partition_count(partition_count)
        if self.config_of(topic)[PARTITIONS_FIXED] == "true":
            raise PolicyViolation(
                f"topic {topic.name!r} has {has} partition(s) for good: its config {PARTITIONS_FIXED} is true, so that "
                "a key stays in its partition",
                hint="set it to false, or create another topic with more",
            )

    def leaders_of(self, topic: Topic) -> Sequence[PartitionLeader | None]:
        return self._engine.leadership.leaders_of(topic)

    def _learn(self, topic: Topic) -> None:
        """What the metadata store says of a topic, whoever has changed it."""
        known = self._by_id.get(topic.topic_id)
        if known == topic:
            return
        self._remember(topic)
        self._engine.reconfigure(topic)
        self._descriptors.changed(topic)
        if known is not None and known.partition_count != topic.partition_count:
            self._changed()

    def _remember(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_id[topic.topic_id] = topic
        self._offer(topic)

    def _offer(self, topic: Topic) -> None:
        """To the hot paths, which append without a look at the records, unless the topic has rules for them."""
        name, topic_id = topic.name.encode(), topic.topic_id.bytes
        if self.rules_of(topic).are_none:
            self._leaders_by_name[name] = self._leaders_by_id[topic_id] = self.leaders_of(topic)
        else:
            self._leaders_by_name.pop(name, None)
            self._leaders_by_id.pop(topic_id, None)

    def _forget(self, topic: Topic) -> None:
        named = self._by_name.get(topic.name)
        if named is not None and named.topic_id == topic.topic_id:
            del self._by_name[topic.name]
            self._leaders_by_name.pop(topic.name.encode(), None)
            self._note_deleted(topic.name)
        self._by_id.pop(topic.topic_id, None)
        self._leaders_by_id.pop(topic.topic_id.bytes, None)
        self._engine.leadership.remove(topic, NotFound(f"topic {topic.name!r} was deleted"))

    def _note_deleted(self, name: str) -> None:
        now_ms = self._clock.monotonic_ms()
        oldest_ms = now_ms - self._auto_create_delay_ms
        self._deleted_at_ms = {known: at for known, at in self._deleted_at_ms.items() if at > oldest_ms}
        self._deleted_at_ms[name] = now_ms
