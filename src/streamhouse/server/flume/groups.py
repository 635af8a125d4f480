"""The groups that one connection is a member of. Membership lives with the connection: it ends when that is closed,
when heartbeats stay away for the session's time-out, or when the group says so.

Flume has no rebalance of its own: a member here is one of KIP-848, beside those that came through the Kafka port. Its
generation is the member's epoch as of its last join; whatever has changed since is told as REBALANCE_NEEDED, and to
join again says that the member has stopped what it was doing, so that what it lost is free for others. Until it has
joined again it is given nothing to read; what it had read it may still commit, since that is its own until then."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress

from streamhouse.client.cluster import Cluster
from streamhouse.client.group_member import GroupMember
from streamhouse.client.groups_admin import GroupPartition, GroupsAdmin
from streamhouse.model.errors import (
    InvalidInput,
    NotFound,
    OffsetOutOfRange,
    StaleGeneration,
    StreamHouseError,
    Unavailable,
)
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.flume.errors import UnknownMember
from streamhouse.server.flume.membership import Joined
from streamhouse.wire.flume.codes import ErrorCode
from streamhouse.wire.flume.groups import NO_COMMIT, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse

CLIENT_ID = "flume"
ASSIGNOR = "range"
_MAX_GROUPS = 100
_MAX_TOPICS = 32_767
"""As many as one request can name."""


class Memberships:
    def __init__(
        self, cluster: Cluster, *, clock: Clock, tasks: TaskGroup, longest_session_ms: Callable[[str], int]
    ) -> None:
        """Beyond `longest_session_ms` a group, by its name, would itself take a silent member for gone."""
        self._cluster = cluster
        self._clock = clock
        self._tasks = tasks
        self._longest_session_ms = longest_session_ms
        self._joined: dict[str, Joined] = {}
        """By group, also where the membership has ended without the client's doing."""

    def __bool__(self) -> bool:
        return any(not joined.has_ended for joined in self._joined.values())

    async def join(self, request: JoinGroupRequest) -> JoinGroupResponse:
        if request.session_timeout_ms <= 0 or not request.topics:
            raise InvalidInput("a member needs a session time-out and topics")
        before = self._joined.get(request.group_id)
        if before is not None and before.count_with(request.topics) > _MAX_TOPICS:
            raise InvalidInput(f"a connection may join a group for {_MAX_TOPICS} topics", hint="leave the group first")
        is_first = not request.member_id
        if is_first:
            joined = await self._join_first(request)
        else:
            joined = self._find(request.group_id, request.member_id)
            await self._join_again(joined, request)
        joined.take()
        joined.heard_from(self._clock.monotonic_ms())
        if is_first:
            joined.expiry = self._tasks.start(self._expire(joined), "session")
        members = await self._members(request.group_id, joined.member.member_id)
        return JoinGroupResponse(ErrorCode.NONE, joined.held.epoch, members[0], joined.member.member_id, members)

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
        """Whether the member still has what it joined with; else it should join again."""
        joined = self._find_current(request.group_id, request.member_id, request.generation)
        joined.heard_from(self._clock.monotonic_ms())
        await self._beat(joined, joined.held.assignment)
        return joined.is_current

    def assignment(self, group_id: str, member_id: str, generation: int) -> tuple[GroupPartition, ...]:
        return self._find_current(group_id, member_id, generation).held.assignment

    async def leave(self, group_id: str, member_id: str) -> None:
        joined = self._find(group_id, member_id)
        del self._joined[group_id]
        joined.end()
        await joined.member.leave()

    async def commit(self, group_id: str, partition: GroupPartition, offset: int) -> None:
        """As a member, what it holds; without ever having been one, only if the group has no members."""
        if offset < 0:
            raise OffsetOutOfRange(f"{offset} is not an offset")
        if group_id not in self._joined:
            try:
                await GroupsAdmin(self._cluster).commit_offsets(group_id, {partition: offset})
            except InvalidInput as problem:
                raise UnknownMember(problem.message) from problem
            return
        joined = self._joined[group_id]
        if joined.has_ended:
            raise UnknownMember(f"the membership in {group_id!r} has ended")
        if not joined.holds(partition):
            raise StaleGeneration(f"{partition.topic}/{partition.partition} is not this member's", hint="join again")
        try:
            await joined.member.commit({partition: offset})
        except NotFound as problem:
            joined.doubted()
            raise UnknownMember(problem.message) from problem
        except StaleGeneration:
            joined.doubted()
            raise

    def check_fetch(self, topic: str, partition: int) -> None:
        """StaleGeneration if this connection joined to read the topic, and does not hold the partition now, as far as
        the group's answers say. What it joined no group for it reads as anybody does."""
        of_topic = [joined for joined in self._joined.values() if joined.is_about(topic)]
        if not of_topic:
            return
        now_ms = self._clock.monotonic_ms()
        asked = GroupPartition(topic, partition)
        if not any(joined.may_read(asked, now_ms) for joined in of_topic):
            raise StaleGeneration(f"{topic}/{partition} is not, or no longer, this member's", hint="join again")

    async def committed(self, group_id: str, partition: GroupPartition) -> int:
        reader = GroupMember(self._cluster, group_id, (), client_id=CLIENT_ID)
        return (await reader.committed([partition])).get(partition, NO_COMMIT)

    async def leave_all(self) -> None:
        """The connection is gone. What cannot be left now, the group will miss soon enough."""
        joined_groups = [joined for joined in self._joined.values() if not joined.has_ended]
        self._joined.clear()
        for joined in joined_groups:
            joined.end()
            with suppress(StreamHouseError):
                await joined.member.leave()

    async def _join_first(self, request: JoinGroupRequest) -> Joined:
        group_id = request.group_id
        before = self._joined.get(group_id)
        if before is None and len(self._joined) >= _MAX_GROUPS:
            raise InvalidInput(f"a connection may join {_MAX_GROUPS} groups", hint="open another")
        if before is not None and not before.has_ended:
            before.end()
            await before.member.leave()
        asked_at_ms = self._clock.monotonic_ms()
        joined = self._joined[group_id] = Joined(await self._join_as_new(request), request.topics, before)
        self._begin_session(joined, request, asked_at_ms)
        return joined

    async def _join_again(self, joined: Joined, request: JoinGroupRequest) -> None:
        """It owns nothing but what it was last told it may keep. One that the group has expelled meanwhile has to
        join as a new one: others may have gone on from where it was in its partitions."""
        asked_at_ms = self._clock.monotonic_ms()
        await self._beat(joined, joined.member.membership.assignment)
        if joined.topics != request.topics:
            joined.subscribe(await self._join_as_new(request), request.topics)
        self._begin_session(joined, request, asked_at_ms)

    def _begin_session(self, joined: Joined, request: JoinGroupRequest, asked_at_ms: int) -> None:
        joined.begin_session(request.session_timeout_ms, self._longest_session_ms(request.group_id))
        joined.vouched_for(asked_at_ms)

    async def _beat(self, joined: Joined, owned: Collection[GroupPartition]) -> None:
        """Ask the group what has become of the member, which owns that much. UnknownMember if it is none any more."""
        asked_at_ms = self._clock.monotonic_ms()
        try:
            await joined.member.heartbeat(owned)
        except NotFound as problem:
            joined.end()
            raise UnknownMember(problem.message) from problem
        except StaleGeneration as problem:
            joined.end()
            with suppress(StreamHouseError):
                await joined.member.leave()  # where it was only a topic that was made again, the group waits for it
            raise UnknownMember(problem.message) from problem
        if joined.has_ended:
            raise UnknownMember(f"member {joined.member.member_id!r} was silent for too long", hint="join anew")
        joined.vouched_for(asked_at_ms)

    async def _join_as_new(self, request: JoinGroupRequest) -> GroupMember:
        member = GroupMember(
            self._cluster,
            request.group_id,
            request.topics,
            member_id=request.member_id,
            client_id=CLIENT_ID,
            assignor=ASSIGNOR,
        )
        try:
            await member.join()
        except Unavailable:
            raise
        except StreamHouseError:
            with suppress(StreamHouseError):
                await member.leave()  # the group may count on it although its client is refused
            raise
        return member

    async def _members(self, group_id: str, member_id: str) -> tuple[str, ...]:
        described = await GroupsAdmin(self._cluster).describe_group(group_id)
        return tuple(sorted({member_id, *(member.member_id for member in described.members)}))

    def _find(self, group_id: str, member_id: str) -> Joined:
        joined = self._joined.get(group_id)
        if joined is None or joined.has_ended or joined.member.member_id != member_id:
            raise UnknownMember(f"{member_id!r} is no member of {group_id!r} on this connection", hint="join anew")
        return joined

    def _find_current(self, group_id: str, member_id: str, generation: int) -> Joined:
        joined = self._find(group_id, member_id)
        if generation != joined.held.epoch:
            raise StaleGeneration(f"generation {generation} is not {joined.held.epoch}", hint="join again")
        return joined

    async def _expire(self, joined: Joined) -> None:
        """Leave for a member that has gone silent."""
        while not joined.has_ended:
            left_ms = joined.expires_at_ms - self._clock.monotonic_ms()
            if left_ms > 0:
                await self._clock.sleep_ms(left_ms)
                continue
            joined.has_ended = True
            with suppress(StreamHouseError):
                await joined.member.leave()
