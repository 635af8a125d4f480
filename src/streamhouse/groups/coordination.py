"""Which shards of groups this agent coordinates: leases taken, kept, taken again when they were lost, and let go.

A lease gives liveness only; safety comes from the epoch that every change of a group is checked against."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence

from streamhouse.core.groups.outcome import GroupError
from streamhouse.core.placement.lease import writable_until_ms
from streamhouse.core.placement.shards import shard_of
from streamhouse.groups.shard import LeasedShard
from streamhouse.groups.shard_groups import MakeGroup, ShardGroups
from streamhouse.metadata.groups import CoordinatorStore
from streamhouse.model.errors import StreamHouseError
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)


class Coordination:
    """Owns the map of held shards. `lost` is called when another agent turns out to have taken one of them."""

    def __init__(
        self,
        *,
        agent_id: str,
        store: CoordinatorStore,
        clock: Clock,
        ttl_ms: int,
        make_group: MakeGroup,
        tasks: TaskGroup,
        lost: Callable[[], None] | None,
    ) -> None:
        self._agent_id = agent_id
        self._store = store
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._make_group = make_group
        self._tasks = tasks
        self._lost = lost
        self._held: dict[int, ShardGroups] = {}
        self._leasing = asyncio.Lock()
        """Held while leases are acquired or released in the store, one after the other."""
        self._renewing = asyncio.Lock()
        """Held while leases are renewed, which waits for no acquisition and no release: those may take longer than a
        lease lasts."""

    def __iter__(self) -> Iterator[ShardGroups]:
        """Those that are served."""
        return iter([held for held in self._held.values() if held.is_served])

    @property
    def is_loading(self) -> bool:
        return any(held.leased.is_live and not held.is_loaded for held in self._held.values())

    def find(self, group_id: str) -> ShardGroups | GroupError:
        """The shard of a group, or why it cannot be asked about here."""
        held = self._held.get(shard_of(group_id))
        if held is None or not held.leased.is_live:
            return GroupError.NOT_COORDINATOR
        return held if held.is_loaded else GroupError.COORDINATOR_LOAD_IN_PROGRESS

    async def acquire(self, shards: Sequence[int]) -> None:
        """Those that another agent holds are left out, and so is one that could not be read: then this raises."""
        async with self._leasing:
            missing = [shard for shard in dict.fromkeys(shards) if shard not in self._held]
            if not missing:
                return
            asked_at_ms = self._clock.monotonic_ms()
            leases = await self._store.acquire_shards(self._agent_id, missing, self._ttl_ms)
            until_ms = writable_until_ms(asked_at_ms, self._ttl_ms)
            taken = [
                ShardGroups(LeasedShard(self._store, self._clock, lease, until_ms), self._make_group, self._tasks)
                for lease in leases
                if lease is not None
            ]
            self._held.update((held.number, held) for held in taken)
        try:
            await self._load(taken)
        finally:
            unread = [held.number for held in taken if not held.is_loaded]
            if unread:
                await self.release(unread)

    async def release(self, shards: Sequence[int]) -> None:
        """Whoever waits is answered before the store is asked; if that fails, the leases run out by themselves."""
        let_go = self._drop(shards)
        async with self._leasing:
            let_go += self._drop(shards)  # an acquisition may have been under way
            if not let_go:
                return
            async with self._renewing:  # which may have taken one again, with another epoch
                leases = [held.leased.lease for held in let_go]
            try:
                await self._store.release_shards(self._agent_id, leases)
            except StreamHouseError as problem:
                _log.warning("group shards were not released: %s", problem)

    async def claim(self, shards: Sequence[int], ttl_ms: int) -> None:
        await self._store.claim_shards(self._agent_id, shards, ttl_ms)

    async def release_all(self) -> None:
        await self.release(list(self._held))

    async def renew(self) -> None:
        """Extend the leases. One that was lost is taken again, and its groups are read again, if nobody has it."""
        try:
            async with self._renewing:
                lost = await self._extend()
        finally:
            for held in self._held.values():
                if not held.leased.is_live:
                    held.let_go()
        if self._drop([held.number for held in lost]) and self._lost is not None:
            self._lost()
        # What is read again is not waited for: the next renewal must not be late.
        unread = [held for held in self._held.values() if not (held.is_loaded or held.loading.locked())]
        if unread:
            self._tasks.start(self._load_again(unread), "loading")

    async def outlast(self, duration_ms: int) -> None:
        """Have every lease for so much longer, for a clock that is about to be moved (a fault hook)."""
        longer_ms = 2 * duration_ms  # their holder stops answering a share of them early
        self._ttl_ms += longer_ms
        try:
            await self.renew()
        finally:
            self._ttl_ms -= longer_ms

    async def _extend(self) -> list[ShardGroups]:
        """Those that others have are returned."""
        asked = list(self._held.values())
        if not asked:
            return []
        asked_at_ms = self._clock.monotonic_ms()
        leases = await self._store.renew_shards(self._agent_id, [held.leased.lease for held in asked], self._ttl_ms)
        until_ms = writable_until_ms(asked_at_ms, self._ttl_ms)
        expired: list[ShardGroups] = []
        for held, lease in zip(asked, leases, strict=True):
            if lease is not None:
                held.leased.extend(lease, until_ms)
            elif self._is_held(held):
                held.leased.lapse()
                expired.append(held)
        return await self._take_again(expired) if expired else []

    async def _take_again(self, expired: list[ShardGroups]) -> list[ShardGroups]:
        """The leases ran out while nobody renewed them, say because the process was paused or the store was away."""
        asked_at_ms = self._clock.monotonic_ms()
        leases = await self._store.acquire_shards(self._agent_id, [held.number for held in expired], self._ttl_ms)
        until_ms = writable_until_ms(asked_at_ms, self._ttl_ms)
        lost: list[ShardGroups] = []
        for held, lease in zip(expired, leases, strict=True):
            held.let_go()
            if lease is None:
                _log.info("another agent coordinates group shard %d", held.number)
                lost.append(held)
            else:
                _log.info("took group shard %d again, epoch %d", lease.shard, lease.epoch)
                held.leased.extend(lease, until_ms)
        return lost

    async def _load(self, shards: Sequence[ShardGroups]) -> None:
        """All that can be loaded is, also if others cannot."""
        outcomes = await asyncio.gather(*(self._load_one(held) for held in shards), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _load_again(self, shards: Sequence[ShardGroups]) -> None:
        try:
            await self._load(shards)
        except StreamHouseError as problem:
            _log.warning("groups cannot be read yet, trying again with the next renewal: %s", problem)

    async def _load_one(self, held: ShardGroups) -> None:
        async with held.loading:
            while self._is_held(held) and not held.is_loaded:
                epoch = held.leased.lease.epoch
                rows = await held.leased.load_all()
                # Read before the lease was lost and taken again, it may be old.
                if self._is_held(held) and held.leased.lease.epoch == epoch:
                    held.fill(rows)

    def _is_held(self, held: ShardGroups) -> bool:
        return self._held.get(held.number) is held

    def _drop(self, shards: Sequence[int]) -> list[ShardGroups]:
        dropped = [self._held.pop(shard) for shard in shards if shard in self._held]
        for held in dropped:
            held.let_go()
        return dropped
