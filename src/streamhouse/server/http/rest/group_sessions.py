"""Members of consumer groups that a node keeps for callers over HTTP, who come and go between their requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from streamhouse.client.address import Address
from streamhouse.client.group_consumer import GroupConsumer, GroupConsumerOptions
from streamhouse.format.row_reading import DOOR_LIMITS
from streamhouse.model.errors import NotFound, Unavailable
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.member_secret import MemberSecret
from streamhouse.wire.http.rest.groups import JoinRequest

MAX_SESSIONS = 500
"""Each has connections, and records that were fetched for it."""
_LOOK_EVERY_MS = 500
_LEAVE_PATIENCE_S = 5.0
_CLIENT_ID = "streamhouse-rest"


@dataclass(slots=True, kw_only=True)
class Session:
    """`calls` are those under way, each with what ends it early; nobody is idle who waits for an answer."""

    consumer: GroupConsumer
    secret: MemberSecret = field(default_factory=MemberSecret)
    max_idle_ms: int
    used_ms: int
    calls: set[asyncio.Timeout] = field(default_factory=set)
    is_unused: asyncio.Event = field(default_factory=asyncio.Event)


class GroupSessions:
    def __init__(self, kafka: Address, clock: Clock, *, max_sessions: int = MAX_SESSIONS) -> None:
        self._kafka = kafka
        self._clock = clock
        self._max_sessions = max_sessions
        self._sessions: dict[tuple[str, str], Session] = {}
        self._joining = 0
        self._tasks = TaskGroup("group sessions")

    def __len__(self) -> int:
        return len(self._sessions)

    async def join(self, group_id: str, asked: JoinRequest) -> Session:
        if len(self._sessions) + self._joining >= self._max_sessions:
            raise Unavailable(
                f"this node keeps {self._max_sessions} members already", hint="leave with some, or ask another node"
            )
        options = GroupConsumerOptions(
            client_id=asked.client_id or _CLIENT_ID,
            reset=asked.reset,
            max_idle_ms=None,  # which is judged here: every call keeps a member, not polls alone
            rows=DOOR_LIMITS,
        )
        consumer = GroupConsumer(
            [self._kafka], group_id, list(dict.fromkeys(asked.topics)), options=options, clock=self._clock
        )
        self._joining += 1
        try:
            await consumer.start()
        finally:
            self._joining -= 1
        session = Session(consumer=consumer, max_idle_ms=asked.max_idle_ms, used_ms=self._clock.monotonic_ms())
        session.is_unused.set()
        self._sessions[group_id, consumer.member_id] = session
        if not len(self._tasks):
            self._tasks.start(self._end_idle(), "idle")
        return session

    @asynccontextmanager
    async def use(self, group_id: str, member_id: str, secret: str) -> AsyncIterator[Session]:
        """NotFound if it is not here, also when it leaves while it is used."""
        session = self._find(group_id, member_id, secret)
        try:
            async with asyncio.timeout(None) as call:
                session.calls.add(call)
                session.is_unused.clear()
                try:
                    yield session
                finally:
                    session.used_ms = self._clock.monotonic_ms()
                    session.calls.discard(call)
                    if not session.calls:
                        session.is_unused.set()
        except TimeoutError:
            raise _no_member(group_id, member_id) from None

    async def leave(self, group_id: str, member_id: str, secret: str) -> None:
        """Its partitions are others' at once."""
        session = self._find(group_id, member_id, secret)
        del self._sessions[group_id, member_id]
        await self._end(session)

    def _find(self, group_id: str, member_id: str, secret: str) -> Session:
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise _no_member(group_id, member_id)
        session.secret.check(secret)
        return session

    async def close(self) -> None:
        await self._tasks.cancel()
        await self.end_all()

    async def end_all(self) -> None:
        """Every member leaves its group; others may come."""
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(self._end(session) for session in sessions))

    async def _end(self, session: Session) -> None:
        now = asyncio.get_running_loop().time()
        for call in session.calls:
            call.reschedule(now)
        await session.is_unused.wait()
        # Without an answer the group finds out by itself, when it hears nothing of the member any more.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_PATIENCE_S):
                await session.consumer.close()

    async def _end_idle(self) -> None:
        while True:
            await self._clock.sleep_ms(_LOOK_EVERY_MS)
            now_ms = self._clock.monotonic_ms()
            for key, session in list(self._sessions.items()):
                if not session.calls and now_ms - session.used_ms >= session.max_idle_ms:
                    del self._sessions[key]
                    self._tasks.start(self._end(session), key[1])


def _no_member(group_id: str, member_id: str) -> NotFound:
    return NotFound(
        f"this node keeps no member {member_id[:300]!r} of group {group_id[:300]!r}",
        hint="it left, was idle for too long, or joined at another node: join again",
    )
