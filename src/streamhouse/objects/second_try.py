"""A second try beside a first one that takes longer than its size explains.

A connection may die without a word: whoever asks over it waits, and so does the next one that gets it from a pool. The
second try goes over another connection; the first one goes on meanwhile, since it may only be slow. It may be slow
because of all the others over a thin link, so that only a few have a second try at a time: enough to find a way past
dead connections, too few to be what the link is busy with."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from streamhouse.model.errors import StorageUnavailable
from streamhouse.objects.patience import Patience, Traffic
from streamhouse.runtime.tasks import begin

T = TypeVar("T")
Request = Callable[[Patience], Coroutine[Any, Any, T]]

_AT_ONCE = {256 * 2**10: 8, 16 * 2**20: 2, sys.maxsize: 2}
"""How many requests up to a size have a second try at a time. What records wait for does not wait behind segments."""


class SecondTries:
    """Those of one store in one direction."""

    def __init__(self, slowest_bytes_per_s: int) -> None:
        self._traffic = Traffic(slowest_bytes_per_s)
        self._turns = {most_bytes: asyncio.Semaphore(count) for most_bytes, count in _AT_ONCE.items()}

    async def ask(
        self, first: Request[T], second: Request[T], size_bytes: int = 0, *, outrun: Callable[[], None] = lambda: None
    ) -> T:
        """The answer of whichever has one sooner; StorageUnavailable is none while the other may still have one. What
        is left over is cancelled. `outrun` is called if the second try was answered and the first was not. TimeoutError
        when patience has ended."""
        patience = self._traffic.begin(size_bytes)
        begun_s = asyncio.get_running_loop().time()
        tries = [begin(first(patience))]
        try:
            if not await _answered(tries, begun_s, patience.second_try_s):
                tries.append(begin(self._ask_beside(tries[0], second, patience)))
                if not await _answered(tries, begun_s, patience.limit_s):
                    raise TimeoutError(f"no answer within {patience.limit_s():.0f} s")
                if not tries[0].done():
                    outrun()
            # The last one's failure, if none was answered.
            return next((attempt for attempt in tries if _is_answer(attempt)), tries[-1]).result()
        finally:
            self._traffic.end(patience)
            for attempt in tries:
                if not attempt.cancel():
                    attempt.exception()  # which nobody else may have looked at

    async def _ask_beside(self, first: asyncio.Future[T], second: Request[T], patience: Patience) -> T:
        """When it has its turn, which it gives to others after a while; and again as long as the first is waited for,
        with more time, for its own connection may die as well."""
        attempt_s = patience.attempt_s()
        while True:
            try:
                async with self._turn(patience.size_bytes):
                    patience.attempts += 1
                    try:
                        async with asyncio.timeout(attempt_s):
                            return await second(patience)
                    finally:
                        patience.attempts -= 1
            except (StorageUnavailable, TimeoutError):
                await asyncio.wait([first], timeout=patience.second_try_s())
                if first.done():
                    raise
            attempt_s *= 2

    def _turn(self, size_bytes: int) -> asyncio.Semaphore:
        return next(turn for most_bytes, turn in self._turns.items() if size_bytes <= most_bytes)


async def _answered(tries: Sequence[asyncio.Future[T]], begun_s: float, limit_s: Callable[[], float]) -> bool:
    """Whether there is an answer, or no hope of one, within the limit, which may move meanwhile."""
    clock = asyncio.get_running_loop().time
    while True:
        waiting = [attempt for attempt in tries if not attempt.done()]
        if not waiting or any(_is_answer(attempt) for attempt in tries):
            return True
        left_s = begun_s + limit_s() - clock()
        if left_s <= 0:
            return False
        await asyncio.wait(waiting, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)


def _is_answer(attempt: asyncio.Future[Any]) -> bool:
    return attempt.done() and not isinstance(attempt.exception(), StorageUnavailable | TimeoutError)
