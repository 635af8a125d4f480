"""Who is in a consumer group, who holds which partition, and until when each member is given time."""

from __future__ import annotations

from collections.abc import Mapping

from streamhouse.core.groups.consumer_heartbeat import TopicIdPartition
from streamhouse.core.groups.consumer_member import ConsumerMember, MemberState
from streamhouse.core.groups.outcome import GroupError


class ConsumerRoster:
    """The members, with the one rule that all else serves: a partition has at most one holder."""

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._members: dict[str, ConsumerMember] = {}
        self._instances: dict[str, str] = {}
        self._holders: dict[TopicIdPartition, str] = {}
        self._session_ends: dict[str, int] = {}
        self._step_ends: dict[str, int] = {}  # until when: to give partitions up; to join again or sync, if classic

    @property
    def members(self) -> Mapping[str, ConsumerMember]:
        return self._members

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self._instances.get(instance_id)
        return None if member_id is None else self._members[member_id]

    def find(self, member_id: str, instance_id: str | None) -> ConsumerMember | GroupError:
        """The member that is named so; a static one may be named by its instance id alone."""
        if instance_id is None:
            return self._members.get(member_id) or GroupError.UNKNOWN_MEMBER_ID
        holder = self.static_member(instance_id)
        if holder is None:
            return GroupError.UNKNOWN_MEMBER_ID
        return holder if member_id in ("", holder.member_id) else GroupError.FENCED_INSTANCE_ID

    def is_held_by_another(self, partition: TopicIdPartition, member_id: str) -> bool:
        return self._holders.get(partition, member_id) != member_id

    def put(self, member: ConsumerMember, now_ms: int) -> None:
        """Add or replace a member that was just heard of: its session starts again."""
        before = self._members.get(member.member_id)
        if before != member:
            self._hold(before, member)
            self._members[member.member_id] = member
            if before is not None and before.instance_id is not None:
                del self._instances[before.instance_id]
            if member.instance_id is not None:
                self._instances[member.instance_id] = member.member_id
            if not member.is_classic:
                self._time_revocation(before, member, now_ms)
        session_ms = self.session_timeout_ms if member.classic is None else member.classic.session_timeout_ms
        self._session_ends[member.member_id] = now_ms + session_ms

    def remove(self, member_id: str) -> ConsumerMember:
        member = self._members.pop(member_id)
        for partition in member.held:
            del self._holders[partition]
        if member.instance_id is not None:
            del self._instances[member.instance_id]
        del self._session_ends[member_id]
        self._step_ends.pop(member_id, None)
        return member

    # What a classic member has to do next, in the time that it asked for

    def begin_step(self, member: ConsumerMember, now_ms: int) -> None:
        self._step_ends[member.member_id] = now_ms + member.rebalance_timeout_ms

    def expect_step(self, member: ConsumerMember, now_ms: int) -> None:
        """It may have been told before: its time runs from then."""
        self._step_ends.setdefault(member.member_id, now_ms + member.rebalance_timeout_ms)

    def end_step(self, member: ConsumerMember) -> None:
        self._step_ends.pop(member.member_id, None)

    # Time

    def overdue(self, now_ms: int) -> list[str]:
        """Members that were silent for a session, or did not do what they had to in the time that they asked for."""
        return [
            member_id
            for member_id in self._members
            if self._session_ends[member_id] <= now_ms or self._step_ends.get(member_id, now_ms + 1) <= now_ms
        ]

    def next_deadline_ms(self) -> int | None:
        return min((*self._session_ends.values(), *self._step_ends.values()), default=None)

    def _hold(self, before: ConsumerMember | None, member: ConsumerMember) -> None:
        earlier = frozenset() if before is None else before.held
        for partition in earlier - member.held:
            del self._holders[partition]
        for partition in member.held - earlier:
            holder = self._holders.setdefault(partition, member.member_id)
            assert holder == member.member_id, f"{partition} is held by {holder}, not free for {member.member_id}"

    def _time_revocation(self, before: ConsumerMember | None, member: ConsumerMember, now_ms: int) -> None:
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._step_ends.pop(member.member_id, None)
        elif before is None or before.pending_revocation != member.pending_revocation:
            self.begin_step(member, now_ms)
