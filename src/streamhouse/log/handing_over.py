"""How partitions that are led here go to other agents, with every record and hardly a pause for those who write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from streamhouse.log.leader import GivenUp, PartitionLeader
from streamhouse.log.leadership import Leadership
from streamhouse.log.uploader import Uploader
from streamhouse.metadata.cluster import Transfer, TransferStore
from streamhouse.model.errors import NotLeader, StreamHouseError, Unavailable
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import Clock

_log = logging.getLogger(__name__)
_HANDED_OVER_AT_ONCE = 64
_STOPPED_LIMIT_MS = 2_000
_QUICK_MS = _STOPPED_LIMIT_MS // 2
"""Writing is stopped only if, just before, much the same took no longer than that."""


class _Accepted(NamedTuple):
    """`stop_by_ms`: when its writing must be stopped at the latest, if it is to be completed in its time."""

    transfer: Transfer
    leader: PartitionLeader
    stop_by_ms: int


class _Moving(NamedTuple):
    transfer: Transfer
    leader: PartitionLeader
    given_up: GivenUp


class HandingOver:
    def __init__(
        self,
        *,
        agent_id: str,
        store: TransferStore,
        leadership: Leadership,
        uploader: Uploader,
        clock: Clock,
        ttl_ms: int,
        settle: Callable[[PartitionLeader], Awaitable[None]],
    ) -> None:
        """`settle` waits until all that was appended is in the object store."""
        self._agent_id = agent_id
        self._store = store
        self._leadership = leadership
        self._uploader = uploader
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._settle = settle

    async def hand_over(self, transfers: Sequence[Transfer], looked_up_at_ms: int) -> dict[TopicPartition, str]:
        """Give partitions to those that accepted them: flush while writing goes on, stop writing, flush the little that
        came meanwhile, and let the metadata store move the leases. Returned is why, for those that did not go.

        Each has the time that it had left when it was looked up."""
        leaders = self._leadership.leaders
        refusals = {
            transfer.partition: "it is not led here any more"
            for transfer in transfers
            if transfer.partition not in leaders
        }
        for start in range(0, len(transfers), _HANDED_OVER_AT_ONCE):
            accepted = [
                _Accepted(transfer, leaders[transfer.partition], looked_up_at_ms + transfer.left_ms - _STOPPED_LIMIT_MS)
                for transfer in transfers[start : start + _HANDED_OVER_AT_ONCE]
                if transfer.partition in leaders
            ]
            refusals |= await self._hand_over(accepted)
        return refusals

    async def _hand_over(self, accepted: Sequence[_Accepted]) -> dict[TopicPartition, str]:
        in_time, refusals = self._in_time(accepted)
        if not in_time:
            return refusals
        stop_by_ms = max(stop_by_ms for _, _, stop_by_ms in in_time)
        problem = await self._prepare([leader for _, leader, _ in in_time], stop_by_ms - self._clock.monotonic_ms())
        if problem is not None:
            return refusals | dict.fromkeys((leader.partition for _, leader, _ in in_time), problem)
        in_time, late = self._in_time(in_time)
        moving = [_Moving(transfer, leader, leader.give_up_writing()) for transfer, leader, _ in in_time]
        return refusals | late | (await self._give_away(moving) if moving else {})

    def _in_time(self, accepted: Sequence[_Accepted]) -> tuple[list[_Accepted], dict[TopicPartition, str]]:
        """And why, for those that would be over before their leases could be moved: writing does not stop for them."""
        now_ms = self._clock.monotonic_ms()
        late = f"there was less than {_STOPPED_LIMIT_MS} ms left to complete it"
        return (
            [item for item in accepted if item.stop_by_ms >= now_ms],
            {item.leader.partition: late for item in accepted if item.stop_by_ms < now_ms},
        )

    async def _prepare(self, leaders: Sequence[PartitionLeader], timeout_ms: int) -> str | None:
        """Flush while writing goes on, until what comes meanwhile is so little that writing need not stop for long.

        Returned is why they cannot be handed over now: then nothing has changed for those who write."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await asyncio.gather(*(self._uploader.flush(leader) for leader in leaders))
                begun_ms = self._clock.monotonic_ms()
                await self._leadership.renew([leader.partition for leader in leaders])
                await asyncio.gather(*(self._uploader.flush(leader) for leader in leaders))
                took_ms = self._clock.monotonic_ms() - begun_ms
        except TimeoutError:
            return f"its records were not in the object store within {timeout_ms} ms"
        except StreamHouseError as problem:
            return str(problem)
        if took_ms > _QUICK_MS:
            return (
                f"storing the last few records took {took_ms} ms, and writing may stop for {_STOPPED_LIMIT_MS} ms only"
            )
        return None

    async def _give_away(self, moving: Sequence[_Moving]) -> dict[TopicPartition, str]:
        results: Sequence[Exception | None]
        is_in_doubt = False
        try:
            async with asyncio.timeout(_STOPPED_LIMIT_MS / 1000):
                await asyncio.gather(*(self._settle(leader) for _, leader, _ in moving))
                is_in_doubt = True
                results = await self._store.complete_transfers(
                    self._agent_id,
                    [(transfer.transfer_id, leader.epoch, leader.high_watermark) for transfer, leader, _ in moving],
                    self._ttl_ms,
                )
            is_in_doubt = False
        except TimeoutError:
            what = "the metadata store did not answer" if is_in_doubt else "the last records were not stored"
            results = [TimeoutError(f"{what} within {_STOPPED_LIMIT_MS} ms")] * len(moving)
        except StreamHouseError as problem:
            results = [problem] * len(moving)
        except BaseException:  # whoever waited for this no longer does: nobody is left to say how it ended
            for _, leader, given_up in moving:
                self._leadership.doubt(leader, given_up)
            raise
        return await self._conclude(moving, results, is_in_doubt=is_in_doubt)

    async def _conclude(
        self, moving: Sequence[_Moving], results: Sequence[Exception | None], *, is_in_doubt: bool
    ) -> dict[TopicPartition, str]:
        """`is_in_doubt`: the metadata store was asked and has not answered; it may have moved the leases, or do so yet.

        What it has refused it will not move any more. Whether the lease is still ours the renewal tells, before which
        nothing is written; if it is not, the leader stops as it does for any lease that was lost."""
        refusals: dict[TopicPartition, str] = {}
        for (transfer, leader, given_up), refusal in zip(moving, results, strict=True):
            if refusal is None:
                name = f"{leader.topic}/{leader.partition.partition}"
                self._leadership.events["handed_over"] += 1
                self._leadership.depose(leader, NotLeader(f"{name} was handed over to {transfer.to_agent_id}"))
                continue
            refusals[leader.partition] = str(refusal)
            if is_in_doubt:
                self._leadership.doubt(leader, given_up)
            else:
                leader.take_back(given_up)
        if refusals:
            try:
                await self._leadership.renew()
            except Unavailable as problem:
                _log.warning("cannot renew leases after a hand-over that failed, trying again: %s", problem)
        return refusals
