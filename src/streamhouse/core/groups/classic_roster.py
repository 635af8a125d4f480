"""Who is in a classic group: its members in the order they came, its leader, and the ids given out but not used yet."""

from __future__ import annotations

from dataclasses import replace

from streamhouse.core.groups.member import Member, Protocols
from streamhouse.core.groups.outcome import GroupError


class Roster:
    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.pending: dict[str, int] = {}  # member ids that somebody was told to join with → when they lapse
        self.leader: str | None = None
        self.protocol_type: str | None = None
        self._by_instance: dict[str, str] = {}

    def refusal(self, member_id: str, instance_id: str | None) -> GroupError | None:
        """Why somebody who names himself so is not a member; None if he is."""
        if instance_id is not None:
            current = self._by_instance.get(instance_id)
            if current is None:
                return GroupError.UNKNOWN_MEMBER_ID
            if current != member_id:
                return GroupError.FENCED_INSTANCE_ID
        return None if member_id in self.members else GroupError.UNKNOWN_MEMBER_ID

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = None if instance_id is None else self._by_instance.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def add(self, member: Member, protocol_type: str) -> None:
        assert member.member_id not in self.members, f"{member.member_id} is a member already"
        if not self.members:
            self.protocol_type = protocol_type
        if member.instance_id is not None:
            assert member.instance_id not in self._by_instance, f"{member.instance_id} is a member already"
            self._by_instance[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self.pending.pop(member.member_id, None)
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        """Of those who stay, the one who came first leads on."""
        member = self.members.pop(member_id)
        assert member.joining is None, "a member that waits is answered before it is removed"
        assert member.syncing is None, "a member that waits is answered before it is removed"
        if member.instance_id is not None:
            del self._by_instance[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: Member, new_member_id: str) -> Member:
        """A static member comes back under a new id, to its old place (and leadership, if it led)."""
        renamed = replace(member, member_id=new_member_id, joining=None, syncing=None, is_new=False)
        assert member.instance_id is not None
        self._by_instance[member.instance_id] = new_member_id
        self.members = {
            new_member_id if member_id == member.member_id else member_id: renamed if kept is member else kept
            for member_id, kept in self.members.items()
        }
        if self.leader == member.member_id:
            self.leader = new_member_id
        return renamed

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Some protocol of these is one that every member speaks."""
        if not self.members:
            return bool(protocol_type) and bool(protocols)
        return protocol_type == self.protocol_type and not self._common_protocols().isdisjoint(
            name for name, _ in protocols
        )

    def choose_protocol(self) -> str:
        """Each member votes for the first protocol of its own that all speak; a tie goes to the earlier vote."""
        votes: dict[str, int] = {}
        common = self._common_protocols()
        for member in self.members.values():
            preferred = next((name for name, _ in member.protocols if name in common), None)
            if preferred is not None:
                votes[preferred] = votes.get(preferred, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def elect_joined_leader(self) -> bool:
        """The leader must be one who rejoined; False if nobody did."""
        if self.leader is not None and self.members[self.leader].joining is None:
            joined = next((member for member in self.members.values() if member.joining is not None), None)
            if joined is None:
                return False
            self.leader = joined.member_id
        return self.leader is not None

    def joined_count(self) -> int:
        return sum(member.joining is not None for member in self.members.values())

    def all_joined(self) -> bool:
        """Everybody, those who know their id but have not yet joined with it as well."""
        return not self.pending and all(member.joining is not None for member in self.members.values())

    def rebalance_timeout_ms(self) -> int:
        """The patience of the most patient member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def _common_protocols(self) -> set[str]:
        """Those that every member speaks; in time linear in all that they say."""
        members = iter(self.members.values())
        first = next(members, None)
        common = {name for name, _ in first.protocols} if first is not None else set()
        for member in members:
            common.intersection_update(name for name, _ in member.protocols)
        return common
