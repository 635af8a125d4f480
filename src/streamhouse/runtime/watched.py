"""Something far away that is looked at again and again, and may not answer: what it said last, and since when it is
silent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from streamhouse.model.errors import StreamHouseError
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup

T = TypeVar("T")
_GLANCE_MS = 200
"""For what did not answer last time: that it does again is seen at the next look, if not at this one."""


class Silence(NamedTuple):
    """`since_ms`: when, by the wall clock, the first of the questions was asked that got no answer."""

    since_ms: int
    why: str


class Answer(NamedTuple, Generic[T]):
    """`at_ms`: when, by the wall clock, it was asked for; nothing in it is older."""

    at_ms: int
    value: T


class Watched(Generic[T]):
    """One question is under way at a time, and nobody waits for it longer than `patience_ms`: a look that finds none
    answered tells of the silence, and the question goes on. So whoever does not answer holds up nobody, and costs one
    question, however many look."""

    def __init__(
        self, ask: Callable[[], Awaitable[T]], clock: Clock, tasks: TaskGroup, name: str, *, patience_ms: int
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._tasks = tasks
        self._name = name
        self._patience_ms = patience_ms
        self._asking: asyncio.Task[None] | None = None
        self._asked_at_ms = 0
        self.answer: Answer[T] | None = None
        self.silence: Silence | None = None
        """None if the last question was answered, or none has been asked."""

    async def look(self) -> None:
        """Ask, unless a question is under way, and wait a while for the answer."""
        if self._asking is None:
            self._asked_at_ms = self._clock.now_ms()
            self._asking = self._tasks.start(self._put(), self._name)
        asking = self._asking
        wait_ms = self._patience_ms if self.silence is None else _GLANCE_MS
        await asyncio.wait((asking,), timeout=wait_ms / 1000)
        # Another may have been put already by who looks anew: that one's time has not come.
        if not asking.done():
            self._is_silent(f"no answer within {self._patience_ms} ms")

    async def look_anew(self) -> None:
        """For whoever has just done something that is to be seen: the answer to a question that was under way before
        may be older than that, so another one is asked, or nothing is known while that one is under way."""
        older = self._asking
        if older is not None:
            await self.look()
            if not older.done():
                return
        await self.look()

    async def _put(self) -> None:
        asked_at_ms = self._asked_at_ms
        try:
            self.answer = Answer(asked_at_ms, await self._ask())
            self.silence = None
        except StreamHouseError as problem:
            self._is_silent(str(problem))
        finally:
            self._asking = None

    def _is_silent(self, why: str) -> None:
        self.silence = Silence(self._asked_at_ms if self.silence is None else self.silence.since_ms, why)
