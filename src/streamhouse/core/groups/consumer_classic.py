"""Members of the classic protocol in a consumer group: what they ask is answered as steps of that group.

Such a member never leads and never waits: a join moves it towards the group's target and is answered at once, with its
own epoch as the generation; a sync gives it what it holds; a heartbeat tells it to join again when there is more to do.
One that gives up everything before it joins (eager) is done in one round, one that keeps what it may (cooperative) says
what it has not given up, and comes again. The rules are those of Kafka's coordinator."""

from __future__ import annotations

from streamhouse.core.groups.classic_messages import JoinReply, JoinRequest, MemberClaim, SyncRequest
from streamhouse.core.groups.consumer_heartbeat import TopicIdPartition
from streamhouse.core.groups.consumer_member import ConsumerMember, MemberState
from streamhouse.core.groups.consumer_progress import Progress
from streamhouse.core.groups.consumer_snapshot import ConsumerState
from streamhouse.core.groups.consumer_target import Topics
from streamhouse.core.groups.embedded import CONSUMER_PROTOCOL_TYPE, EmbeddedSubscription
from streamhouse.core.groups.named_partitions import identify
from streamhouse.core.groups.outcome import GroupError


class ClassicSide:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._roster = progress.roster

    def join(
        self, request: JoinRequest, subscription: EmbeddedSubscription | None, topics: Topics, now_ms: int
    ) -> tuple[JoinReply, bool]:
        """The answer, and whether the state must be stored before it is given."""
        before = self._find(request)
        if isinstance(before, GroupError):
            return JoinReply(error=before, member_id=request.member_id), False
        if subscription is None or not self._speaks_like_the_others(request):
            return JoinReply(error=GroupError.INCONSISTENT_GROUP_PROTOCOL, member_id=request.member_id), False
        if not request.member_id and request.instance_id is None and request.requires_member_id:
            return JoinReply(error=GroupError.MEMBER_ID_REQUIRED, member_id=before.member_id), False
        if subscription.owned and before.member_id not in self._roster.members:
            # It was removed and has not heard of it. Others may have its partitions: it gives them up before it joins.
            return JoinReply(error=GroupError.UNKNOWN_MEMBER_ID, member_id=request.member_id), False
        told = before.joined(request, subscription)
        owned = identify(subscription.owned, topics)
        member, changed = self._progress.advance(before, told, owned, topics, now_ms)
        self._roster.begin_step(member, now_ms)
        reply = JoinReply(
            member_id=member.member_id,
            generation=member.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=member.classic_protocol,
        )
        return reply, changed

    def _find(self, request: JoinRequest) -> ConsumerMember | GroupError:
        """The member that a join is of: one that is here, one that comes back as another, or one that is new."""
        if self._progress.state is ConsumerState.DEAD:
            return GroupError.COORDINATOR_NOT_AVAILABLE
        holder = self._roster.static_member(request.instance_id)
        if holder is not None and not request.member_id:
            return holder.back_as(request.new_member_id)
        member = self._roster.members.get(request.member_id)
        if holder is not None and holder is not member:
            return GroupError.FENCED_INSTANCE_ID
        if member is not None:
            return member if member.is_classic else GroupError.UNKNOWN_MEMBER_ID
        if request.instance_id is not None and request.member_id:
            return GroupError.UNKNOWN_MEMBER_ID
        if len(self._roster.members) >= self._progress.limits.max_size:
            return GroupError.GROUP_MAX_SIZE_REACHED
        # An id that the group gave out, or one from before the group was converted: neither is remembered.
        return ConsumerMember(member_id=request.member_id or request.new_member_id)

    def _speaks_like_the_others(self, request: JoinRequest) -> bool:
        """Once only classic members are left, they must have a protocol in common."""
        others = [one.classic.protocols for one in self._roster.members.values() if one.classic is not None]
        return request.protocol_type == CONSUMER_PROTOCOL_TYPE and any(
            all(name in dict(protocols) for protocols in others) for name, _ in request.protocols
        )

    def sync(self, request: SyncRequest, now_ms: int) -> ConsumerMember | GroupError:
        """The member, whose assignment it is to be told."""
        member = self._claimed(request.claim)
        if isinstance(member, GroupError):
            return member
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
            request.protocol_name not in (None, member.classic_protocol)
        ):
            return GroupError.INCONSISTENT_GROUP_PROTOCOL
        self._roster.put(member, now_ms)
        if self._is_behind(member):
            self._roster.expect_step(member, now_ms)
            return GroupError.REBALANCE_IN_PROGRESS
        self._roster.end_step(member)
        return member

    def heartbeat(self, claim: MemberClaim, now_ms: int) -> GroupError | None:
        member = self._claimed(claim)
        if isinstance(member, GroupError):
            return member
        self._roster.put(member, now_ms)
        if self._is_behind(member) or member.state is MemberState.UNREVOKED_PARTITIONS or self._can_have_more(member):
            self._roster.expect_step(member, now_ms)
            return GroupError.REBALANCE_IN_PROGRESS
        return None

    def _claimed(self, claim: MemberClaim) -> ConsumerMember | GroupError:
        if self._progress.state is ConsumerState.DEAD:
            return GroupError.COORDINATOR_NOT_AVAILABLE
        member = self._roster.find(claim.member_id, claim.instance_id)
        if isinstance(member, GroupError):
            return member
        if member.member_id != claim.member_id:
            return GroupError.FENCED_INSTANCE_ID
        if not member.is_classic:
            return GroupError.UNKNOWN_MEMBER_ID
        return member if member.member_epoch == claim.generation else GroupError.ILLEGAL_GENERATION

    def _is_behind(self, member: ConsumerMember) -> bool:
        """One that has still to give partitions up has joined; that comes first, and then it joins again anyway."""
        return self._progress.group_epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS

    def _can_have_more(self, member: ConsumerMember) -> bool:
        """It waits for partitions, and all of them are free by now."""
        return member.state is MemberState.UNRELEASED_PARTITIONS and not any(
            self._roster.is_held_by_another(partition, member.member_id) for partition in self._missing(member)
        )

    def _missing(self, member: ConsumerMember) -> frozenset[TopicIdPartition]:
        return self._progress.target.of(member.member_id) - member.assigned
