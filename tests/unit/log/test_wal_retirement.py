"""WAL objects go when segments cover them; orphans go when nobody can want them any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from uuid import uuid4

import pytest

from log_parts.object_wals import GRACE_MS, Bench, SteppedClock, quiet
from log_parts.waiting import until
from streamhouse.format.object_keys import wal_object_key
from streamhouse.log.wal_retirement import WalRetirement
from streamhouse.objects.faulty import Operation
from streamhouse.runtime.tasks import TaskGroup


class RetiringBench(Bench):
    def __init__(self) -> None:
        self.stepped = SteppedClock()
        super().__init__(self.stepped, close_timeout_ms=20)
        self.retirement = self.retirement_of(lambda: self.wal.keys_under_way)

    def retirement_of(self, keys_under_way: Callable[[], Set[str]]) -> WalRetirement:
        return WalRetirement(
            store=self.store,
            objects=self.objects,
            clock=self.stepped,
            garbage_grace_ms=GRACE_MS,
            keys_under_way=keys_under_way,
        )

    async def search_twice(self) -> None:
        """So that what was an orphan all the time is removed."""
        await self.retirement.remove_orphans()
        self.stepped.advance(2 * GRACE_MS)
        await self.retirement.remove_orphans()

    async def upload_orphan(self, agent_id: str = "agent-9") -> str:
        """As an agent leaves it that dies before its commit."""
        key = wal_object_key(agent_id, self.stepped.now_ms(), uuid4())
        await self.inner.create(key, [b"never committed"])
        return key


async def test_objects_whose_every_range_is_covered_are_retired() -> None:
    bench = RetiringBench()
    first, second = bench.owner(0), bench.owner(1)
    for _ in range(2):
        first.append(bench.wal)
        second.append(bench.wal)
        await bench.stepped.pass_time(10)
    keys = await bench.keys()

    bench.store.cover(first.partition, 2)
    await bench.retirement.retire()
    assert bench.store.garbage == []
    bench.store.cover(second.partition, 1)
    await bench.retirement.retire()

    assert bench.store.garbage == keys[:1]
    assert await bench.store.list_wal_object_keys() == keys[1:]


async def test_retiring_goes_on_until_there_is_nothing_left(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = RetiringBench()
    monkeypatch.setattr("streamhouse.log.wal_retirement._RETIRED_AT_ONCE", 2)
    owner = bench.owner()
    for _ in range(5):
        owner.append(bench.wal)
        await bench.stepped.pass_time(10)
    bench.store.cover(owner.partition, 5)

    await bench.retirement.retire()

    assert len(bench.store.garbage) == 5


async def test_an_orphan_of_any_agent_goes_when_it_has_been_known_for_the_grace_period() -> None:
    bench = RetiringBench()
    orphan = await bench.upload_orphan()
    await bench.retirement.remove_orphans()
    bench.stepped.advance(GRACE_MS - 1)
    await bench.retirement.remove_orphans()
    assert await bench.keys() == [orphan]

    bench.stepped.advance(1)
    await bench.retirement.remove_orphans()

    assert await bench.keys() == []


async def test_an_object_that_waits_for_its_commit_survives_another_agent_whose_clock_jumps() -> None:
    bench = RetiringBench()
    other = bench.retirement_of(lambda: set())
    owner = bench.owner()
    bench.store.gate.clear()
    owner.append(bench.wal)
    await bench.stepped.pass_time(10)
    assert len(await bench.keys()) == 1

    await other.remove_orphans()
    bench.stepped.set_wall_clock(bench.stepped.now_ms() + 10 * GRACE_MS)
    await other.remove_orphans()
    bench.store.gate.set()
    await bench.until_durable(owner)

    assert await bench.replayed(owner) == owner.appended
    await bench.wal.close()


async def test_committed_objects_stay_however_old_they_are() -> None:
    bench = RetiringBench()
    owner = bench.owner()
    owner.append(bench.wal)
    await bench.stepped.pass_time(10)
    await bench.search_twice()

    assert await bench.replayed(owner) == owner.appended


async def test_an_object_that_is_committed_during_the_search_stays() -> None:
    bench = RetiringBench()
    owner = bench.owner()
    bench.store.gate.clear()
    owner.append(bench.wal)
    await bench.stepped.pass_time(10)
    (key,) = await bench.keys()
    other = bench.retirement_of(lambda: set())
    await other.remove_orphans()
    bench.stepped.advance(GRACE_MS)
    listing = bench.objects.hold(Operation.LIST)
    searching = asyncio.ensure_future(other.remove_orphans())
    await until(listing.reached.is_set, "the search has begun")
    bench.store.gate.set()
    await quiet()
    assert bench.wal.keys_under_way == set()

    listing.release()
    await searching

    assert await bench.keys() == [key]


async def test_what_our_own_wal_is_writing_stays() -> None:
    bench = RetiringBench()
    owner = bench.owner()
    bench.store.gate.clear()
    owner.append(bench.wal)
    await bench.stepped.pass_time(10)

    await bench.search_twice()

    assert set(await bench.keys()) == bench.wal.keys_under_way != set()
    await bench.wal.close()


async def test_objects_that_are_not_ours_are_left_alone() -> None:
    bench = RetiringBench()
    await bench.inner.create("wal/agent-1/notes.txt", [b"an operator's"])
    await bench.inner.create("segments/x", [b""])

    await bench.search_twice()

    assert [item.key async for item in bench.inner.list("")] == ["segments/x", "wal/agent-1/notes.txt"]


async def test_it_runs_again_and_again_also_after_a_failure() -> None:
    bench = RetiringBench()
    owner = bench.owner()
    owner.append(bench.wal)
    await bench.stepped.pass_time(10)
    bench.store.cover(owner.partition, 1)
    orphan = await bench.upload_orphan()
    bench.objects.fail(Operation.LIST)
    chores = TaskGroup("test")
    chores.start(bench.retirement.run(interval_ms=60_000), "retirement")

    await bench.stepped.pass_time(60_000)
    assert len(bench.store.garbage) == 1
    await bench.stepped.pass_time(GRACE_MS)
    assert orphan in await bench.keys()
    await bench.stepped.pass_time(2 * GRACE_MS)

    assert orphan not in await bench.keys()
    await chores.cancel()
