"""The groups that this agent coordinates, behind functions that no protocol has a part in.

A group of a shard that is not held here is refused with NOT_COORDINATOR: whoever asks is to look for its coordinator
again. While a shard is being read, its groups are refused with COORDINATOR_LOAD_IN_PROGRESS."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
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
from streamhouse.core.groups.consumer_heartbeat import (
    JOIN_EPOCH,
    ConsumerLimits,
    HeartbeatReply,
    HeartbeatRequest,
)
from streamhouse.core.groups.consumer_snapshot import ConsumerGroupDescription
from streamhouse.core.groups.consumer_target import Topics
from streamhouse.core.groups.embedded import EmbeddedProtocol
from streamhouse.core.groups.group_kind import GroupKind
from streamhouse.core.groups.named_partitions import name
from streamhouse.core.groups.outcome import GroupError, Refusal
from streamhouse.groups.coordination import Coordination
from streamhouse.groups.group import Group
from streamhouse.groups.shard import LeasedShard
from streamhouse.groups.snapshot import Machine
from streamhouse.metadata.groups import CommittedOffset, CoordinatorStore, GroupRow
from streamhouse.model.errors import NotFound, StaleEpoch, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)
_LONGEST_EXPIRY_INTERVAL_MS = 600_000
_SOONER = 4
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
        group_config: Callable[[str], Mapping[str, str]] = lambda _: {},
        embedded: EmbeddedProtocol,
        lost: Callable[[], None] | None = None,
    ) -> None:
        """`lost` is called when another agent turns out to have taken a shard that was held here."""
        self._store = store
        self._clock = clock
        self._topics = topics
        self._lease_renewal_ms = lease_renewal_ms
        self._offsets_retention_ms = offsets_retention_ms
        self._classic_limits = classic_limits
        self._consumer_limits = consumer_limits
        self._group_config = group_config
        self._embedded = embedded
        self.rebalances = 0
        """New generations of the groups that were coordinated here."""
        self._chores = TaskGroup("group chores")
        self._owners = TaskGroup("groups")
        self._coordination = Coordination(
            agent_id=agent_id,
            store=store,
            clock=clock,
            ttl_ms=lease_ttl_ms,
            make_group=self._make_group,
            tasks=self._owners,
            lost=lost,
        )

    # --- life ---

    async def start(self) -> None:
        """Begin to keep what is held; nothing is yet."""
        self._chores.keep(self._keep_leases, "leases")
        self._chores.keep(self._expire_offsets, "expiry")

    async def stop(self) -> None:
        """Let everything go."""
        await self._chores.cancel()
        await self._coordination.release_all()
        await self._owners.cancel()

    async def abort(self) -> None:
        """End as a crash would: the leases run out."""
        await self._chores.cancel()
        await self._owners.cancel()

    # --- shards ---

    @property
    def held_shards(self) -> Collection[int]:
        """Those whose groups are served here."""
        return frozenset(shard.number for shard in self._coordination)

    async def acquire_shards(self, shards: Sequence[int]) -> None:
        """Coordinate these: take their leases, read their groups, and only then serve them.

        Those that another agent holds are passed over. If a shard cannot be read it is let go again, and this raises
        (Unavailable: try again) when all the others are served."""
        await self._coordination.acquire(shards)

    async def release_shards(self, shards: Sequence[int]) -> None:
        """Coordinate these no longer: members that wait are told so at once, then the leases are free for others."""
        await self._coordination.release(shards)

    async def claim_shards(self, shards: Sequence[int], ttl_ms: int) -> None:
        """Ask whoever coordinates these to let them go."""
        await self._coordination.claim(shards, ttl_ms)

    def topics_changed(self) -> None:
        """A topic came or went: groups that subscribe on this side look again."""
        for shard in self._coordination:
            for group in shard:
                if group.kind is GroupKind.CONSUMER:
                    self._chores.start(self._notice_topics(group), "topics")

    # --- the classic protocol ---

    async def join(self, group_id: str, request: JoinRequest) -> JoinReply:
        group = self._find_or_open(group_id)
        if isinstance(group, GroupError):
            return JoinReply(error=group, member_id=request.member_id)

        async def decide() -> asyncio.Future[Any]:
            if isinstance(group.machine, ConsumerGroup) and group.has_members:
                return _answered(await self._join_consumer_group(group, group.machine, request))
            machine = group.become(GroupKind.CLASSIC)
            assert isinstance(machine, ClassicGroup)
            ticket, answer = group.expect(JoinReply(error=GroupError.NOT_COORDINATOR, member_id=request.member_id))
            await group.settle(machine.join(ticket, request, group.now_ms))
            return answer

        reply = await _late(group, decide)
        if isinstance(reply, GroupError):
            return JoinReply(error=reply, member_id=request.member_id)
        assert isinstance(reply, JoinReply)
        return reply

    async def sync(self, group_id: str, request: SyncRequest) -> SyncReply:
        group = self._find(group_id)
        if isinstance(group, GroupError):
            return SyncReply(error=group)

        async def decide() -> asyncio.Future[Any]:
            machine = group.machine
            if isinstance(machine, ConsumerGroup):
                return _answered(self._sync_with_consumer_group(machine, request, group.now_ms))
            if machine is None:
                return _answered(SyncReply(error=GroupError.UNKNOWN_MEMBER_ID))
            ticket, answer = group.expect(SyncReply(error=GroupError.NOT_COORDINATOR))
            await group.settle(machine.sync(ticket, request, group.now_ms))
            return answer

        reply = await _late(group, decide)
        if isinstance(reply, GroupError):
            return SyncReply(error=reply)
        assert isinstance(reply, SyncReply)
        return reply

    async def leave(self, group_id: str, members: Sequence[LeavingMember]) -> LeaveReply:
        group = self._find(group_id)
        if isinstance(group, GroupError):
            return LeaveReply(error=group)

        async def decide() -> asyncio.Future[Any]:
            machine = group.machine
            if isinstance(machine, ConsumerGroup):
                left = machine.leave(members, group.now_ms)
                if any(one.error is None for one in left):
                    await group.store()
                return _answered(LeaveReply(members=left))
            if machine is None:
                return _answered(LeaveReply(error=GroupError.UNKNOWN_MEMBER_ID))
            ticket, answer = group.expect(LeaveReply(error=GroupError.NOT_COORDINATOR))
            await group.settle(machine.leave(ticket, members, group.now_ms))
            return answer

        reply = await _late(group, decide)
        if isinstance(reply, GroupError):
            return LeaveReply(error=reply)
        assert isinstance(reply, LeaveReply)
        return reply

    async def heartbeat(self, group_id: str, claim: MemberClaim) -> GroupError | None:
        group = self._find(group_id)
        if isinstance(group, GroupError):
            return group

        async def decide() -> GroupError | None:
            machine = group.machine
            if machine is None:
                return GroupError.UNKNOWN_MEMBER_ID
            side = machine if isinstance(machine, ClassicGroup) else machine.classic
            return side.heartbeat(claim, group.now_ms)

        return await _ask(group, decide)

    async def disconnect(self, group_id: str, member_id: str) -> GroupError | None:
        """A member's connection has ended, through a door whose members live as long as their connections: it has
        left, and what follows from that is stored, before this returns None."""
        group = self._find(group_id)
        if isinstance(group, GroupError):
            return group

        async def decide() -> None:
            if isinstance(group.machine, ClassicGroup):
                await group.settle(group.machine.disconnect(member_id, group.now_ms))

        return await _ask(group, decide)

    # --- the consumer protocol ---

    async def consumer_heartbeat(
        self, group_id: str, request: HeartbeatRequest
    ) -> HeartbeatReply | GroupError | Refusal:
        joins = request.member_epoch == JOIN_EPOCH
        group = self._find_or_open(group_id) if joins else self._find(group_id)
        if isinstance(group, GroupError):
            return group

        async def decide() -> HeartbeatReply | GroupError | Refusal:
            if joins and isinstance(group.machine, ClassicGroup) and group.has_members:
                return await self._join_classic_group(group, request)
            if joins:
                group.become(GroupKind.CONSUMER)
            if not isinstance(group.machine, ConsumerGroup):
                # Of a group that is not here Kafka says GROUP_ID_NOT_FOUND, which is fatal to librdkafka; this makes
                # every client join again, which is what a group that was forgotten needs.
                return GroupError.UNKNOWN_MEMBER_ID
            group.machine.configure(self._limits_of(group_id))
            decision = group.machine.heartbeat(request, self._topics(), group.now_ms)
            if decision.persist:
                await group.store()
            return decision.reply

        return await _ask(group, decide)

    # --- one group, both protocols ---

    async def _join_classic_group(
        self, group: Group, request: HeartbeatRequest
    ) -> HeartbeatReply | GroupError | Refusal:
        """The first member of the newer protocol makes the group one of that protocol, unless it is refused there."""
        upgraded = group.as_consumer_group()
        if isinstance(upgraded, Refusal):
            return upgraded
        decision = upgraded.heartbeat(request, self._topics(), group.now_ms)
        if isinstance(decision.reply, HeartbeatReply):
            await group.become_consumer_group(upgraded)
        return decision.reply

    async def _join_consumer_group(self, group: Group, machine: ConsumerGroup, request: JoinRequest) -> JoinReply:
        if not self._classic_limits.allows_session(request.session_timeout_ms):
            return JoinReply(error=GroupError.INVALID_SESSION_TIMEOUT, member_id=request.member_id)
        subscription = self._embedded.read_subscription(request.protocols[0][1]) if request.protocols else None
        reply, persist = machine.classic.join(request, subscription, self._topics(), group.now_ms)
        if persist:
            await group.store()
        return reply

    def _sync_with_consumer_group(self, machine: ConsumerGroup, request: SyncRequest, now_ms: int) -> SyncReply:
        member = machine.classic.sync(request, now_ms)
        if isinstance(member, GroupError):
            return SyncReply(error=member)
        assert member.classic is not None
        return SyncReply(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=self._embedded.write_assignment(
                name(member.assigned, self._topics()), member.classic.protocols[0][1]
            ),
        )

    # --- offsets ---

    async def commit(
        self, group_id: str, claim: MemberClaim, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> CommitResult:
        """Only from the current generation, which the transaction that stores them checks again."""
        shard = self._coordination.find(group_id)
        if isinstance(shard, GroupError):
            return shard
        group = shard.find_or_open(group_id)

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
            return await shard.leased.commit(group_id, generation, offsets)

        return await _ask(group, decide)

    async def committed(
        self, group_id: str, member_id: str | None, member_epoch: int
    ) -> GroupError | dict[TopicPartition, CommittedOffset]:
        shard = self._coordination.find(group_id)
        if isinstance(shard, GroupError):
            return shard
        group = shard.find(group_id)
        if group is not None and isinstance(group.machine, ConsumerGroup):
            refusal = group.machine.check_fetch(member_id, member_epoch)
            if refusal is not None:
                return refusal
        return await self._store.fetch_group_offsets(group_id)

    async def delete_offsets(
        self, group_id: str, choose: Callable[[Machine | None], GroupError | Sequence[TopicPartition]]
    ) -> CommitResult:
        """`choose` says which, of the group as it is when it is its turn, or why none."""
        shard = self._coordination.find(group_id)
        if isinstance(shard, GroupError):
            return shard
        group = shard.find(group_id)
        if group is None:
            return GroupError.GROUP_ID_NOT_FOUND

        async def decide() -> CommitResult:
            chosen = choose(group.machine)
            if isinstance(chosen, GroupError):
                return chosen
            return await shard.leased.delete_offsets(group_id, chosen)

        return await _ask(group, decide)

    # --- administration ---

    def describe(self, group_id: str) -> Description | GroupError | None:
        """None for a simple group, which has no members to describe."""
        group = self._find(group_id, absent=GroupError.GROUP_ID_NOT_FOUND)
        if isinstance(group, GroupError):
            return group
        if group.is_unread:
            return GroupError.COORDINATOR_NOT_AVAILABLE
        return group.machine.describe() if group.machine is not None else None

    def all_groups(self) -> list[Group] | GroupError:
        """Those of the shards that are held here: whoever wants all asks every agent."""
        if self._coordination.is_loading:
            return GroupError.COORDINATOR_LOAD_IN_PROGRESS
        return sorted((group for shard in self._coordination for group in shard), key=lambda group: group.group_id)

    async def delete(self, group_id: str) -> GroupError | None:
        shard = self._coordination.find(group_id)
        if isinstance(shard, GroupError):
            return shard
        group = shard.find(group_id)
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
                    await shard.leased.delete(group_id)
                except NotFound:
                    refusal = GroupError.GROUP_ID_NOT_FOUND
                except StreamHouseError:
                    group.mistrust()
                    raise
            return refusal

        refusal = await _ask(group, decide)
        if (refusal is None or refusal is GroupError.GROUP_ID_NOT_FOUND) and shard.find(group_id) is group:
            shard.close(group_id)
        return refusal

    # --- inside ---

    def _find(self, group_id: str, *, absent: GroupError = GroupError.UNKNOWN_MEMBER_ID) -> Group | GroupError:
        shard = self._coordination.find(group_id)
        return shard if isinstance(shard, GroupError) else shard.find(group_id) or absent

    def _find_or_open(self, group_id: str) -> Group | GroupError:
        shard = self._coordination.find(group_id)
        return shard if isinstance(shard, GroupError) else shard.find_or_open(group_id)

    def _limits_of(self, group_id: str) -> ConsumerLimits:
        return self._consumer_limits.configured(self._group_config(group_id))

    def _make_group(self, group_id: str, row: GroupRow | None, shard: LeasedShard) -> Group:
        return Group(
            group_id,
            row,
            shard=shard,
            clock=self._clock,
            topics=self._topics,
            classic_limits=self._classic_limits,
            consumer_limits=self._limits_of(group_id),
            embedded=self._embedded,
            rebalanced=self._rebalanced,
        )

    def _rebalanced(self) -> None:
        self.rebalances += 1

    # --- chores ---

    async def _keep_leases(self) -> None:
        """An interval after the last renewal began, and sooner if that failed."""
        due_ms = self._clock.monotonic_ms() + self._lease_renewal_ms
        while True:
            await self._clock.sleep_ms(max(0, due_ms - self._clock.monotonic_ms()))
            due_ms = self._clock.monotonic_ms() + self._lease_renewal_ms
            try:
                await self._coordination.renew()
            except StreamHouseError as problem:
                _log.warning("cannot renew the leases of group shards, trying again: %s", problem)
                due_ms = self._clock.monotonic_ms() + self._lease_renewal_ms // _SOONER

    async def _expire_offsets(self) -> None:
        while True:
            await self._clock.sleep_ms(min(self._offsets_retention_ms, _LONGEST_EXPIRY_INTERVAL_MS))
            await self._expire_now()

    async def _expire_now(self) -> None:
        for shard in self._coordination:
            try:
                await shard.expire(self._offsets_retention_ms)
            except StreamHouseError as problem:
                _log.warning("offsets are expired later: %s", problem)

    @staticmethod
    async def _notice_topics(group: Group) -> None:
        try:
            await group.ask(group.topics_changed)
        except StreamHouseError as problem:
            # It looks at the topics whenever it is read again.
            _log.warning("group %r has not looked at the topics: %s", group.group_id, problem)

    # --- fault hooks ---

    async def rebalance(self, group_id: str) -> GroupError | None:
        """Have every member join again: those of a classic group as when somebody joins it. Members of the newer
        protocol are never asked to, so theirs lose their memberships."""
        group = self._find(group_id, absent=GroupError.GROUP_ID_NOT_FOUND)
        if isinstance(group, GroupError):
            return group

        async def decide() -> None:
            if isinstance(group.machine, ClassicGroup):
                await group.settle(group.machine.rebalance(group.now_ms))
            elif isinstance(group.machine, ConsumerGroup):
                members = group.machine.describe().members
                group.machine.leave([LeavingMember(member_id=one.member_id) for one in members], group.now_ms)
                await group.store()

        return await _ask(group, decide)

    async def outlast(self, duration_ms: int) -> None:
        """Hold what is held for so much longer, for a clock that is about to be moved."""
        await self._coordination.outlast(duration_ms)

    async def catch_up(self) -> None:
        """The clock was moved: end the sessions and forget the offsets whose time has come."""
        for shard in self._coordination:
            for group in shard:
                await _ask(group, group.tick)
        await self._expire_now()


async def _ask(group: Group, decide: Callable[[], Coroutine[Any, Any, T]]) -> T | GroupError:
    try:
        return await group.ask(decide)
    except StaleEpoch:
        return GroupError.NOT_COORDINATOR


async def _late(group: Group, decide: Callable[[], Coroutine[Any, Any, asyncio.Future[Any]]]) -> Any:
    """Ask, and wait for an answer that other members' requests may bring about."""
    answer = await _ask(group, decide)
    return answer if isinstance(answer, GroupError) else await answer


def _answered(reply: T) -> asyncio.Future[T]:
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    future.set_result(reply)
    return future
