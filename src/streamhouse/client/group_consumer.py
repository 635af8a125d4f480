"""Reads what a consumer group assigns to it: a task keeps the membership, `poll` reads, neither waits for the other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from streamhouse.client.address import Address
from streamhouse.client.assigned_partitions import AssignedPartitions
from streamhouse.client.cluster import Cluster
from streamhouse.client.connection import ConnectionOptions
from streamhouse.client.consumer import ConsumedRecord
from streamhouse.client.errors import RETRIABLE
from streamhouse.client.fetching import Fetched, FetchLimits, fetch_round
from streamhouse.client.group_member import GroupMember
from streamhouse.client.group_membership import GroupConsumerOptions, GroupMembership, Reset
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.model.errors import NotFound, OffsetOutOfRange, StaleGeneration, StreamHouseError
from streamhouse.runtime.clock import Clock, SystemClock
from streamhouse.runtime.retry import backoff_ms

__all__ = ["GroupConsumer", "GroupConsumerOptions", "GroupPartition", "Reset"]

# A fetch waits no longer than this, so that partitions that are assigned meanwhile are asked soon.
_FETCH_WAIT_MS = 500
_PARTITION_MAX_BYTES = 1024 * 1024


class GroupConsumer:
    """A member that reads what it is assigned: joins, keeps its membership in the background, gives up revoked
    partitions, starts at committed offsets."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        group_id: str,
        topics: Sequence[str],
        *,
        options: GroupConsumerOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._options = options or GroupConsumerOptions()
        self._clock = clock or SystemClock()
        self._topics = tuple(topics)
        connections = ConnectionOptions(client_id=self._options.client_id)
        # Answers come in order on a connection: behind a fetch that waits, a heartbeat would wait too.
        self._data = Cluster(bootstrap, options=connections, clock=self._clock)
        self._group = Cluster(bootstrap, options=connections, clock=self._clock)
        self._member = GroupMember(
            self._group,
            group_id,
            self._topics,
            assignor=self._options.assignor,
            rebalance_timeout_ms=self._options.rebalance_timeout_ms,
        )
        self._partitions = AssignedPartitions()
        self._membership = GroupMembership(self._member, self._partitions, self._data, self._options, self._clock)
        self._polling = asyncio.Lock()
        self._failing_since_ms: int | None = None

    @property
    def group_id(self) -> str:
        return self._member.group_id

    @property
    def member_id(self) -> str:
        return self._member.member_id

    @property
    def epoch(self) -> int:
        return self._member.membership.epoch

    @property
    def assignment(self) -> tuple[GroupPartition, ...]:
        """What it owns now, in order."""
        return tuple(sorted(self._partitions.owned))

    @property
    def positions(self) -> dict[GroupPartition, int]:
        """Where each owned partition is read next."""
        return self._partitions.positions

    async def start(self) -> None:
        """Joins; NotFound if one of the topics does not exist. What nobody else holds is owned afterwards."""
        try:
            topics = await self._data.refresh(self._topics)
            await self._membership.start({name: len(topic.partitions) for name, topic in topics.items()})
        except BaseException:
            await self._close_connections()
            raise

    async def poll(
        self, *, max_records: int = 500, max_bytes: int = 2**20, max_wait_ms: int = 500
    ) -> list[ConsumedRecord]:
        """The next records, in offset order within a partition; none if nothing came within the wait.

        It also says that the records of the last poll were dealt with: their partitions may go to others."""
        async with self._polling:
            self._membership.poll_begins()
            try:
                return await self._poll(max_records, max_bytes, max_wait_ms)
            finally:
                self._membership.poll_ends()

    async def commit(self, offsets: Mapping[GroupPartition, int] | None = None) -> None:
        """Without offsets: behind everything that `poll` returned. StaleGeneration if a partition is not owned."""
        wanted = self._partitions.uncommitted(handled_only=False) if offsets is None else dict(offsets)
        for partition in wanted:
            self._check_owned(partition)
        if wanted:
            await self._membership.commit(wanted)

    def note_handled(self, offsets: Mapping[GroupPartition, int]) -> None:
        """For auto-commit: what is before these offsets was dealt with, though no further poll says so."""
        self._partitions.note_handled(offsets)

    async def seek(self, partition: GroupPartition, offset: int) -> None:
        """The next poll reads there; what is committed stays as it is."""
        self._check_owned(partition)
        self._partitions.place(partition, offset)

    async def close(self, *, leave: bool = True) -> None:
        """With auto-commit, what was dealt with is committed. Without `leave`, the partitions wait for the session."""
        try:
            await self._membership.stop(leave=leave)
        finally:
            await self._close_connections()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _poll(self, max_records: int, max_bytes: int, max_wait_ms: int) -> list[ConsumedRecord]:
        deadline_ms = self._clock.monotonic_ms() + max_wait_ms
        waits = backoff_ms(limit_ms=1_000)
        while True:
            self._check_usable()
            taken = self._partitions.take(max_records, max_bytes)
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if taken or left_ms < 0:
                return taken
            problem = await self._fetch(left_ms, max_bytes)
            self._note_failing(problem)
            if problem is not None:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                await self._clock.sleep_ms(max(0, min(next(waits), left_ms)))

    async def _fetch(self, left_ms: int, max_bytes: int) -> StreamHouseError | None:
        """One round; the first problem that may pass is returned, one that needs the caller is raised."""
        positions = self._partitions.to_fetch()
        wait_ms = min(left_ms, _FETCH_WAIT_MS)
        if not positions:
            await self._wait_for_change(wait_ms)
            return None
        limits = FetchLimits(
            max_wait_ms=wait_ms,
            max_bytes=max_bytes,
            partition_max_bytes=min(max_bytes, _PARTITION_MAX_BYTES),
            rows=self._options.rows,
        )
        answers = await fetch_round(self._data, positions, limits)
        for answer in answers:
            self._partitions.put(answer)
        passing: StreamHouseError | None = None
        for answer in answers:
            if answer.problem is not None and await self._may_pass(answer, answer.problem):
                passing = passing or answer.problem
        return passing

    async def _may_pass(self, answer: Fetched, problem: StreamHouseError) -> bool:
        """What was dealt with here has passed; what neither time nor this class can mend is raised."""
        if answer.partition not in self._partitions.owned:
            return False
        if isinstance(problem, OffsetOutOfRange) and self._options.reset != "error":
            for partition, offset in (await self._membership.reset_offsets([answer.partition])).items():
                self._partitions.place(partition, offset)
            return False
        if isinstance(problem, (*RETRIABLE, NotFound)):
            # NotFound: the topic was deleted, and the group will say so.
            with suppress(StreamHouseError):
                await self._data.refresh([answer.partition.topic])
            return True
        raise problem

    def _note_failing(self, problem: StreamHouseError | None) -> None:
        """Polls may be short: it is over all of them that nothing but failures says that this will not pass."""
        now_ms = self._clock.monotonic_ms()
        if problem is None:
            self._failing_since_ms = None
        elif self._failing_since_ms is None:
            self._failing_since_ms = now_ms
        elif now_ms - self._failing_since_ms >= self._options.retry_ms:
            raise problem

    async def _wait_for_change(self, wait_ms: int) -> None:
        self._membership.changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_ms / 1000):
                await self._membership.changed.wait()

    def _check_usable(self) -> None:
        if self._membership.problem is not None:
            raise self._membership.problem
        if without := self._partitions.without_offset:
            raise OffsetOutOfRange(
                f"group {self.group_id!r} has no offset for {without[0].topic}/{without[0].partition}",
                hint="seek, commit an offset, or let `reset` say where to start",
            )

    def _check_owned(self, partition: GroupPartition) -> None:
        if partition not in self._partitions.owned:
            raise StaleGeneration(
                f"{partition.topic}/{partition.partition} is not assigned to member {self.member_id!r}",
                hint="another member may have it now; poll again",
            )

    async def _close_connections(self) -> None:
        await self._data.close()
        await self._group.close()
