"""The faulty store does exactly the faults that it is told to."""

from __future__ import annotations

import asyncio

import pytest

from services.clock import ManualClock
from streamhouse.model.errors import AlreadyExists, NotFound, StorageUnavailable
from streamhouse.objects.faulty import FaultyStore, Moment, Operation
from streamhouse.objects.memory import MemoryStore


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def inner(clock: ManualClock) -> MemoryStore:
    return MemoryStore(clock)


@pytest.fixture
def store(inner: MemoryStore, clock: ManualClock) -> FaultyStore:
    return FaultyStore(inner, clock)


async def keys(store: FaultyStore | MemoryStore) -> list[str]:
    return [info.key async for info in store.list("")]


async def test_the_next_calls_fail_as_often_as_told_and_then_no_more(store: FaultyStore) -> None:
    store.fail(Operation.CREATE, times=2)
    for _ in range(2):
        with pytest.raises(StorageUnavailable):
            await store.create("a", [b"x"])
    assert await keys(store) == []
    await store.create("a", [b"x"])
    assert await store.get("a") == b"x"


async def test_a_failure_afterwards_is_a_lost_answer(store: FaultyStore, inner: MemoryStore) -> None:
    store.fail(Operation.CREATE, moment=Moment.AFTER)
    with pytest.raises(StorageUnavailable):
        await store.create("a", [b"x"])
    assert await inner.get("a") == b"x"
    with pytest.raises(AlreadyExists):
        await store.create("a", [b"x"])


async def test_a_failure_partway_shows_what_a_store_shows(store: FaultyStore, inner: MemoryStore) -> None:
    store.fail(Operation.CREATE, moment=Moment.PARTWAY)
    with pytest.raises(StorageUnavailable):
        await store.create("a", [b"x"])
    with pytest.raises(NotFound):
        await inner.get("a")

    for key in "abcd":
        await store.create(key, [b"x"])
    store.fail(Operation.DELETE, moment=Moment.PARTWAY)
    with pytest.raises(StorageUnavailable):
        await store.delete(["a", "b", "c", "d"])
    assert await keys(inner) == ["c", "d"]

    store.fail(Operation.LIST, moment=Moment.PARTWAY)
    seen = []
    with pytest.raises(StorageUnavailable):
        await _collect(store, seen)
    assert seen == ["c"]


async def _collect(store: FaultyStore, seen: list[str]) -> None:
    async for info in store.list(""):
        seen.append(info.key)


async def test_faults_are_for_one_operation_and_for_the_keys_that_match(store: FaultyStore) -> None:
    store.fail(Operation.READ, times=None, matches=lambda key: key.endswith("bad"))
    for key in ("good", "bad"):
        await store.create(key, [b"x"])
    assert await store.get("good") == b"x"
    assert (await store.head("bad")).size_bytes == 1
    for read in (store.get("bad"), store.get_range("bad", 0, 1), store.get_suffix("bad", 1)):
        with pytest.raises(StorageUnavailable):
            await read
    store.heal()
    assert await store.get("bad") == b"x"


async def test_any_error_may_be_injected(store: FaultyStore) -> None:
    store.fail(Operation.HEAD, error=lambda: NotFound("injected"))
    await store.create("a", [b"x"])
    with pytest.raises(NotFound, match="injected"):
        await store.head("a")


async def test_slow_calls_take_the_clocks_time(store: FaultyStore, clock: ManualClock) -> None:
    store.slow(Operation.CREATE, 500, times=2)
    for key in "abc":
        await store.create(key, [b"x"])
    assert clock.slept_ms == [500, 500]


async def test_a_held_call_waits_until_it_is_released(store: FaultyStore, inner: MemoryStore) -> None:
    hold = store.hold(Operation.CREATE)
    creating = asyncio.create_task(store.create("a", [b"x"]))
    await hold.reached.wait()
    assert await keys(inner) == []
    assert not creating.done()
    hold.release()
    await creating
    assert await keys(inner) == ["a"]
    await store.create("b", [b"x"])


async def test_healing_lets_held_calls_through(store: FaultyStore) -> None:
    hold = store.hold(Operation.READ)
    await store.create("a", [b"x"])
    reading = asyncio.create_task(store.get("a"))
    await hold.reached.wait()
    store.heal()
    assert await reading == b"x"


async def test_calls_are_counted_also_those_that_fail(store: FaultyStore) -> None:
    store.fail(Operation.CREATE)
    with pytest.raises(StorageUnavailable):
        await store.create("a", [b"x"])
    await store.create("a", [b"x"])
    await store.get("a")
    await store.get_suffix("a", 1)
    await keys(store)
    await store.delete(["a"])
    assert store.calls == {Operation.CREATE: 2, Operation.READ: 2, Operation.LIST: 1, Operation.DELETE: 1}
