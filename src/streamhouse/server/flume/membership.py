"""One membership of a connection: what the client was told it has, and until when that may be taken for true.

Flume's fetches and commits name no member and no generation; it is the connection that knows them. A fetch costs no
question to the group: a membership is good for as long as the group cannot have given the partition to another. That
ends with the session of a silent client, when an answer of the group says that something has changed, and a session
time-out after the group was last asked with success, since then it may have expelled the member without saying so."""

from __future__ import annotations

import asyncio

from streamhouse.client.group_member import GroupMember
from streamhouse.client.groups_admin import GroupPartition


class Joined:
    def __init__(self, member: GroupMember, topics: tuple[str, ...], earlier: Joined | None = None) -> None:
        """`earlier`: the connection's last membership in the group, if the client has not left it."""
        self._topics: frozenset[str] = frozenset() if earlier is None else earlier._topics
        self.subscribe(member, topics)
        self.session_ms = 0
        self.expires_at_ms = 0
        """When its session ends unless its client says something."""
        self.has_ended = False
        """It is kept even so: what the connection still says about the group is not to be taken for a stranger's."""
        self.expiry: asyncio.Task[None] | None = None
        self._longest_session_ms = 0
        self._vouched_until_ms = 0
        self.take()

    def subscribe(self, member: GroupMember, topics: tuple[str, ...]) -> None:
        self.member = member
        self.topics = topics
        self._topics |= frozenset(topics)

    def is_about(self, topic: str) -> bool:
        """Whether the connection has ever joined for it: what others have of it by now is not to be read by asking the
        group for other topics."""
        return topic in self._topics

    def count_with(self, topics: tuple[str, ...]) -> int:
        """How many topics it would be about if it joined for these too."""
        return len(self._topics.union(topics))

    def take(self) -> None:
        """The client is told what it has, and gives up nothing before it joins again."""
        self.held = self.member.membership
        self._partitions = frozenset(self.held.assignment)

    def begin_session(self, session_ms: int, longest_session_ms: int) -> None:
        """Beyond `longest_session_ms` the group itself takes a silent member for gone."""
        self.session_ms = min(session_ms, longest_session_ms)
        self._longest_session_ms = longest_session_ms

    def heard_from(self, now_ms: int) -> None:
        self.expires_at_ms = now_ms + self.session_ms

    def vouched_for(self, asked_at_ms: int) -> None:
        """The group has answered what it was asked then: it knows the member."""
        self._vouched_until_ms = asked_at_ms + self._longest_session_ms
        if self.is_current:
            self.held = self.member.membership  # the same object, which fetches compare at once

    def doubted(self) -> None:
        """The group contradicts what is known of the member here."""
        self._vouched_until_ms = 0

    def end(self) -> None:
        """Nobody waits for its silence any more."""
        self.has_ended = True
        if self.expiry is not None:
            self.expiry.cancel()

    @property
    def is_current(self) -> bool:
        """Nothing has changed for the member since it joined last."""
        return self.member.membership == self.held

    def holds(self, partition: GroupPartition) -> bool:
        return partition in self._partitions

    def may_read(self, partition: GroupPartition, now_ms: int) -> bool:
        return (
            not self.has_ended
            and self.is_current
            and now_ms < min(self.expires_at_ms, self._vouched_until_ms)
            and partition in self._partitions
        )
