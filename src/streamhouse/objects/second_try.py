"""A second try beside a first one that takes longer than its size explains.

A connection may die without a word: whoever asks over it waits, and so does the next one that gets it from a pool. The
second try goes over another connection; the first one goes on meanwhile, since it may only be slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from streamhouse.model.errors import StorageUnavailable
from streamhouse.runtime.tasks import begin

T = TypeVar("T")

_SECOND_TRY_S = 2.0
_SECOND_TRY_BYTES_PER_S = 4 * 2**20
_LIMIT_S = 8.0
_LIMIT_BYTES_PER_S = 2 * 2**20


class Patience:
    """How many seconds a request may take before it is tried once more, and before it is given up: seconds for a small
    one, a minute for the largest segment."""

    __slots__ = ("limit_s", "second_try_s")

    def __init__(self, size_bytes: int = 0) -> None:
        self.second_try_s = 0.0
        self.limit_s = 0.0
        self.expect(size_bytes)

    def expect(self, size_bytes: int) -> None:
        """Also while the request is under way, when its answer says how much there is to come."""
        self.second_try_s = _SECOND_TRY_S + size_bytes / _SECOND_TRY_BYTES_PER_S
        self.limit_s = _LIMIT_S + size_bytes / _LIMIT_BYTES_PER_S


async def with_second_try(
    first: Callable[[Patience], Coroutine[Any, Any, T]],
    second: Callable[[Patience], Coroutine[Any, Any, T]],
    size_bytes: int = 0,
    *,
    outrun: Callable[[], None] = lambda: None,
) -> T:
    """The answer of whichever has one sooner; StorageUnavailable is none while the other may still have one. What is
    left over is cancelled. `outrun` is called if the second try was answered and the first was not. TimeoutError when
    patience has ended."""
    patience = Patience(size_bytes)
    begun_s = asyncio.get_running_loop().time()
    tries = [begin(first(patience))]
    try:
        if not await _answered(tries, begun_s, lambda: patience.second_try_s):
            tries.append(begin(second(patience)))
            if not await _answered(tries, begun_s, lambda: patience.limit_s):
                raise TimeoutError(f"no answer within {patience.limit_s:.0f} s")
            if not tries[0].done():
                outrun()
        # The last one's failure, if none was answered.
        return next((attempt for attempt in tries if _is_answer(attempt)), tries[-1]).result()
    finally:
        for attempt in tries:
            if not attempt.cancel():
                attempt.exception()  # which nobody else may have looked at


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
    return attempt.done() and not isinstance(attempt.exception(), StorageUnavailable)
