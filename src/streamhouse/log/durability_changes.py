"""How a partition that is led here comes to the durability that its topic has now: its leadership ends, with everything
in the object store, and the next one, ours or another's, goes by the new durability."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from streamhouse.log.leader import PartitionLeader
from streamhouse.log.leadership import Leadership
from streamhouse.log.uploader import Uploader
from streamhouse.model.errors import NotLeader, OutcomeUnknown, StreamHouseError
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)


class DurabilityChanges:
    def __init__(
        self,
        *,
        leadership: Leadership,
        uploader: Uploader,
        clock: Clock,
        retry_ms: int,
        tasks: TaskGroup,
        settle: Callable[[PartitionLeader], Awaitable[None]],
        lost: Callable[[], None],
    ) -> None:
        """`settle` waits until all that was appended is in the object store; `lost` is called when a leadership has
        ended, for somebody to begin the next."""
        self._leadership = leadership
        self._uploader = uploader
        self._clock = clock
        self._retry_ms = retry_ms
        self._tasks = tasks
        self._settle = settle
        self._lost = lost
        self._under_way: set[PartitionLeader] = set()

    def match(self, leader: PartitionLeader) -> None:
        """See to it that a leader has its topic's durability. Saying it twice is saying it once."""
        if _is_due(leader) and leader not in self._under_way:
            self._under_way.add(leader)
            self._tasks.start(self._change(leader), "durability")

    async def _change(self, leader: PartitionLeader) -> None:
        try:
            while _is_due(leader):
                try:
                    await self._end(leader)
                except StreamHouseError as problem:
                    _log.warning("the durability of %s cannot change yet: %s", leader.topic, problem)
                    await self._clock.sleep_ms(self._retry_ms)
        finally:
            self._under_way.discard(leader)

    async def _end(self, leader: PartitionLeader) -> None:
        await self._uploader.flush(leader)  # writing goes on meanwhile, and stops for the little that is left
        given_up = leader.give_up_writing()
        try:
            await self._settle(leader)
            epoch = leader.epoch
            await self._leadership.release([leader], drained=True)
            if leader.epoch != epoch or not (leader.is_drained or leader.removed):
                name = f"{leader.topic}/{leader.partition.partition}"
                raise OutcomeUnknown(f"{name} is not as it was when its release was asked for")
        except BaseException:
            # The release may be done or not, or be done yet. It goes on under a new epoch.
            self._leadership.doubt(leader, given_up)
            raise
        self._leadership.depose(leader, NotLeader(f"the durability of {leader.topic} has changed"))
        self._lost()


def _is_due(leader: PartitionLeader) -> bool:
    return not leader.removed and leader.is_local != (leader.config.durability == "wal")
