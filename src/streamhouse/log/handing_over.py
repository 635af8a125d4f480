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

    async def hand_over(self, transfers: Sequence[Transfer], timeout_ms: int) -> dict[TopicPartition, str]:
        """Give partitions to those that accepted them: flush while writing goes on, stop writing, flush the little that
        came meanwhile, and let the metadata store move the leases. Returned is why, for those that did not go."""
        leaders = self._leadership.leaders
        refusals = {
            transfer.partition: "it is not led here any more"
            for transfer in transfers
            if transfer.partition not in leaders
        }
        for start in range(0, len(transfers), _HANDED_OVER_AT_ONCE):
            accepted = [
                (transfer, leaders[transfer.partition])
                for transfer in transfers[start : start + _HANDED_OVER_AT_ONCE]
                if transfer.partition in leaders
            ]
            problem = await self._prepare([leader for _, leader in accepted], timeout_ms)
            if problem is None:
                moving = [_Moving(transfer, leader, leader.give_up_writing()) for transfer, leader in accepted]
                refusals |= await self._give_away(moving)
            else:
                refusals |= dict.fromkeys((leader.partition for _, leader in accepted), problem)
        return refusals

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
        is_asked = False
        try:
            async with asyncio.timeout(_STOPPED_LIMIT_MS / 1000):
                await asyncio.gather(*(self._settle(leader) for _, leader, _ in moving))
                is_asked = True
                results = await self._store.complete_transfers(
                    self._agent_id,
                    [(transfer.transfer_id, leader.epoch, leader.high_watermark) for transfer, leader, _ in moving],
                    self._ttl_ms,
                )
        except TimeoutError:
            what = "the metadata store did not answer" if is_asked else "the last records were not stored"
            results = [TimeoutError(f"{what} within {_STOPPED_LIMIT_MS} ms")] * len(moving)
        except StreamHouseError as problem:
            results = [problem] * len(moving)
        except BaseException:  # whoever waited for this no longer does: nobody is left to say how it ended
            for _, leader, given_up in moving:
                self._leadership.doubt(leader, given_up)
            raise
        return await self._conclude(moving, results, is_asked=is_asked)

    async def _conclude(
        self, moving: Sequence[_Moving], results: Sequence[Exception | None], *, is_asked: bool
    ) -> dict[TopicPartition, str]:
        """`is_asked`: the metadata store may have moved the leases, or do so yet."""
        refusals: dict[TopicPartition, str] = {}
        for (transfer, leader, given_up), refusal in zip(moving, results, strict=True):
            if refusal is None:
                name = f"{leader.topic}/{leader.partition.partition}"
                self._leadership.events["handed_over"] += 1
                self._leadership.depose(leader, NotLeader(f"{name} was handed over to {transfer.to_agent_id}"))
                continue
            refusals[leader.partition] = str(refusal)
            if is_asked:
                self._leadership.doubt(leader, given_up)
            else:
                leader.take_back(given_up)
        if refusals:
            try:
                await self._leadership.renew()
            except Unavailable as problem:
                _log.warning("cannot renew leases after a hand-over that failed, trying again: %s", problem)
        return refusals
