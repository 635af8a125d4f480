"""One agent's part in placing the shards of group coordinators: takes what is nobody's, asks for what it should have,
and lets go what another should have and has asked for.

All of a group is in the metadata store, so a shard needs no hand-over: let go, and the next takes it. It is let go only
to an agent that asks for it, and so is there; if that one does not come for it in time, it is taken back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from streamhouse.core.placement.assignment import Assignment
from streamhouse.core.placement.attempts import Attempts
from streamhouse.core.placement.rebalance import plan
from streamhouse.metadata.cluster import ShardPlacement
from streamhouse.runtime.clock import Clock

CLAIM_MS = 10_000
"""For how long asking for a shard counts: longer than the next round of whoever holds it takes to come."""
UNTAKEN_MS = 2_000
"""How long a shard that was let go waits for who asked for it."""


class ShardHost(Protocol):
    """What coordinates groups here."""

    @property
    def held_shards(self) -> Collection[int]: ...

    async def acquire_shards(self, shards: Sequence[int]) -> None: ...

    async def release_shards(self, shards: Sequence[int]) -> None: ...

    async def claim_shards(self, shards: Sequence[int], ttl_ms: int) -> None: ...


class ShardPlacing:
    def __init__(self, agent_id: str, host: ShardHost, clock: Clock) -> None:
        self._agent_id = agent_id
        self._host = host
        self._clock = clock
        self._let_go: dict[int, tuple[str, int]] = {}
        """Shards that nobody has taken yet: who asked for each, and when it is taken back."""
        self._attempts: Attempts[int] = Attempts()
        self._postponed: list[int] = []
        """Shards that were asked for, and not taken when they were let go before."""
        self.to_hand_over = 0
        """Shards that this agent holds and another one should."""

    async def place(self, assignment: Assignment, shards: Sequence[ShardPlacement]) -> None:
        """One round."""
        now_ms = self._clock.monotonic_ms()
        holders = {placement.shard: placement.agent_id for placement in shards if placement.lease_left_ms > 0}
        claims = {placement.shard: placement.claimed_by for placement in shards}
        steps = plan(
            self._agent_id,
            {placement.shard: assignment.desired_shard_owner(placement.shard) for placement in shards},
            self._host.held_shards,
            holders,
        )
        self._let_go = {shard: waits for shard, waits in self._let_go.items() if shard not in holders}
        self._attempts.keep(dict(steps.hand_over) | {shard: to for shard, (to, _) in self._let_go.items()})
        self.to_hand_over = len(steps.hand_over)
        asked_for = {shard: to for shard, to in steps.hand_over if claims[shard] == to}
        due = {shard: to for shard, to in asked_for.items() if self._attempts.may_try(shard, now_ms)}
        self._postponed = [shard for shard in asked_for if shard not in due]
        if due:
            self._let_go |= {shard: (to, now_ms + UNTAKEN_MS) for shard, to in due.items()}
            await self._host.release_shards(list(due))
        acquire = [*steps.acquire, *self._untaken(now_ms)]
        if acquire:
            await self._host.acquire_shards(acquire)
        missing = [shard for shard in steps.ask_for if claims[shard] != self._agent_id]
        if missing:
            await self._host.claim_shards(missing, CLAIM_MS)

    def _untaken(self, now_ms: int) -> list[int]:
        untaken = [shard for shard, (_, until_ms) in self._let_go.items() if until_ms <= now_ms]
        for shard in untaken:
            asked_by, _ = self._let_go.pop(shard)
            self._attempts.failed(shard, asked_by, f"{asked_by} asked for it and did not take it", now_ms)
        return untaken

    def next_look_ms(self) -> float | None:
        """How long until there is something to do here, if nothing changes."""
        now_ms = self._clock.monotonic_ms()
        untaken = [max(0, until_ms - now_ms) for _, until_ms in self._let_go.values()]
        # Not all that failed: what nobody asks for now would have us look ever anew.
        to_try_again = [self._attempts.wait_left_ms(shard, now_ms) for shard in self._postponed]
        return min([*untaken, *to_try_again], default=None)
