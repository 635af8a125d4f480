"""How one member gets from the partitions that it holds to those that it should have, without sharing any on the way.

Revoke first: while a member has not said that it gave up what it must give up, it gets nothing new and keeps its
epoch. After that it takes the target's epoch and whatever of the target nobody else holds; the rest follows as others
release it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from streamhouse.core.groups.consumer_heartbeat import TopicIdPartition
from streamhouse.core.groups.consumer_member import ConsumerMember, MemberState


def reconcile(
    member: ConsumerMember,
    *,
    target: frozenset[TopicIdPartition],
    target_epoch: int,
    owned: frozenset[TopicIdPartition] | None,
    held_by_another: Callable[[TopicIdPartition], bool],
) -> ConsumerMember:
    """The member's next step, or the member as it is if it has to wait. `owned` is what it says that it owns."""
    if member.is_reconciled_to(target_epoch):
        return member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _still_owns(owned, member.pending_revocation):
        return member
    kept = member.assigned & target
    revoked = member.assigned - target
    if revoked and _still_owns(owned, revoked):
        # The epoch stays: until it has given them up, the member commits offsets of these partitions with it.
        return replace(member, state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked)
    unreleased = frozenset(partition for partition in target - kept if held_by_another(partition))
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE,
        member_epoch=target_epoch,
        # The epoch that a lost reply would leave it with; the same epoch given twice does not move it.
        previous_epoch=member.previous_epoch if member.member_epoch == target_epoch else member.member_epoch,
        assigned=target - unreleased,
        pending_revocation=frozenset(),
    )


def _still_owns(owned: frozenset[TopicIdPartition] | None, revoked: frozenset[TopicIdPartition]) -> bool:
    """A member that does not say what it owns still owns everything."""
    return owned is None or not owned.isdisjoint(revoked)
