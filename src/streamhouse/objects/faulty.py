"""A store that fails, stalls or loses its answer when told to: for tests, around any other store."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import StorageUnavailable
from streamhouse.objects.store import ObjectInfo, ObjectStore
from streamhouse.runtime.clock import Clock

T = TypeVar("T")


class Operation(Enum):
    CREATE = "create"
    READ = "read"
    HEAD = "head"
    LIST = "list"
    DELETE = "delete"


class Moment(Enum):
    """When a call fails: before anything happened; in the middle, when a create leaves nothing visible, a delete did
    half of its keys and a list gave its first object; or after it took effect, so that only the answer is lost."""

    BEFORE = "before"
    PARTWAY = "partway"
    AFTER = "after"


def _injected() -> Exception:
    return StorageUnavailable("injected fault")


def _any_key(key: str) -> bool:
    return True


@dataclass(slots=True, kw_only=True)
class _Fault:
    operation: Operation
    matches: Callable[[str], bool]
    remaining: int | None

    def take(self, operation: Operation, keys: Sequence[str]) -> bool:
        if operation is not self.operation or self.remaining == 0 or not any(map(self.matches, keys)):
            return False
        if self.remaining is not None:
            self.remaining -= 1
        return True


@dataclass(slots=True, kw_only=True)
class _Failure(_Fault):
    moment: Moment
    error: Callable[[], Exception]


@dataclass(slots=True, kw_only=True)
class _Delay(_Fault):
    delay_ms: float


@dataclass(slots=True, kw_only=True)
class Hold(_Fault):
    """A call stopped at the door: wait until one is there, then let it and all others through."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        self.remaining = 0
        self.released.set()


class FaultyStore:
    """`times=None` means until `heal`. Faults are told by operation and by key; a list's key is its prefix."""

    def __init__(self, inner: ObjectStore, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self._failures: list[_Failure] = []
        self._delays: list[_Delay] = []
        self._holds: list[Hold] = []
        self.calls: Counter[Operation] = Counter()

    def fail(
        self,
        operation: Operation,
        *,
        times: int | None = 1,
        moment: Moment = Moment.BEFORE,
        matches: Callable[[str], bool] = _any_key,
        error: Callable[[], Exception] = _injected,
    ) -> None:
        self._failures.append(
            _Failure(operation=operation, matches=matches, remaining=times, moment=moment, error=error)
        )

    def slow(
        self,
        operation: Operation,
        delay_ms: float,
        *,
        times: int | None = 1,
        matches: Callable[[str], bool] = _any_key,
    ) -> None:
        self._delays.append(_Delay(operation=operation, matches=matches, remaining=times, delay_ms=delay_ms))

    def hold(
        self, operation: Operation, *, times: int | None = None, matches: Callable[[str], bool] = _any_key
    ) -> Hold:
        hold = Hold(operation=operation, matches=matches, remaining=times)
        self._holds.append(hold)
        return hold

    def heal(self) -> None:
        for hold in self._holds:
            hold.release()
        self._failures.clear()
        self._delays.clear()
        self._holds.clear()

    async def create(self, key: str, parts: Sequence[Buffer]) -> None:
        await self._call(Operation.CREATE, [key], lambda: self._inner.create(key, parts))

    async def get(self, key: str) -> bytes:
        return await self._call(Operation.READ, [key], lambda: self._inner.get(key))

    async def get_range(self, key: str, start: int, end: int) -> bytes:
        return await self._call(Operation.READ, [key], lambda: self._inner.get_range(key, start, end))

    async def get_suffix(self, key: str, size_bytes: int) -> tuple[bytes, int]:
        return await self._call(Operation.READ, [key], lambda: self._inner.get_suffix(key, size_bytes))

    async def head(self, key: str) -> ObjectInfo:
        return await self._call(Operation.HEAD, [key], lambda: self._inner.head(key))

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        failure = await self._meet(Operation.LIST, [prefix])
        if failure is not None and failure.moment is Moment.BEFORE:
            raise failure.error()
        async for info in self._inner.list(prefix):
            yield info
            if failure is not None and failure.moment is Moment.PARTWAY:
                raise failure.error()
        if failure is not None:
            raise failure.error()

    async def delete(self, keys: Sequence[str]) -> None:
        await self._call(
            Operation.DELETE,
            keys,
            lambda: self._inner.delete(keys),
            partway=lambda: self._inner.delete(keys[: len(keys) // 2]),
        )

    async def close(self) -> None:
        await self._inner.close()

    async def _call(
        self,
        operation: Operation,
        keys: Sequence[str],
        act: Callable[[], Awaitable[T]],
        partway: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        failure = await self._meet(operation, keys)
        if failure is None:
            return await act()
        if failure.moment is Moment.AFTER:
            await act()
        elif failure.moment is Moment.PARTWAY and partway is not None:
            await partway()
        raise failure.error()

    async def _meet(self, operation: Operation, keys: Sequence[str]) -> _Failure | None:
        """Wait as told; the failure that this call is to have, if any."""
        self.calls[operation] += 1
        failure = next((failure for failure in self._failures if failure.take(operation, keys)), None)
        for delay in self._delays:
            if delay.take(operation, keys):
                await self._clock.sleep_ms(delay.delay_ms)
        for hold in tuple(self._holds):
            if hold.take(operation, keys):
                hold.reached.set()
                await hold.released.wait()
        return failure
