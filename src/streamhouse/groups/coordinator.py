"""Every group of this node, behind functions that no protocol has a part in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from streamhouse.core.groups.classic import ClassicGroup
from streamhouse.core.groups.classic_messages import (
    ClassicLimits,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeavingMember,
    MemberClaim,
    SyncReply,
    SyncRequest,
)
from streamhouse.core.groups.classic_snapshot import GroupDescription
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.consumer_admission import GroupKind, join_refusal, member_refusal
from streamhouse.core.groups.consumer_heartbeat import (
    JOIN_EPOCH,
    ConsumerLimits,
    HeartbeatReply,
    HeartbeatRequest,
)
from streamhouse.core.groups.consumer_snapshot import ConsumerGroupDescription
from streamhouse.core.groups.consumer_target import Topics
from streamhouse.core.groups.outcome import GroupError
from streamhouse.core.placement.shards import SHARD_COUNT, shard_of
from streamhouse.groups.group import Group
from streamhouse.groups.shard import LeasedShard
from streamhouse.groups.snapshot import Machine
from streamhouse.metadata.groups import CommittedOffset, CoordinatorStore
from streamhouse.model.errors import NotFound, StreamHouseError, Unavailable
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)
_LONGEST_EXPIRY_INTERVAL_MS = 600_000
T = TypeVar("T")
Description: TypeAlias = GroupDescription | ConsumerGroupDescription
CommitResult: TypeAlias = GroupError | dict[TopicPartition, Exception | None]


class GroupCoordinator:
    def __init__(
        self,
        *,
        agent_id: str,
        store: CoordinatorStore,
        clock: Clock,
        topics: Callable[[], Topics],
        lease_ttl_ms: int,
        lease_renewal_ms: int,
        offsets_retention_ms: int,
        classic_limits: ClassicLimits,
        consumer_limits: ConsumerLimits,
    ) -> None:
        self._agent_id = agent_id
        self._store = store
        self._clock = clock
        self._topics = topics
        self._lease_ttl_ms = lease_ttl_ms
        self._lease_renewal_ms = lease_renewal_ms
        self._offsets_retention_ms = offsets_retention_ms
        self._classic_limits = classic_limits
        self._consumer_limits = consumer_limits
        self._shards: dict[int, LeasedShard] = {}
        self._groups: dict[str, Group] = {}
        self._owners: dict[str, asyncio.Task[Any]] = {}
        self._tasks = TaskGroup("groups")

    # --- life ---

    async def start(self) -> None:
        """Take every shard, waiting for those of an agent that is gone, and bring their groups back."""
        while missing := [shard for shard in range(SHARD_COUNT) if shard not in self._shards]:
            leases = await self._store.acquire_shards(self._agent_id, missing, self._lease_ttl_ms)
            for lease in leases:
                if lease is not None:
                    self._shards[lease.shard] = LeasedShard(self._store, lease)
                    await self._load(self._shards[lease.shard])
            if None in leases:
                _log.warning("waiting for another agent's leases of group shards")
                await self._clock.sleep_ms(min(1000, self._lease_ttl_ms / 4))
        self._tasks.start(self._keep_leases(), "leases")
        self._tasks.start(self._expire_offsets(), "expiry")

    async def stop(self) -> None:
        for group in self._groups.values():
            group.let_go()
        await self._tasks.cancel()
        try:
            await self._store.release_shards(self._agent_id, [shard.lease for shard in self._shards.values()])
        except StreamHouseError as problem:
            _log.warning("group shards were not released: %s", problem)

    async def abort(self) -> None:
        await self._tasks.cancel()

    def topics_changed(self) -> None:
        """A topic came or went: groups that subscribe on this side look again."""
        for group in self._groups.values():
            if group.kind is GroupKind.CONSUMER:
                self._tasks.start(group.ask(group.topics_changed), "topics")

    # --- the classic protocol ---

    async def join(self, group_id: str, request: JoinRequest) -> JoinReply:
        group = self._group(group_id)

        async def decide() -> asyncio.Future[Any]:
            refusal = join_refusal(joining=GroupKind.CLASSIC, existing=group.kind, has_members=group.has_members)
            if refusal is not None:
                return _answered(JoinReply(error=refusal, member_id=request.member_id))
            machine = group.become(GroupKind.CLASSIC)
            assert isinstance(machine, ClassicGroup)
            ticket, answer = group.expect()
            await group.settle(machine.join(ticket, request, group.now_ms))
            return answer

        reply = await self._late(group, decide)
        assert isinstance(reply, JoinReply)
        return reply

    async def sync(self, group_id: str, request: SyncRequest) -> SyncReply:
        group = self._groups.get(group_id)
        if group is None:
            return SyncReply(error=GroupError.UNKNOWN_MEMBER_ID)

        async def decide() -> asyncio.Future[Any]:
            machine = group.machine
            if not isinstance(machine, ClassicGroup):
                return _answered(SyncReply(error=member_refusal(asking=GroupKind.CLASSIC, existing=group.kind)))
            ticket, answer = group.expect()
            await group.settle(machine.sync(ticket, request, group.now_ms))
            return answer

        reply = await self._late(group, decide)
        assert isinstance(reply, SyncReply)
        return reply

    async def leave(self, group_id: str, members: Sequence[LeavingMember]) -> LeaveReply:
        group = self._groups.get(group_id)
        if group is None:
            return LeaveReply(error=GroupError.UNKNOWN_MEMBER_ID)

        async def decide() -> asyncio.Future[Any]:
            machine = group.machine
            if not isinstance(machine, ClassicGroup):
                return _answered(LeaveReply(error=member_refusal(asking=GroupKind.CLASSIC, existing=group.kind)))
            ticket, answer = group.expect()
            await group.settle(machine.leave(ticket, members, group.now_ms))
            return answer

        reply = await self._late(group, decide)
        assert isinstance(reply, LeaveReply)
        return reply

    async def heartbeat(self, group_id: str, claim: MemberClaim) -> GroupError | None:
        group = self._groups.get(group_id)
        if group is None:
            return GroupError.UNKNOWN_MEMBER_ID

        async def decide() -> GroupError | None:
            if not isinstance(group.machine, ClassicGroup):
                return member_refusal(asking=GroupKind.CLASSIC, existing=group.kind)
            return group.machine.heartbeat(claim, group.now_ms)

        return await group.ask(decide)

    async def disconnect(self, group_id: str, member_id: str) -> None:
        """A member's connection has ended, through a door whose members live as long as their connections: it has
        left, and what follows from that is stored, before this returns."""
        group = self._groups.get(group_id)
        if group is None:
            return

        async def decide() -> None:
            if isinstance(group.machine, ClassicGroup):
                await group.settle(group.machine.disconnect(member_id, group.now_ms))

        await group.ask(decide)

    # --- the consumer protocol ---

    async def consumer_heartbeat(self, group_id: str, request: HeartbeatRequest) -> HeartbeatReply | GroupError:
        joins = request.member_epoch == JOIN_EPOCH
        group = self._group(group_id) if joins else self._groups.get(group_id)
        if group is None:
            return GroupError.UNKNOWN_MEMBER_ID

        async def decide() -> HeartbeatReply | GroupError:
            if joins:
                refusal = join_refusal(joining=GroupKind.CONSUMER, existing=group.kind, has_members=group.has_members)
                if refusal is not None:
                    return refusal
                group.become(GroupKind.CONSUMER)
            if not isinstance(group.machine, ConsumerGroup):
                return member_refusal(asking=GroupKind.CONSUMER, existing=group.kind) or GroupError.UNKNOWN_MEMBER_ID
            decision = group.machine.heartbeat(request, self._topics(), group.now_ms)
            if decision.persist:
                await group.store()
            return decision.reply

        return await group.ask(decide)

    # --- offsets ---

    async def commit(
        self, group_id: str, claim: MemberClaim, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> CommitResult:
        """Only from the current generation, which the transaction that stores them checks again."""
        group = self._group(group_id)

        async def decide() -> CommitResult:
            machine = group.machine
            if isinstance(machine, ClassicGroup):
                refusal = machine.check_commit(claim, group.now_ms)
            elif isinstance(machine, ConsumerGroup):
                refusal = machine.check_commit(claim.member_id, claim.generation)
            else:
                refusal = None if claim.generation < 0 else GroupError.UNKNOWN_MEMBER_ID
            if refusal is not None:
                return refusal
            generation = group.generation if group.has_members else None
            return await self._shard(group_id).commit(group_id, generation, offsets)

        return await group.ask(decide)

    async def committed(
        self, group_id: str, member_id: str | None, member_epoch: int
    ) -> GroupError | dict[TopicPartition, CommittedOffset]:
        group = self._groups.get(group_id)
        if group is not None and isinstance(group.machine, ConsumerGroup):
            refusal = group.machine.check_fetch(member_id, member_epoch)
            if refusal is not None:
                return refusal
        return await self._store.fetch_group_offsets(group_id)

    async def delete_offsets(
        self, group_id: str, choose: Callable[[Machine | None], GroupError | Sequence[TopicPartition]]
    ) -> CommitResult:
        """`choose` says which, of the group as it is when it is its turn, or why none."""
        group = self._groups.get(group_id)
        if group is None:
            return GroupError.GROUP_ID_NOT_FOUND

        async def decide() -> CommitResult:
            chosen = choose(group.machine)
            if isinstance(chosen, GroupError):
                return chosen
            return await self._shard(group_id).delete_offsets(group_id, chosen)

        return await group.ask(decide)

    # --- administration ---

    def describe(self, group_id: str) -> Description | None:
        group = self._groups.get(group_id)
        return group.machine.describe() if group is not None and group.machine is not None else None

    def all_groups(self) -> list[Group]:
        return [self._groups[group_id] for group_id in sorted(self._groups)]

    def find(self, group_id: str) -> Group | None:
        return self._groups.get(group_id)

    async def delete(self, group_id: str) -> GroupError | None:
        group = self._groups.get(group_id)
        if group is None:
            return GroupError.GROUP_ID_NOT_FOUND

        async def decide() -> GroupError | None:
            machine = group.machine
            if isinstance(machine, ClassicGroup):
                refusal = machine.delete(group.now_ms)
            else:
                refusal = machine.delete() if machine is not None else None
            if refusal is None:
                try:
                    await self._shard(group_id).delete(group_id)
                except NotFound:
                    refusal = GroupError.GROUP_ID_NOT_FOUND
            return refusal

        refusal = await group.ask(decide)
        if refusal is None or refusal is GroupError.GROUP_ID_NOT_FOUND:
            self._close(group_id)
        return refusal

    # --- inside ---

    def _group(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            group = Group(group_id, None, **self._parts(self._shard(group_id)))
            self._open(group_id, group)
        return group

    def _shard(self, group_id: str) -> LeasedShard:
        return self._shards[shard_of(group_id)]

    def _parts(self, shard: LeasedShard) -> dict[str, Any]:
        return {
            "shard": shard,
            "clock": self._clock,
            "topics": self._topics,
            "classic_limits": self._classic_limits,
            "consumer_limits": self._consumer_limits,
        }

    def _open(self, group_id: str, group: Group) -> None:
        self._groups[group_id] = group
        self._owners[group_id] = self._tasks.start(group.own(), group_id)

    def _close(self, group_id: str) -> None:
        self._groups.pop(group_id, None)
        owner = self._owners.pop(group_id, None)
        if owner is not None:
            owner.cancel()

    @staticmethod
    async def _late(group: Group, decide: Callable[[], Coroutine[Any, Any, asyncio.Future[Any]]]) -> Any:
        """Ask, and wait for an answer that other members' requests may bring about."""
        return await (await group.ask(decide))

    async def _keep_leases(self) -> None:
        while True:
            await self._clock.sleep_ms(self._lease_renewal_ms)
            try:
                await self._renew()
            except Unavailable as problem:
                _log.warning("cannot renew the leases of group shards, trying again: %s", problem)

    async def _renew(self) -> None:
        shards = list(self._shards.values())
        renewed = await self._store.renew_shards(self._agent_id, [shard.lease for shard in shards], self._lease_ttl_ms)
        lost = [shard for shard, lease in zip(shards, renewed, strict=True) if lease is None]
        for shard, lease in zip(shards, renewed, strict=True):
            if lease is not None:
                shard.lease = lease
        if lost:
            again = await self._store.acquire_shards(
                self._agent_id, [shard.lease.shard for shard in lost], self._lease_ttl_ms
            )
            for shard, lease in zip(lost, again, strict=True):
                if lease is None:
                    continue
                _log.warning("took group shard %d again, epoch %d", lease.shard, lease.epoch)
                nobody_led_between = lease.epoch == shard.lease.epoch + 1
                shard.lease = lease
                if not nobody_led_between:
                    await self._load(shard)

    async def _load(self, shard: LeasedShard) -> None:
        """The groups of a shard as they are stored, whatever was in memory of them."""
        rows = await shard.load_all()
        for group_id in [group_id for group_id in self._groups if shard_of(group_id) == shard.lease.shard]:
            self._groups[group_id].let_go()
            self._close(group_id)
        for row in rows:
            self._open(row.group_id, Group(row.group_id, row, **self._parts(shard)))

    async def _expire_offsets(self) -> None:
        while True:
            await self._clock.sleep_ms(min(self._offsets_retention_ms, _LONGEST_EXPIRY_INTERVAL_MS))
            for shard in self._shards.values():
                try:
                    await shard.expire(self._offsets_retention_ms)
                    await self._forget_unstored(shard)
                except StreamHouseError as problem:
                    _log.warning("offsets are expired later: %s", problem)

    async def _forget_unstored(self, shard: LeasedShard) -> None:
        """Groups that nobody is in and nothing is stored of: expired, or joined once and never again."""
        candidates = [
            group_id
            for group_id, group in self._groups.items()
            if shard_of(group_id) == shard.lease.shard and not group.has_members
        ]
        stored = {row.group_id for row in await shard.load_all()}
        for group_id in candidates:
            group = self._groups.get(group_id)
            if group is not None and group_id not in stored and group.is_idle:
                self._close(group_id)


def _answered(reply: T) -> asyncio.Future[T]:
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    future.set_result(reply)
    return future
