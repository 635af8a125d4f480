"""Turns what partitions have buffered into segments in the object store; it never gives up and never drops."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial

from crc32c import crc32c

from streamhouse.core.segment_roll import largest_segment_bytes
from streamhouse.format.object_keys import segment_key
from streamhouse.format.segment import EncodedSegment, encode_segment
from streamhouse.log.committer import SegmentCommitter
from streamhouse.log.creating import create_own
from streamhouse.log.leader import PartitionLeader
from streamhouse.metadata.store import SegmentCommit, SegmentRow
from streamhouse.model.errors import StaleEpoch, Unavailable
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.entropy import new_uuid
from streamhouse.runtime.measures import Histogram, stopwatch_s
from streamhouse.runtime.retry import backoff_ms
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)
_WORKERS = 8


class UploadMeasures:
    """Segments that were uploaded and registered, by why they were rolled (`PartitionLeader.roll_reason`), and how long
    each took from encoding on; and how often an upload had to be tried again."""

    def __init__(self) -> None:
        self.rolls: Counter[str] = Counter(dict.fromkeys(("size", "age", "memory", "flush"), 0))
        self.seconds = Histogram()
        self.segment_bytes = 0
        self.records = 0
        self.retries = 0


class Uploader:
    """A partition has at most one upload under way, so its segments are committed in order; partitions run beside
    one another."""

    def __init__(
        self,
        *,
        agent_id: str,
        objects: ObjectStore,
        committer: SegmentCommitter,
        clock: Clock,
        threads: Executor,
    ) -> None:
        self.measures = UploadMeasures()
        self._agent_id = agent_id
        self._objects = objects
        self._committer = committer
        self._clock = clock
        self._threads = threads
        self._tasks = TaskGroup("uploader")
        self._queued: deque[PartitionLeader] = deque()
        self._busy: set[PartitionLeader] = set()
        self._flushing: dict[PartitionLeader, list[tuple[int, asyncio.Future[None]]]] = {}
        self._workers = 0
        self._closed = False
        self.keys_under_way: set[str] = set()
        self._begun_ms: dict[str, int] = {}

    @property
    def waiting(self) -> int:
        """Partitions that have enough for a segment, and no worker yet."""
        return len(self._queued)

    @property
    def under_way(self) -> int:
        return len(self._busy) - len(self._queued)

    @property
    def oldest_ms(self) -> int:
        """For how long the segment has been on its way that is the oldest of those; stuck ones are tried for ever."""
        return self._clock.monotonic_ms() - min(self._begun_ms.values(), default=self._clock.monotonic_ms())

    def due(self, leader: PartitionLeader) -> None:
        """The partition has enough for a segment. Saying it twice is saying it once."""
        if leader not in self._busy and not self._closed:
            self._busy.add(leader)
            self._queued.append(leader)
            if self._workers < _WORKERS:
                self._workers += 1
                self._tasks.start(self._work(), "worker")

    async def flush(self, leader: PartitionLeader) -> None:
        """Until everything that is durable now is in the object store."""
        target = leader.high_watermark
        if leader.committed_end >= target or leader.removed:
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flushing.setdefault(leader, []).append((target, done))
        self.due(leader)
        await done

    async def close(self) -> None:
        self._closed = True
        await self._tasks.cancel()

    async def _work(self) -> None:
        try:
            while self._queued:
                leader = self._queued.popleft()
                problem: Exception | None = None
                try:
                    await self._upload(leader)
                except Exception as unexpected:
                    _log.exception("%s/%d cannot be uploaded now", leader.topic, leader.partition.partition)
                    problem = unexpected
                self._busy.discard(leader)
                self._report_flushes(leader, problem)
                if problem is None and not leader.removed and (leader in self._flushing or leader.upload_is_due()):
                    self.due(leader)
        finally:
            self._workers -= 1

    def _report_flushes(self, leader: PartitionLeader, problem: Exception | None) -> None:
        """Those that are done, and, if something unexpected happened, all others too."""
        unfinished = []
        for target, done in self._flushing.pop(leader, []):
            if done.done():
                continue
            if leader.committed_end >= target or leader.removed:
                done.set_result(None)
            elif problem is not None:
                done.set_exception(problem)
            else:
                unfinished.append((target, done))
        if unfinished:
            self._flushing[leader] = unfinished

    async def _upload(self, leader: PartitionLeader) -> None:
        parts = leader.unuploaded(largest_segment_bytes(leader.config.segment_bytes))
        if not parts:
            return
        begun_s, reason = stopwatch_s(), "flush" if leader in self._flushing else leader.roll_reason()
        encoded = await self._encode(parts, leader.epoch)
        raw_bytes = sum(len(part) for part in parts)
        for wait_ms in backoff_ms():
            if leader.removed:
                return
            if encoded.epoch != leader.epoch:
                encoded = await self._encode(parts, leader.epoch)
            if await self._store_and_commit(leader, encoded, raw_bytes):
                self._note_uploaded(encoded, reason, stopwatch_s() - begun_s)
                return
            # Deposed; or the lease was lost and taken again meanwhile, and the next try has its new epoch.
            await self._clock.sleep_ms(wait_ms)

    async def _encode(self, parts: Sequence[memoryview], epoch: int) -> EncodedSegment:
        encode = partial(encode_segment, parts, epoch=epoch)
        return await asyncio.get_running_loop().run_in_executor(self._threads, encode)

    def _note_uploaded(self, encoded: EncodedSegment, reason: str, seconds: float) -> None:
        self.measures.rolls[reason] += 1
        self.measures.seconds.observe(seconds)
        self.measures.segment_bytes += encoded.size_bytes
        self.measures.records += encoded.record_count

    async def _store_and_commit(self, leader: PartitionLeader, encoded: EncodedSegment, raw_bytes: int) -> bool:
        """False if the metadata store refuses the commit because of its epoch, which is that of the footer also in the
        key and the row: the leader may have got a new one since the segment was encoded."""
        partition = leader.partition
        key = segment_key(partition.topic_id, partition.partition, encoded.base_offset, encoded.epoch, new_uuid())
        self.keys_under_way.add(key)
        self._begun_ms[key] = self._clock.monotonic_ms()
        try:
            commit = self._commit_of(leader, encoded, key)
            with leader.step("upload", encoded.end_offset):
                await self._store(leader, key, encoded)
            with leader.step("commit", encoded.end_offset):
                await self._committer.commit(commit)
        except StaleEpoch as problem:
            _log.warning("%s/%d: %s", leader.topic, partition.partition, problem)
            return False
        finally:
            self.keys_under_way.discard(key)
            del self._begun_ms[key]
        if not leader.removed:
            leader.segment_committed(commit.segment, raw_bytes)
        return True

    async def _store(self, leader: PartitionLeader, key: str, encoded: EncodedSegment) -> None:
        for wait_ms in backoff_ms():
            try:
                await create_own(self._objects, key, encoded.parts, partial(self._is_ours, key, encoded))
                return
            except Unavailable as problem:
                if leader.removed:
                    # Without its object the segment must not be registered, also while the lease would still allow it.
                    raise StaleEpoch(f"{key} was not stored before its leader was deposed") from problem
                _log.warning("cannot upload %s, trying again: %s", key, problem)
                self.measures.retries += 1
                await self._clock.sleep_ms(wait_ms)

    async def _is_ours(self, key: str, encoded: EncodedSegment) -> bool:
        return crc32c(await self._objects.get(key)) == encoded.checksum

    def _commit_of(self, leader: PartitionLeader, encoded: EncodedSegment, key: str) -> SegmentCommit:
        return SegmentCommit(
            partition=leader.partition,
            agent_id=self._agent_id,
            epoch=encoded.epoch,
            commit_id=new_uuid(),
            segment=SegmentRow(
                base_offset=encoded.base_offset,
                end_offset=encoded.end_offset,
                record_count=encoded.record_count,
                size_bytes=encoded.size_bytes,
                min_timestamp_ms=encoded.min_timestamp_ms,
                max_timestamp_ms=encoded.max_timestamp_ms,
                epoch=encoded.epoch,
                object_key=key,
                checksum=encoded.checksum,
                created_at_ms=self._clock.now_ms(),
            ),
            producer_state=leader.producers.snapshot(encoded.end_offset),
        )
