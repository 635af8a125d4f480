"""Object durability: any agent can read what was acknowledged, and who was replaced acknowledges nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from log_parts.batches import sent
from log_parts.engines import Bench, Running, bench, finishes
from log_parts.waiting import until
from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.format.batch import iter_headers
from streamhouse.log import engine
from streamhouse.model.errors import NotLeader, StorageUnavailable, Unavailable
from streamhouse.objects.faulty import Hold, Moment, Operation

TTL_MS = 30_000
PRODUCER = 11


def is_wal_object(key: str) -> bool:
    return key.startswith("wal/")


async def headers(running: Running) -> list[tuple[int, int]]:
    return [(header.base_offset, header.leader_epoch) for _, header in iter_headers(await running.read())]


async def wal_keys(shared: Bench) -> list[str]:
    return [key for key in await shared.keys() if is_wal_object(key)]


@asynccontextmanager
async def taken_up(shared: Bench) -> AsyncIterator[tuple[Running, Hold, asyncio.Task[None]]]:
    """The topic of a killed agent, while the next one takes it up, which goes on when the hold is released."""
    async with shared.engine("first", durability="object") as first:
        await first.create()
        await first.produce(sent())
    shared.clock.pass_time(2 * TTL_MS)
    reading = shared.objects.hold(Operation.READ)
    second = shared.unstarted("second", durability="object")
    try:
        second.topics.opened(await shared.metadata.list_topics())
        await second.engine.start(second.topics)
        leading = asyncio.create_task(second.place())
        await finishes(reading.reached.wait(), "the reading has begun")
        yield second, reading, leading
    finally:
        await second.engine.abort()


async def test_what_a_killed_agent_acknowledged_is_led_by_another_with_the_same_offsets() -> None:
    async with bench() as shared:
        async with shared.engine("first", durability="object") as first:
            await first.create()
            await first.produce(*[sent(300, fill=b"%d" % number) for number in range(4)])
            await first.engine.flush()
            await first.produce(*[sent(300, fill=b"%d" % number, count=2) for number in range(3)])
            before = await first.read()
        shared.clock.pass_time(2 * TTL_MS)
        async with shared.engine("second", durability="object") as second:
            leader = second.leader()
            assert await second.read() == before
            assert (leader.committed_end, leader.high_watermark) == (4, 10)
            assert leader.epochs == [(1, 0), (2, 10)]
            await second.produce(sent())
            assert (await headers(second))[-2:] == [(8, 1), (10, 2)]
            await finishes(second.engine.flush(), "the flush")
            assert (await headers(second))[-2:] == [(8, 1), (10, 2)]


async def test_nothing_of_it_is_on_anybodys_disk(tmp_path: Path) -> None:
    async with bench(tmp_path / "wal") as shared, shared.engine(durability="object") as running:
        await running.create()
        await running.produce(sent())

        (placement,) = await shared.metadata.list_placements()
        assert placement.wal_agent_id == ""
        assert placement.durable_end == 1
        assert len(await wal_keys(shared)) == 1


async def test_the_producers_of_a_killed_agent_are_known_to_the_next() -> None:
    async with bench() as shared:
        async with shared.engine("first", durability="object") as first:
            await first.create()
            await first.produce(sent(producer=(PRODUCER, 0, 0)))
            await first.engine.flush()
            await first.produce(sent(producer=(PRODUCER, 0, 1)))
        shared.clock.pass_time(2 * TTL_MS)
        async with shared.engine("second", durability="object") as second:
            await second.produce(*[sent(producer=(PRODUCER, 0, sequence)) for sequence in range(3)])
            assert second.leader().next_offset == 3


async def test_leaders_that_are_killed_one_after_the_other_leave_nothing_out_and_nothing_twice() -> None:
    async with bench() as shared:
        for number in range(5):
            async with shared.engine(f"agent-{number}", durability="object") as running:
                if number == 0:
                    await running.create()
                await running.produce(*[sent(300) for _ in range(3)])
                if number % 2:
                    await running.engine.flush()
                await running.produce(sent(300))
            shared.clock.pass_time(2 * TTL_MS)
        async with shared.engine("last", durability="object") as running:
            found = await headers(running)

        assert [offset for offset, _ in found] == list(range(20))
        assert [epoch for _, epoch in found] == [1 + number // 4 for number in range(20)]


async def test_a_leader_that_another_has_replaced_acknowledges_nothing_and_changes_nothing() -> None:
    """It believes in its lease, say because its clock stood still: the store does not."""
    async with bench() as shared, shared.engine("old", durability="object") as old:
        await old.create()
        await old.produce(sent())
        leader = old.leader()
        shared.clock.pass_time(2 * TTL_MS)
        async with shared.engine("new", durability="object") as new:
            leader.writable_until_ms = 2**60
            ack = old.append(sent(fill=b"late"), leader)
            await until(lambda: ack.heard, "the append is settled")

            assert [type(heard) for heard in ack.heard] == [NotLeader]
            assert leader.removed
            await new.produce(sent())
            assert await headers(new) == [(0, 1), (1, 2)]


async def test_an_object_that_was_on_its_way_when_another_took_over_is_not_acknowledged() -> None:
    async with bench() as shared, shared.engine("old", durability="object") as old:
        await old.create()
        hold = shared.objects.hold(Operation.CREATE, times=1, matches=is_wal_object)
        ack = old.append(sent(fill=b"late"))
        await hold.reached.wait()
        shared.clock.pass_time(2 * TTL_MS)
        async with shared.engine("new", durability="object") as new:
            await new.produce(sent())
            hold.release()
            await until(lambda: ack.heard, "the append is settled")

            assert not ack.is_durable
            assert await headers(new) == [(0, 2)]


async def test_a_lease_that_ran_out_is_not_taken_again_but_led_anew() -> None:
    async with bench() as shared, shared.engine(durability="object") as running:
        await running.create()
        await running.produce(sent())
        first = running.leader()
        shared.clock.pass_time(2 * TTL_MS)

        await running.engine.leadership.renew()
        assert first.removed
        await running.place()

        assert running.leader() is not first
        await running.produce(sent())
        assert await headers(running) == [(0, 1), (1, 2)]


async def test_a_lost_lease_is_reported_to_who_decides_about_leading() -> None:
    async with bench() as shared, shared.engine(durability="object") as running:
        await running.create()
        reports: list[None] = []
        running.engine.leadership._lost = lambda: reports.append(None)
        shared.clock.pass_time(2 * TTL_MS)

        await running.engine.leadership.renew()

        assert reports


@pytest.mark.parametrize("moment", list(Moment))
async def test_an_object_whose_storing_fails_is_stored_again_and_acknowledged_once(moment: Moment) -> None:
    async with bench() as shared, shared.engine(durability="object") as running:
        await running.create()
        shared.objects.fail(Operation.CREATE, moment=moment, matches=is_wal_object)

        await running.produce(sent(), sent())

        assert await headers(running) == [(0, 1), (1, 1)]


@pytest.mark.parametrize("lost_answer", [False, True])
async def test_a_commit_of_an_object_that_fails_is_repeated(lost_answer: bool) -> None:
    async with bench() as shared:
        async with shared.engine("first", durability="object") as first:
            await first.create()
            shared.metadata.fail("commit_wal_objects", lost_answer=lost_answer)
            await first.produce(sent(), sent())
            before = await first.read()
        shared.clock.pass_time(2 * TTL_MS)
        async with shared.engine("second", durability="object") as second:
            assert await second.read() == before


async def test_a_partition_whose_wal_object_is_gone_is_not_led_and_the_others_are() -> None:
    async with bench() as shared:
        async with shared.engine("first", durability="object") as first:
            await first.create("damaged")
            await first.produce(sent(), leader=first.leader("damaged"))
            await shared.inner.delete(await wal_keys(shared))
            await first.create("sound")
            await first.produce(sent(), leader=first.leader("sound"))
        shared.clock.pass_time(2 * TTL_MS)
        async with shared.engine("second", durability="object") as second:
            assert second.leader("sound").high_watermark == 1
            with pytest.raises(NotLeader):
                second.leader("damaged")
        placements = {placement.topic: placement for placement in await shared.metadata.list_placements()}
        assert placements["damaged"].lease_left_ms <= 0


@pytest.mark.parametrize("at_once", [1, 250])
async def test_a_partition_whose_wal_object_cannot_be_read_now_keeps_no_other_from_being_led(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_ACQUIRED_AT_ONCE", at_once)
    async with bench() as shared:
        async with shared.engine("first", durability="object") as first:
            await first.create("away")
            await first.produce(sent(), leader=first.leader("away"))
            away = await wal_keys(shared)
            await first.create("there")
            await first.produce(sent(), leader=first.leader("there"))
        shared.clock.pass_time(2 * TTL_MS)
        shared.objects.fail(Operation.READ, matches=lambda key: key in away, times=None)
        second = shared.unstarted("second", durability="object")
        try:
            second.topics.opened(await shared.metadata.list_topics())
            await second.engine.start([])
            with pytest.raises(Unavailable):
                await second.place()

            await second.produce(sent(), leader=second.leader("there"))
            tried = {placement.topic: placement.partition for placement in await shared.metadata.list_placements()}
            assert list(second.engine.leadership._rests_until_ms) == [tried["away"]]
            shared.objects.heal()
            shared.clock.pass_time(TTL_MS)
            await second.place()
            assert second.leader("away").high_watermark == 1
        finally:
            await second.engine.abort()


async def a_successor(shared: Bench, agent_id: str) -> Running:
    """Which leads nothing yet."""
    running = shared.unstarted(agent_id, durability="object")
    running.topics.opened(await shared.metadata.list_topics())
    await running.engine.start([])
    return running


async def test_who_cannot_read_a_partition_leaves_it_to_who_can() -> None:
    async with bench() as shared:
        async with shared.engine("first", durability="object") as first:
            await first.create()
            await first.produce(sent())
        shared.clock.pass_time(2 * TTL_MS)
        second, third = [await a_successor(shared, name) for name in ("second", "third")]
        try:
            shared.objects.fail(Operation.READ, times=1)
            with pytest.raises(StorageUnavailable):
                await second.place()
            (placement,) = await shared.metadata.list_placements()
            assert (placement.agent_id, placement.lease_left_ms <= 0) == ("second", True)

            await second.place()
            await third.place()

            assert not second.engine.leadership.leaders, "it rests first"
            assert (third.leader().epoch, third.leader().high_watermark) == (3, 1)
        finally:
            await second.engine.abort()
            await third.engine.abort()


async def test_who_has_said_that_it_does_not_reach_the_store_holds_no_leases_of_what_it_waits_to_read() -> None:
    """Of all partitions, though only a few are read at a time."""
    partitions = 40
    async with bench() as shared:
        async with shared.engine("first", durability="object") as first:
            await first.create(partitions=partitions)
            for partition in range(partitions):
                await first.produce(sent(), leader=first.leader(partition=partition))
        shared.clock.pass_time(2 * TTL_MS)
        second = await a_successor(shared, "second")
        try:
            hold = shared.objects.hold(Operation.READ)
            leading = asyncio.create_task(second.place())
            await finishes(hold.reached.wait(), "the reading")
            shared.clock.pass_time(4_000)
            assert second.engine.store_overdue_ms() >= 4_000

            second.engine.heed_store_access(StoreAccess.STALLED)

            with pytest.raises(StorageUnavailable):
                await finishes(leading, "the end of the waiting")
            placements = await shared.metadata.list_placements()
            assert not any(placement.lease_left_ms > 0 for placement in placements)
            shared.objects.heal()
            second.engine.heed_store_access(StoreAccess.RECOVERING)
            shared.clock.pass_time(TTL_MS // 10)
            await second.place()
            assert len(second.engine.held) == partitions
        finally:
            await second.engine.abort()


async def test_a_partition_that_could_not_be_read_for_long_is_led_soon_after_it_can() -> None:
    async with bench() as shared:
        async with shared.engine("first", durability="object") as first:
            await first.create()
            await first.produce(sent())
        shared.clock.pass_time(2 * TTL_MS)
        shared.objects.fail(Operation.READ, times=None)
        second = shared.unstarted("second", durability="object")
        try:
            second.topics.opened(await shared.metadata.list_topics())
            await second.engine.start([])
            for _ in range(12):
                with pytest.raises(Unavailable):
                    await second.place()
                shared.clock.pass_time(TTL_MS // 10)
            shared.objects.heal()
            await second.place()

            assert second.leader().high_watermark == 1
        finally:
            await second.engine.abort()


@pytest.mark.parametrize("is_damaged", [True, False], ids=["damaged", "away"])
async def test_what_was_read_of_a_partition_that_is_not_led_after_all_takes_no_memory(is_damaged: bool) -> None:
    """And a partition that cannot be read is not tried again and again without a pause."""
    async with bench() as shared:
        async with shared.engine("first", durability="object") as first:
            await first.create()
            for _ in range(3):
                await first.produce(sent(1_000))  # an object each
        shared.clock.pass_time(2 * TTL_MS)
        last = sorted(await wal_keys(shared))[-1]
        if is_damaged:
            await shared.inner.delete([last])
        else:
            shared.objects.fail(Operation.READ, matches=lambda key: key == last, times=None)
        second = shared.unstarted("second", durability="object")
        try:
            second.topics.opened(await shared.metadata.list_topics())
            await second.engine.start(second.topics)
            for _ in range(3):
                with suppress(Unavailable):
                    await second.place()
            (placement,) = await shared.metadata.list_placements()
            assert not second.engine.leadership.leaders
            assert second.engine.buffer.used_bytes == 0
            if is_damaged:
                assert placement.epoch == 2, "tried once, and then left to rest"
        finally:
            await second.engine.abort()


async def test_a_lease_is_kept_while_the_records_of_its_partition_are_read() -> None:
    async with bench() as shared, taken_up(shared) as (running, reading, leading):
        for _ in range(4):  # longer than a lease lasts
            shared.clock.pass_time(TTL_MS // 2)
            await running.engine.leadership.renew()
        reading.release()
        await finishes(leading, "the taking up")

        assert (running.leader().epoch, running.leader().high_watermark) == (2, 1)
        await running.produce(sent())


async def test_a_config_that_changes_while_a_partition_is_taken_up_reaches_its_leader() -> None:
    async with bench() as shared, taken_up(shared) as (running, reading, leading):
        await running.topics.configure(running.topics.get("orders"), {"cleanup.policy": "compact"})
        reading.release()
        await finishes(leading, "the taking up")

        assert running.leader().config.cleanup_policy == {"compact"}
        assert running.leader().has_rules


async def test_a_default_that_changes_while_a_partition_is_taken_up_reaches_its_leader() -> None:
    async with bench() as shared, taken_up(shared) as (running, reading, leading):
        running.topics.set_defaults({"streamhouse.durability": "object", "retention.ms": "7200000"})
        reading.release()
        await finishes(leading, "the taking up")

        assert running.leader().config.retention_ms == 7_200_000


async def test_a_durability_that_changes_while_a_partition_is_taken_up_is_the_one_that_it_gets(tmp_path: Path) -> None:
    async with bench(tmp_path / "wal") as shared, taken_up(shared) as (running, reading, leading):
        await running.topics.configure(running.topics.get("orders"), {"streamhouse.durability": "wal"})
        reading.release()
        await finishes(leading, "the taking up")
        first = running.leader()
        await until(lambda: first.removed, "it is led anew")
        await running.place()

        assert running.leader().is_local
        await running.produce(sent())
        assert [offset for offset, _ in await headers(running)] == [0, 1]


async def test_topics_of_both_kinds_are_led_side_by_side(tmp_path: Path) -> None:
    async with bench(tmp_path / "wal") as shared:
        async with shared.engine() as running:
            await running.create("near")
            await running.create("far", streamhouse_durability="object")
            for name in ("near", "far"):
                await running.produce(sent(), sent(), leader=running.leader(name))
        async with shared.engine() as running:
            assert [running.leader(name).next_offset for name in ("near", "far")] == [2, 2]
            assert [running.leader(name).is_local for name in ("near", "far")] == [True, False]
            await finishes(running.engine.stop(), "the stop")
        placements = await shared.metadata.list_placements()
        assert [placement.committed_end for placement in placements] == [2, 2]
        assert [placement.wal_agent_id for placement in placements] == ["", ""]


async def test_a_stop_finishes_what_was_appended() -> None:
    async with bench() as shared, shared.engine(durability="object") as running:
        await running.create()
        ack = running.append(sent())
        leader = running.leader()

        await finishes(running.engine.stop(), "the stop")

        assert ack.is_durable
        assert leader.committed_end == 1


async def test_a_kill_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    async with bench() as shared:
        async with shared.engine(durability="object") as running:
            await running.create()
            await running.produce(sent())
            running.append(sent())
        assert asyncio.all_tasks() == before
