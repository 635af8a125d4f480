"""Keeps a group consumer a member: one task beats, gives up what is revoked and takes over what is assigned.

When the group takes a partition away, it is given up as soon as nobody works on its records any more: at once if all
that was returned of it was committed, else with the next poll, which says that they were dealt with. Who takes longer
than `rebalance_timeout_ms` is put out of the group, and joins again by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from streamhouse.client.admin import Admin
from streamhouse.client.assigned_partitions import AssignedPartitions
from streamhouse.client.cluster import DEFAULT_RETRY_MS, Cluster
from streamhouse.client.errors import RETRIABLE
from streamhouse.client.group_member import GroupMember
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.format.row_reading import CLIENT_LIMITS, RowLimits
from streamhouse.model.errors import NotFound, StaleGeneration, StreamHouseError, Unavailable
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.retry import backoff_ms
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)

Reset = Literal["earliest", "latest", "error"]

# Less than a session: a lookup that hangs must not cost the membership.
_LOOKUP_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConsumerOptions:
    """`reset`: where to read a partition of which the group has committed nothing, or of which that is gone.

    With `auto_commit_ms`, what a poll returned is committed after the next poll, at most so much later. A consumer that
    nobody polls for `max_idle_ms` leaves its group; the next poll joins again. `rows` bounds what one answer of a
    partition may become in memory."""

    client_id: str = "streamhouse"
    reset: Reset = "earliest"
    auto_commit_ms: int | None = None
    max_idle_ms: int | None = 300_000
    rebalance_timeout_ms: int = 45_000
    assignor: str | None = None
    retry_ms: int = DEFAULT_RETRY_MS
    rows: RowLimits = CLIENT_LIMITS


class GroupMembership:
    """`partitions` belong to this and to the one who reads them; `changed` tells that one of news about them."""

    def __init__(
        self,
        member: GroupMember,
        partitions: AssignedPartitions,
        data: Cluster,
        options: GroupConsumerOptions,
        clock: Clock,
    ) -> None:
        self.changed = asyncio.Event()
        self.is_member = False
        self.problem: StreamHouseError | None = None
        self._member = member
        self._partitions = partitions
        self._data = data
        self._options = options
        self._clock = clock
        self._tasks = TaskGroup(f"group consumer:{member.group_id}", on_failure=self._stopped)
        self._hurry = asyncio.Event()
        self._counts_at_start: dict[str, int] = {}
        self._is_polled = False
        self._polled_ms = clock.monotonic_ms()
        self._committed_ms = self._polled_ms

    async def start(self, partition_counts: Mapping[str, int]) -> None:
        """Joins; what nobody else holds is owned afterwards. `partition_counts`: of the topics, as they are now."""
        self._counts_at_start = dict(partition_counts)
        await self._join()
        self._tasks.start(self._keep(), "membership")

    def poll_begins(self) -> None:
        self._is_polled = True
        self._partitions.handled_all()
        self.hurry_if_due()

    def poll_ends(self) -> None:
        self._is_polled = False
        self._polled_ms = self._clock.monotonic_ms()

    def hurry_if_due(self) -> None:
        """There is something to tell the group that it waits for, or to join it again."""
        if not self.is_member or self._revoked():
            self._hurry.set()

    async def commit(self, offsets: Mapping[GroupPartition, int]) -> None:
        await self._member.commit(offsets)
        self._partitions.note_committed(offsets)
        self.hurry_if_due()

    async def stop(self, *, leave: bool) -> None:
        """Leaving, what was dealt with is committed; not leaving, the partitions wait for the session's end."""
        await self._tasks.cancel()
        was_member, self.is_member = self.is_member, False
        if was_member and leave:
            with suppress(*RETRIABLE, StaleGeneration, NotFound):
                await self._commit_handled(self._partitions.owned)
            with suppress(*RETRIABLE):
                await self._member.leave()

    async def reset_offsets(
        self, partitions: Collection[GroupPartition], *, to_latest: bool | None = None
    ) -> dict[GroupPartition, int]:
        """To where `reset` says, unless that is said here."""
        admin = Admin(self._data, timeout_ms=_LOOKUP_MS)
        if to_latest is None:
            to_latest = self._options.reset == "latest"
        look_up = admin.latest_offsets if to_latest else admin.earliest_offsets
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        found: dict[GroupPartition, int] = {}
        for topic, indexes in by_topic.items():
            if max(indexes) >= len((await self._data.topic(topic)).partitions):
                await self._data.refresh([topic])  # it has grown, as the group has heard and we have not
            for partition, offset in (await look_up(topic, indexes)).items():
                found[GroupPartition(topic, partition)] = offset
        return found

    async def _keep(self) -> None:
        waits = backoff_ms()
        while True:
            await self._wait_for_beat()
            try:
                await self._beat()
                waits = backoff_ms()
            except (StaleGeneration, NotFound):
                self._lose()
            except RETRIABLE as problem:
                _log.warning("group %s: %s; trying again", self._member.group_id, problem)
                await self._clock.sleep_ms(next(waits))
                self._hurry.set()

    async def _wait_for_beat(self) -> None:
        wait_ms = self._member.heartbeat_interval_ms
        if self._options.auto_commit_ms is not None:
            wait_ms = min(wait_ms, self._options.auto_commit_ms)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                await self._hurry.wait()
        self._hurry.clear()

    async def _beat(self) -> None:
        if not self.is_member:
            if not self._is_idle():
                await self._join()
            return
        if self._is_idle():
            await self._member.leave()
            self._lose()
            return
        await self._member.heartbeat(self._partitions.owned)
        await self._auto_commit()
        await self._reconcile()

    async def _join(self) -> None:
        await self._member.join()
        self.is_member = True
        await self._reconcile()

    async def _reconcile(self) -> None:
        """Gives up what is not assigned any more, takes over what is, and says so, until the group has no news."""
        while True:
            before = self._partitions.owned
            held = self._partitions.in_hand(self._revoked())
            given_up = self._revoked() - frozenset(held)
            await self._commit_handled(given_up)
            self._partitions.remove(given_up)
            if not held:
                self._partitions.add(self._member.membership.assignment)
            await self._place_new()
            if self._partitions.owned == before:
                return
            self.changed.set()
            await self._member.heartbeat(self._partitions.owned)

    def _revoked(self) -> frozenset[GroupPartition]:
        return self._partitions.owned - frozenset(self._member.membership.assignment)

    async def _place_new(self) -> None:
        """At the committed offset, else where `reset` says; a lookup that fails is repeated with the next beat.

        A partition that was added since this consumer started is read from its beginning: "latest" was meant for what
        was there, and not to skip what came before the group heard of it."""
        unplaced = self._partitions.unplaced
        if not unplaced:
            return
        try:
            committed = await self._member.committed(unplaced)
            for partition, offset in committed.items():
                self._partitions.place_new(partition, offset, committed=offset)
            missing = [partition for partition in unplaced if partition not in committed]
            added = [partition for partition in missing if self._was_added(partition)]
            others = [partition for partition in missing if partition not in added]
            found = await self.reset_offsets(added, to_latest=False) if added else {}
            if self._options.reset == "error":
                self._partitions.note_without_offset(others)
            else:
                found |= await self.reset_offsets(others)
            for partition, offset in found.items():
                self._partitions.place_new(partition, offset)
        except (*RETRIABLE, NotFound) as problem:
            _log.warning("group %s: %s; trying again", self._member.group_id, problem)
        self.changed.set()

    def _was_added(self, partition: GroupPartition) -> bool:
        count = self._counts_at_start.get(partition.topic)
        return count is not None and partition.partition >= count

    async def _auto_commit(self) -> None:
        interval_ms = self._options.auto_commit_ms
        if interval_ms is not None and self._clock.monotonic_ms() - self._committed_ms >= interval_ms:
            await self._commit_handled(self._partitions.owned)
            self._committed_ms = self._clock.monotonic_ms()

    async def _commit_handled(self, partitions: Collection[GroupPartition]) -> None:
        if self._options.auto_commit_ms is None:
            return
        handled = self._partitions.uncommitted(handled_only=True)
        wanted = {partition: offset for partition, offset in handled.items() if partition in partitions}
        if wanted:
            await self._member.commit(wanted)
            self._partitions.note_committed(wanted)

    def _is_idle(self) -> bool:
        limit_ms = self._options.max_idle_ms
        if limit_ms is None or self._is_polled:
            return False
        return self._clock.monotonic_ms() - self._polled_ms >= limit_ms

    def _lose(self) -> None:
        """It is no member any more: what it owned may be another's already."""
        self.is_member = False
        self._partitions.clear()
        self.changed.set()
        self._hurry.set()

    def _stopped(self, problem: BaseException) -> None:
        """The task ended of what nobody expected: whoever polls hears of it, now and later."""
        self._lose()
        self.problem = Unavailable(f"the membership in group {self._member.group_id!r} ended: {problem}")
