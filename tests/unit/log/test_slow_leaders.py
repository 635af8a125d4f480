"""A leader on a slow machine gets on: leases are kept before all else, and what was read is not read again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from log_parts.batches import sent
from log_parts.engines import Bench, Running, bench, finishes
from log_parts.waiting import until
from streamhouse.log.lease_keeping import keep_leases
from streamhouse.model.errors import Unavailable
from streamhouse.objects.faulty import Operation

TTL_MS = 30_000


@asynccontextmanager
async def a_successor(*, objects: int = 1) -> AsyncIterator[tuple[Bench, Running]]:
    """Of a leader that died, with so many WAL objects to read."""
    async with bench() as shared:
        async with shared.engine("first", durability="object") as first:
            await first.create()
            for _ in range(objects):
                await first.produce(sent(1_000))
        shared.clock.pass_time(2 * TTL_MS)
        second = shared.unstarted("second", durability="object")
        try:
            second.topics.opened(await shared.metadata.list_topics())
            await second.engine.start(second.topics)
            yield shared, second
        finally:
            await second.engine.abort()


class Held:
    """A method whose answers wait."""

    def __init__(self, target: Any, name: str) -> None:
        self.reached, self._go_on = asyncio.Event(), asyncio.Event()
        method = getattr(target, name)

        async def slowly(*arguments: Any, **options: Any) -> Any:
            answer = await method(*arguments, **options)
            self.reached.set()
            await self._go_on.wait()
            return answer

        setattr(target, name, slowly)

    def let_go(self) -> None:
        self._go_on.set()


@pytest.mark.parametrize("step", ["acquire_leases", "load_partitions", "load_segments", "load_wal_ranges"])
async def test_a_lease_is_kept_from_the_moment_it_is_granted(step: str) -> None:
    """Also while the rows of its partition are read, and before a byte of the objects is."""
    async with a_successor() as (shared, second):
        reading = Held(shared.metadata, step)
        leading = asyncio.create_task(second.place())
        await finishes(reading.reached.wait(), "the reading has begun")
        for _ in range(4):  # longer than a lease lasts, for all but the first answer
            if step != "acquire_leases":
                shared.clock.pass_time(TTL_MS // 2)
            await second.engine.leadership.renew()
        reading.let_go()
        await finishes(leading, "the taking up")

        assert (second.leader().epoch, second.leader().high_watermark) == (2, 1)


@pytest.mark.parametrize("is_lost", [False, True], ids=["the store is away", "the lease is lost"])
async def test_what_was_read_of_wal_objects_is_not_read_again(is_lost: bool) -> None:
    async with a_successor(objects=12) as (shared, second):
        reads: list[str] = []
        get_range = shared.objects.get_range

        async def counted(key: str, *arguments: Any) -> Any:
            reads.append(key)
            return await get_range(key, *arguments)

        shared.objects.get_range = counted  # type: ignore[method-assign]
        last = sorted([key for key in await shared.keys() if "wal" in key])[-1]
        if is_lost:
            held = shared.objects.hold(Operation.READ, matches=lambda key: key == last)
            leading = asyncio.create_task(second.place())
            await finishes(held.reached.wait(), "the last object is read")
            shared.clock.pass_time(2 * TTL_MS)
            await second.engine.leadership.renew()
            held.release()
            await leading
        else:
            shared.objects.fail(Operation.READ, matches=lambda key: key == last, times=1)
            with pytest.raises(Unavailable):
                await second.place()
        assert not second.engine.leadership.leaders

        shared.clock.pass_time(1_000)
        await second.place()
        assert second.leader().high_watermark == 12
        once = [key for key in set(reads) if reads.count(key) == 1]
        assert len(once) >= 8, "what had been read before the last few objects"
        assert not second.engine.leadership._reads._partitions, "and nothing of it is kept"


async def test_who_lost_its_lease_while_it_read_is_tried_again_soon_and_not_at_once() -> None:
    async with a_successor() as (shared, second):
        looks = 0

        def lost() -> None:
            nonlocal looks
            looks += 1

        second.engine.leadership._lost = lost
        held = shared.objects.hold(Operation.READ)
        leading = asyncio.create_task(second.place())
        await finishes(held.reached.wait(), "the reading has begun")
        shared.clock.pass_time(2 * TTL_MS)
        await second.engine.leadership.renew()
        held.release()
        await finishes(leading, "the try")
        assert not second.engine.leadership.leaders

        await second.place()
        assert not second.engine.leadership.leaders, "it rests for a moment"
        second.engine.leadership.wake_rested()
        assert looks == 0
        shared.clock.pass_time(1_000)
        second.engine.leadership.wake_rested()
        assert looks == 1, "somebody is told to look again"
        await second.place()
        assert second.leader().high_watermark == 1


async def test_other_leases_are_renewed_while_lost_ones_are_taken_again(tmp_path: Any) -> None:
    """Which takes a store that is slow a while."""
    async with bench(tmp_path / "wal") as shared, shared.engine(lease_ttl=TTL_MS, lease_renewal=10_000) as running:
        await running.create("lost")
        await running.create("kept")
        lost, kept = running.leader("lost"), running.leader("kept")
        leadership = running.engine.leadership
        await shared.metadata.release_leases(leadership._agent_id, [leadership._leases[lost.partition]], drained=False)
        taking = Held(shared.metadata, "acquire_leases")
        first = asyncio.create_task(leadership.renew())
        await finishes(taking.reached.wait(), "it is being taken again")
        for _ in range(3):
            shared.clock.pass_time(TTL_MS // 2)
            await finishes(leadership.extend(), "the renewal of the others")
        assert kept.writable_until_ms > shared.clock.monotonic_ms()
        taking.let_go()
        await finishes(first, "the taking")
        assert (kept.epoch, lost.removed) == (1, False)


async def test_renewals_keep_their_pace_though_each_takes_its_time() -> None:
    async with bench() as shared, shared.engine(lease_ttl=2_000, lease_renewal=900) as running:
        await running.create()
        asked_ms: list[int] = []
        slept_ms: list[float] = []

        class Clock:
            """On which renewing takes 600 ms."""

            now = 0

            def monotonic_ms(self) -> int:
                return self.now

            async def sleep_ms(self, duration_ms: float) -> None:
                slept_ms.append(duration_ms)
                self.now += int(duration_ms)
                if len(slept_ms) > 5:
                    raise asyncio.CancelledError

        clock = Clock()

        class Slow:
            async def extend(self) -> None:
                asked_ms.append(clock.now)
                clock.now += 600

        with pytest.raises(asyncio.CancelledError):
            await keep_leases(Slow(), clock, 900)  # type: ignore[arg-type]
        assert asked_ms == [900, 1_800, 2_700, 3_600, 4_500]


async def test_a_renewal_that_failed_is_tried_again_before_the_next_would_be_due() -> None:
    async with bench() as shared, shared.engine(lease_ttl=60_000, lease_renewal=20_000) as running:
        await running.create()
        shared.metadata.fail("renew_leases", times=2)
        running.engine.leadership.expire()
        tries = shared.metadata.calls.count("renew_leases")
        keeping = asyncio.create_task(keep_leases(running.engine.leadership, shared.clock, 40))
        await until(lambda: shared.metadata.calls.count("renew_leases") >= tries + 3, "the third try")
        await until(lambda: running.leader().writable_until_ms > 0, "it is renewed")
        keeping.cancel()
