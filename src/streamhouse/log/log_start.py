"""Moves the start of a led partition's log forward: in the metadata store, then for the leader's readers."""

from __future__ import annotations

import asyncio
import logging

from streamhouse.log.leader import PartitionLeader
from streamhouse.metadata.store import SegmentRow, SegmentStore
from streamhouse.model.errors import NotLeader, OutcomeUnknown, StaleEpoch, StreamHouseError, Unavailable
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.retry import backoff_ms
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)
_LONGEST_ANSWER_MS = 10_000


class LogStartMover:
    """A partition has at most one move under way, so that what the store did is known before the next one."""

    def __init__(self, *, agent_id: str, store: SegmentStore, clock: Clock) -> None:
        self._agent_id = agent_id
        self._store = store
        self._clock = clock
        self._tasks = TaskGroup("log starts")
        self._moving: dict[PartitionLeader, asyncio.Task[StreamHouseError | None]] = {}

    async def move(self, leader: PartitionLeader, log_start_offset: int) -> None:
        """As `SegmentStore.advance_log_start`. After a while OutcomeUnknown says that it is still under way: it goes on
        when the caller has gone, for the store may have done it, and then our readers must know."""
        try:
            async with asyncio.timeout(_LONGEST_ANSWER_MS / 1000):
                while leader in self._moving:
                    await asyncio.wait([self._moving[leader]])
                moving = self._start(leader, log_start_offset)
                await asyncio.wait([moving])
        except TimeoutError:
            raise OutcomeUnknown(f"the start of {leader.partition} is being moved", hint="look at it later") from None
        problem = NotLeader("this agent is stopping") if moving.cancelled() else moving.result()
        if problem is not None:
            raise problem

    async def close(self) -> None:
        await self._tasks.cancel()

    def _start(self, leader: PartitionLeader, log_start_offset: int) -> asyncio.Task[StreamHouseError | None]:
        moving = self._tasks.start(self._attempt(leader, log_start_offset), leader.topic)
        self._moving[leader] = moving
        moving.add_done_callback(lambda _: self._moving.pop(leader))
        return moving

    async def _attempt(self, leader: PartitionLeader, log_start_offset: int) -> StreamHouseError | None:
        """What went wrong is for who waits."""
        if log_start_offset <= leader.log_start_offset:
            return None  # a move that this one waited for went further
        try:
            dropped = await self._advance(leader, log_start_offset)
        except StreamHouseError as refusal:
            return refusal
        leader.log_start_moved(log_start_offset)
        if dropped:
            _log.info("%s/%d: dropped %d segments", leader.topic, leader.partition.partition, len(dropped))
        return None

    async def _advance(self, leader: PartitionLeader, log_start_offset: int) -> list[SegmentRow]:
        """Until the store answers: a try that it did not answer may have been done all the same, and then the objects
        that our readers still use are removed some day."""
        is_in_doubt = False
        for wait_ms in backoff_ms():
            try:
                return await self._store.advance_log_start(
                    leader.partition, self._agent_id, leader.epoch, log_start_offset
                )
            except Unavailable as problem:
                _log.warning("cannot move the start of %s, trying again: %s", leader.partition, problem)
                is_in_doubt = True
            except StaleEpoch:
                if not is_in_doubt:
                    raise
                # We go on leading with the next epoch, which it is tried with then, or not at all.
            if leader.removed:
                raise NotLeader(f"this agent no longer leads {leader.partition}")
            await self._clock.sleep_ms(wait_ms)
        raise AssertionError("the waits are endless")
