"""Several places to ask one thing: in the order given, and nobody waits long for one that is silent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from streamhouse.model.errors import Unavailable
from streamhouse.runtime.tasks import begin

Place = TypeVar("Place")
Answer = TypeVar("Answer")

HEAD_START_S = 1.0
"""What is there answers sooner, unless it is very busy; so the next one is asked beside it, and not in its place."""


class NoneAnswers(Exception):
    """All of them failed; `problems` are in the order of the places."""

    def __init__(self, problems: Sequence[Unavailable]) -> None:
        super().__init__()
        self.problems = problems


async def first_answer(places: Sequence[Place], ask: Callable[[Place], Awaitable[Answer]]) -> Answer:
    """What is not Unavailable is raised at once."""

    async def of(place: Place) -> Answer:
        return await ask(place)

    asked: list[asyncio.Task[Answer]] = []
    try:
        for place in places:
            asked.append(begin(of(place)))
            if answered := await first_of(asked, timeout_s=HEAD_START_S):
                return answered.result()
        if answered := await first_of(asked):
            return answered.result()
        raise NoneAnswers(problems_of(asked))
    finally:
        await end(asked)


async def first_of(
    tasks: Sequence[asyncio.Task[Answer]], timeout_s: float | None = None
) -> asyncio.Task[Answer] | None:
    """None if all have failed, or the time is over."""
    loop = asyncio.get_running_loop()
    until = None if timeout_s is None else loop.time() + timeout_s
    while True:
        for task in tasks:
            if task.done() and not isinstance(task.exception(), Unavailable):
                return task
        waiting = [task for task in tasks if not task.done()]
        left_s = None if until is None else until - loop.time()
        if not waiting or (left_s is not None and left_s <= 0):
            return None
        await asyncio.wait(waiting, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)


def problems_of(tasks: Sequence[asyncio.Task[Answer]]) -> list[Unavailable]:
    """Of tasks all of which have ended."""
    return [problem for task in tasks if isinstance(problem := task.exception(), Unavailable)]


async def end(tasks: Sequence[asyncio.Task[Answer]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
