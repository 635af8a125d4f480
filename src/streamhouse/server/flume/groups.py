"""The groups that one connection is a member of. Membership lives with the connection: it ends when that is closed,
when heartbeats stay away for the session's time-out, or when the group says so.

Flume has no rebalance of its own: a member here is one of KIP-848, beside those that came through the Kafka port. Its
generation is the member's epoch as of its last join; whatever has changed since is told as REBALANCE_NEEDED, and to
join again says that the member has stopped what it was doing, so that what it lost is free for others."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from streamhouse.client.cluster import Cluster
from streamhouse.client.group_member import GroupMember
from streamhouse.client.groups_admin import GroupPartition, GroupsAdmin
from streamhouse.model.errors import InvalidInput, NotFound, OffsetOutOfRange, StaleGeneration, StreamHouseError
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.flume.errors import UnknownMember
from streamhouse.wire.flume.codes import ErrorCode
from streamhouse.wire.flume.groups import NO_COMMIT, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse

CLIENT_ID = "flume"
ASSIGNOR = "range"
_MAX_GROUPS = 100


class _Joined:
    """One membership. `held` is what the client was told when it joined last; it gives up nothing before it joins
    again. `expires_at_ms` is when its session ends unless it says something."""

    def __init__(self, member: GroupMember, topics: tuple[str, ...]) -> None:
        self.member = member
        self.topics = topics
        self.held = member.membership
        self.session_ms = 0
        self.expires_at_ms = 0
        self.expiry: asyncio.Task[None] | None = None

    def end(self) -> None:
        """Nobody waits for its silence any more."""
        if self.expiry is not None:
            self.expiry.cancel()


class Memberships:
    def __init__(self, cluster: Cluster, *, clock: Clock, tasks: TaskGroup, longest_session_ms: int) -> None:
        """Beyond `longest_session_ms` the group itself would take a silent member for gone."""
        self._cluster = cluster
        self._clock = clock
        self._tasks = tasks
        self._longest_session_ms = longest_session_ms
        self._joined: dict[str, _Joined | None] = {}
        """By group; None for one in which this connection was a member and is none any more, so that what it still
        says about it is not taken for a stranger's."""

    def __bool__(self) -> bool:
        return any(joined is not None for joined in self._joined.values())

    async def join(self, request: JoinGroupRequest) -> JoinGroupResponse:
        if request.session_timeout_ms <= 0 or not request.topics:
            raise InvalidInput("a member needs a session time-out and topics")
        is_first = not request.member_id
        if is_first:
            joined = await self._join_first(request)
        else:
            joined = self._find(request.group_id, request.member_id)
            await self._join_again(joined, request)
        joined.held = joined.member.membership
        joined.session_ms = min(request.session_timeout_ms, self._longest_session_ms)
        self._heard_from(joined)
        if is_first:
            joined.expiry = self._tasks.start(self._expire(request.group_id, joined), "session")
        members = await self._members(request.group_id, joined.member.member_id)
        return JoinGroupResponse(ErrorCode.NONE, joined.held.epoch, members[0], joined.member.member_id, members)

    async def heartbeat(self, request: HeartbeatRequest) -> bool:
        """Whether the member still has what it joined with; else it should join again."""
        joined = self._find_current(request.group_id, request.member_id, request.generation)
        self._heard_from(joined)
        try:
            return await joined.member.heartbeat(joined.held.assignment) == joined.held
        except (StaleGeneration, NotFound) as problem:
            self._joined[request.group_id] = None
            joined.end()
            raise UnknownMember(problem.message) from problem

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
        if joined is None:
            raise UnknownMember(f"the membership in {group_id!r} has ended")
        if partition not in joined.held.assignment:
            raise StaleGeneration(f"{partition.topic}/{partition.partition} is not this member's", hint="join again")
        try:
            await joined.member.commit({partition: offset})
        except NotFound as problem:
            raise UnknownMember(problem.message) from problem

    async def committed(self, group_id: str, partition: GroupPartition) -> int:
        reader = GroupMember(self._cluster, group_id, (), client_id=CLIENT_ID)
        return (await reader.committed([partition])).get(partition, NO_COMMIT)

    async def leave_all(self) -> None:
        """The connection is gone. What cannot be left now, the group will miss soon enough."""
        joined_groups = [joined for joined in self._joined.values() if joined is not None]
        self._joined.clear()
        for joined in joined_groups:
            joined.end()
            with suppress(StreamHouseError):
                await joined.member.leave()

    async def _join_first(self, request: JoinGroupRequest) -> _Joined:
        if request.group_id not in self._joined and len(self._joined) >= _MAX_GROUPS:
            raise InvalidInput(f"a connection may join {_MAX_GROUPS} groups", hint="open another")
        before = self._joined.pop(request.group_id, None)
        if before is not None:
            before.end()
            await before.member.leave()
        joined = _Joined(self._member(request), request.topics)
        await joined.member.join()
        self._joined[request.group_id] = joined
        return joined

    async def _join_again(self, joined: _Joined, request: JoinGroupRequest) -> None:
        """It owns nothing but what it was last told it may keep."""
        if joined.topics != request.topics:
            joined.member, joined.topics = self._member(request), request.topics
            await joined.member.join()
            return
        try:
            await joined.member.heartbeat(joined.member.membership.assignment)
        except (StaleGeneration, NotFound):
            await joined.member.join()

    def _member(self, request: JoinGroupRequest) -> GroupMember:
        return GroupMember(
            self._cluster,
            request.group_id,
            request.topics,
            member_id=request.member_id,
            client_id=CLIENT_ID,
            assignor=ASSIGNOR,
        )

    async def _members(self, group_id: str, member_id: str) -> tuple[str, ...]:
        described = await GroupsAdmin(self._cluster).describe_group(group_id)
        return tuple(sorted({member_id, *(member.member_id for member in described.members)}))

    def _find(self, group_id: str, member_id: str) -> _Joined:
        joined = self._joined.get(group_id)
        if joined is None or joined.member.member_id != member_id:
            raise UnknownMember(f"{member_id!r} is no member of {group_id!r} on this connection", hint="join anew")
        return joined

    def _find_current(self, group_id: str, member_id: str, generation: int) -> _Joined:
        joined = self._find(group_id, member_id)
        if generation != joined.held.epoch:
            raise StaleGeneration(f"generation {generation} is not {joined.held.epoch}", hint="join again")
        return joined

    def _heard_from(self, joined: _Joined) -> None:
        joined.expires_at_ms = self._clock.monotonic_ms() + joined.session_ms

    async def _expire(self, group_id: str, joined: _Joined) -> None:
        """Leave for a member that has gone silent."""
        while self._joined.get(group_id) is joined:
            left_ms = joined.expires_at_ms - self._clock.monotonic_ms()
            if left_ms > 0:
                await self._clock.sleep_ms(left_ms)
                continue
            self._joined[group_id] = None
            with suppress(StreamHouseError):
                await joined.member.leave()
