"""The chores of a node's logs: uploads that are due by age, retention, producers to forget, garbage to remove."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from streamhouse.core.retention import retained_from
from streamhouse.format.object_keys import SEGMENTS_PREFIX, SegmentKey, parse_segment_key
from streamhouse.log.leader import PartitionLeader
from streamhouse.log.leadership import Leadership
from streamhouse.log.log_start import LogStartMover
from streamhouse.log.orphans import OrphanWatch
from streamhouse.log.replacement import SegmentReplacer
from streamhouse.log.uploader import Uploader
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import Fenced, InvalidInput, NotFound, Unavailable
from streamhouse.model.names import TopicPartition
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock

_log = logging.getLogger(__name__)
_AGE_CHECKS_PER_SEGMENT_AGE = 10
_SHORTEST_AGE_CHECK_MS = 20
_LONGEST_AGE_CHECK_MS = 100
_FIRST_LOOK_SHARE = 0.1
"""Of the interval, which makes the 30 s that Kafka has by default."""
_GARBAGE_BATCH = 500


class Maintenance:
    def __init__(
        self,
        *,
        agent_id: str,
        leadership: Leadership,
        uploader: Uploader,
        replacer: SegmentReplacer,
        store: MetadataStore,
        objects: ObjectStore,
        clock: Clock,
        garbage_grace_ms: int,
    ) -> None:
        self._leadership = leadership
        self._uploader = uploader
        self._replacer = replacer
        self._store = store
        self._objects = objects
        self._clock = clock
        self._garbage_grace_ms = garbage_grace_ms
        self._orphans = OrphanWatch(clock, garbage_grace_ms)
        self._log_starts = LogStartMover(agent_id=agent_id, store=store, clock=clock)

    async def upload_by_age(self, interval_ms: int) -> None:
        """Runs until cancelled; topics may have shorter ages than the node, so the check is frequent and cheap."""
        while True:
            await self._clock.sleep_ms(interval_ms)
            for leader in self._leadership.leaders.values():
                if leader.buffered_bytes and leader.upload_is_due():
                    self._uploader.due(leader)

    async def retain(self, interval_ms: int) -> None:
        """Runs until cancelled, and then what it has begun ends too. As in Kafka a node that has just started looks
        sooner: else one that is started again and again would never delete anything."""
        wait_ms = interval_ms * _FIRST_LOOK_SHARE
        try:
            while True:
                await self._clock.sleep_ms(wait_ms)
                await self.retain_now()
                wait_ms = interval_ms
        except asyncio.CancelledError:
            await self._log_starts.close()
            raise

    async def retain_now(self) -> None:
        for leader in list(self._leadership.leaders.values()):
            await self._attempt(partial(self.apply_retention, leader))

    async def clean_up(self, interval_ms: int) -> None:
        """Runs until cancelled."""
        last_orphan_search_ms = self._clock.monotonic_ms()
        while True:
            await self._clock.sleep_ms(interval_ms)
            for leader in list(self._leadership.leaders.values()):
                leader.producers.expire(self._clock.now_ms())
            await self._attempt(self.remove_garbage)
            if self._clock.monotonic_ms() - last_orphan_search_ms >= self._garbage_grace_ms // 2:
                last_orphan_search_ms = self._clock.monotonic_ms()
                await self._attempt(self.remove_orphans)

    async def apply_retention(self, leader: PartitionLeader) -> None:
        config = leader.config
        if "delete" not in config.cleanup_policy:
            return
        limits = partial(
            retained_from,
            leader.segments,
            leader.log_start_offset,
            retention_ms=config.retention_ms,
            retention_bytes=config.retention_bytes,
            now_ms=self._clock.now_ms(),
        )
        if limits() <= leader.log_start_offset:
            return
        (pinned_offset,) = await self._store.load_pins([leader.partition])
        start = limits(pinned_offset=pinned_offset)
        if start > leader.log_start_offset:
            await self.move_log_start(leader, start)

    async def move_log_start(self, leader: PartitionLeader, log_start_offset: int) -> None:
        """Rows first, objects after the grace period: a reader that is at it now may finish. Pins do not count: what an
        operator deletes is deleted."""
        await self._log_starts.move(leader, log_start_offset)

    async def remove_garbage(self) -> None:
        while keys := await self._store.list_garbage(self._garbage_grace_ms, _GARBAGE_BATCH):
            await self._objects.delete(keys)
            await self._store.forget_garbage(keys)

    async def remove_orphans(self) -> None:
        """Objects that were uploaded but never registered, because the process died in between."""
        orphans: list[str] = []
        partition, keys = None, list[str]()
        async for item in self._objects.list(SEGMENTS_PREFIX):
            key = parse_segment_key(item.key)
            if key is None or not self._is_ours(key):
                continue
            if partition != TopicPartition(key.topic_id, key.partition):
                orphans += await self._unregistered(partition, keys)
                partition, keys = TopicPartition(key.topic_id, key.partition), []
            keys.append(item.key)
        orphans += await self._unregistered(partition, keys)
        garbage = set(await self._store.list_garbage(0, 1_000_000))
        orphans = self._orphans.outlived(key for key in orphans if key not in garbage)
        if orphans:
            _log.info("removing %d objects that were never registered", len(orphans))
            await self._objects.delete(orphans)

    def _is_ours(self, key: SegmentKey) -> bool:
        """Whether it is for us to judge: not if another agent leads, also if we have not heard of its epoch yet."""
        leader = self._leadership.leaders.get(TopicPartition(key.topic_id, key.partition))
        return leader is not None and key.epoch <= leader.epoch

    async def _unregistered(self, partition: TopicPartition | None, keys: Sequence[str]) -> list[str]:
        """Those of a partition's objects that are no segments of it and will not be; none if another agent leads it."""
        if partition is None or partition not in self._leadership.leaders:
            return []
        # In this order: what is registered in between was under way before. An old object is not registered anew.
        under_way = self._uploader.keys_under_way | self._replacer.keys_under_way
        (segments,) = await self._store.load_segments([partition])
        wanted = under_way.union(segment.object_key for segment in segments)
        return [key for key in keys if key not in wanted]

    @staticmethod
    async def _attempt(chore: Callable[[], Awaitable[None]]) -> None:
        """A chore that cannot be done now is done next time."""
        try:
            await chore()
        except (Unavailable, Fenced, NotFound, InvalidInput) as problem:
            _log.warning("clean-up is left for later: %s", problem)


def age_check_interval_ms(segment_age_ms: int) -> int:
    return max(_SHORTEST_AGE_CHECK_MS, min(_LONGEST_AGE_CHECK_MS, segment_age_ms // _AGE_CHECKS_PER_SEGMENT_AGE))
