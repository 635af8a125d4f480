"""Puts segments that somebody else wrote in the place of a led partition's own: checked, registered, swapped.

The job that compacted or merged them has put the objects into the store. Here, at the leader, it is seen that they are
what their rows say; the metadata store then changes the rows in one transaction, and the leader's readers follow."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from uuid import UUID

from streamhouse.format.object_keys import parse_segment_key
from streamhouse.format.segment_index import SUFFIX_HINT_BYTES, Footer, Lineage, decode_footer, decode_index, index_in
from streamhouse.log.leader import PartitionLeader
from streamhouse.metadata.store import Replacement, SegmentRow, SegmentStore
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import (
    CorruptData,
    InvalidInput,
    NotFound,
    NotLeader,
    StaleEpoch,
    StreamHouseError,
    Unavailable,
)
from streamhouse.model.names import TopicPartition
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.retry import backoff_ms
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)
_CHECKS_AT_ONCE = 8


class SegmentReplacer:
    """A partition has at most one replacement under way, so that what the store did is known before the next one."""

    def __init__(
        self, *, agent_id: str, store: SegmentStore, objects: ObjectStore, clock: Clock, garbage_grace_ms: int
    ) -> None:
        self._agent_id = agent_id
        self._store = store
        self._objects = objects
        self._clock = clock
        self._garbage_grace_ms = garbage_grace_ms
        self._tasks = TaskGroup("replacements")
        self._busy: set[TopicPartition] = set()
        self.keys_under_way: set[str] = set()

    async def replace(
        self, leader: PartitionLeader, commit_id: UUID, removed: Sequence[str], added: Sequence[SegmentRow]
    ) -> None:
        """Returns when readers get the new segments. As `SegmentStore.replace_segments` otherwise; Unavailable while
        another replacement of the partition is under way. Safe to repeat with the same commit id."""
        if leader.partition in self._busy:
            raise Unavailable(f"other segments of {leader.partition} are being replaced", hint="try again")
        replacement = Replacement(
            partition=leader.partition,
            agent_id=self._agent_id,
            epoch=leader.epoch,
            commit_id=commit_id,
            removed=tuple(removed),
            added=tuple(replace(segment, created_at_ms=self._clock.now_ms()) for segment in added),
        )
        self._busy.add(leader.partition)
        # It goes on when the caller has gone: the store may have done it, and then our readers must know.
        problem = await asyncio.shield(self._tasks.start(self._attempt(leader, replacement), "replace"))
        if problem is not None:
            raise problem

    async def close(self) -> None:
        await self._tasks.cancel()

    async def _attempt(self, leader: PartitionLeader, replacement: Replacement) -> StreamHouseError | None:
        try:
            await self._replace(leader, replacement)
        except StreamHouseError as refusal:
            return refusal
        return None

    async def _replace(self, leader: PartitionLeader, replacement: Replacement) -> None:
        keys = {segment.object_key for segment in replacement.added}
        self.keys_under_way |= keys
        try:
            if await self._store.was_replaced(replacement.commit_id):
                return  # and whoever leads has known it since, or has read the rows later
            replacement = replace(replacement, generation=await self._check_objects(replacement))
            await self._register(leader, replacement)
            leader.segments_replaced(replacement.removed, replacement.added)
        finally:
            self.keys_under_way -= keys
            self._busy.discard(leader.partition)
        _log.info(
            "%s/%d: %d segments in the place of %d",
            leader.topic,
            leader.partition.partition,
            len(replacement.added),
            len(replacement.removed),
        )

    async def _register(self, leader: PartitionLeader, replacement: Replacement) -> None:
        """Until the store answers: a try that it did not answer may have been done all the same, and then the objects
        that our readers still use are removed some day."""
        for wait_ms in backoff_ms():
            try:
                await self._store.replace_segments(replacement)
                return
            except Unavailable as problem:
                if leader.removed:
                    raise NotLeader(f"this agent no longer leads {leader.partition}") from problem
                _log.warning("cannot register segments of %s, trying again: %s", leader.partition, problem)
                await self._clock.sleep_ms(wait_ms)

    async def _check_objects(self, replacement: Replacement) -> int:
        """Returns the generation that they have: the store knows whether that is the newest."""
        enough = asyncio.Semaphore(_CHECKS_AT_ONCE)

        async def check(segment: SegmentRow) -> Lineage | None:
            async with enough:
                return await self._check_object(replacement.partition, segment)

        lineages: set[Lineage | None] = set()
        for found in await asyncio.gather(*map(check, replacement.added), return_exceptions=True):
            if isinstance(found, BaseException):
                raise found
            lineages.add(found)
        return _generation_of(replacement, lineages)

    async def _check_object(self, partition: TopicPartition, segment: SegmentRow) -> Lineage | None:
        """What it says of the plan that it comes from."""
        key = segment.object_key
        named = parse_segment_key(key)
        if named is None or named[:4] != (partition.topic_id, partition.partition, segment.base_offset, segment.epoch):
            raise InvalidInput(
                f"{key[:300]!r} is not the key of a segment of {partition} from offset {segment.base_offset} on, "
                f"in epoch {segment.epoch}"
            )
        try:
            info = await self._objects.head(key)
            footer = await self._read_footer(key)
        except NotFound:
            raise InvalidInput(f"object {key} is not there") from None
        except CorruptData as problem:
            raise InvalidInput(f"object {key} is not a segment: {problem.message}") from None
        if info.modified_at_ms < self._clock.now_ms() - self._garbage_grace_ms // 2:
            # One that is only a little older is removed as an orphan, perhaps by a search that has begun already.
            raise StaleEpoch(f"object {key} was written too long ago to be registered", hint="write it again")
        mismatch = _mismatch(segment, footer, info.size_bytes)
        if mismatch is not None:
            raise InvalidInput(f"object {key} {mismatch}")
        return footer.lineage

    async def _read_footer(self, key: str) -> Footer:
        """With a look at the index: then an object is a segment, but for damage inside its blocks."""
        suffix, size_bytes = await self._objects.get_suffix(key, SUFFIX_HINT_BYTES)
        footer = decode_footer(suffix, size_bytes)
        index: Buffer | None = index_in(suffix, footer)
        if index is None:
            index = await self._objects.get_range(key, footer.index_position, footer.index_end)
        decode_index(index, footer)
        return footer


def _generation_of(replacement: Replacement, lineages: Collection[Lineage | None]) -> int:
    """Key and footer alone must tell what an object was to replace, and together with which others."""
    if len(lineages) > 1:
        raise InvalidInput(f"new segments of {replacement.partition} come from different plans")
    lineage = next(iter(lineages), None)
    if lineage is None:
        return 0  # of a job that knows nothing of generations, which the store takes while it has begun none
    attempts = {key.unique for segment in replacement.added if (key := parse_segment_key(segment.object_key))}
    covered = (replacement.added[0].base_offset, replacement.added[-1].end_offset)
    if covered != (lineage.base_offset, lineage.end_offset) or len(attempts) != 1:
        raise InvalidInput(
            f"new segments of {replacement.partition} were to cover [{lineage.base_offset}, {lineage.end_offset}) "
            f"together, under one name, and cover [{covered[0]}, {covered[1]}) under {len(attempts)}"
        )
    return lineage.generation


def _mismatch(segment: SegmentRow, footer: Footer, size_bytes: int) -> str | None:
    """What an object is that its row does not say.

    Records may be missing from its front. Its last batch ends where the row does: then a reader who is not at the end
    of the log always finds something, and key and footer alone tell which offsets the object stands for."""
    if not segment.base_offset <= footer.base_offset or footer.end_offset != segment.end_offset:
        return (
            f"holds offsets [{footer.base_offset}, {footer.end_offset}), "
            f"which do not fill [{segment.base_offset}, {segment.end_offset}) to its end"
        )
    for what, registered, found in (
        ("bytes", segment.size_bytes, size_bytes),
        ("records", segment.record_count, footer.record_count),
        ("as its smallest timestamp", segment.min_timestamp_ms, footer.min_timestamp_ms),
        ("as its largest timestamp", segment.max_timestamp_ms, footer.max_timestamp_ms),
        ("as its epoch", segment.epoch, footer.epoch),
    ):
        if registered != found:
            return f"has {found} {what} and not {registered}"
    return None
