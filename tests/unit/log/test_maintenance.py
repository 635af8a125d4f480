"""The chores: uploads by age, retention, garbage only after its grace, orphans only when nobody wants them."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from log_parts.batches import sent
from log_parts.engines import Bench, Running, bench, finishes
from log_parts.waiting import until
from streamhouse.format.object_keys import segment_key
from streamhouse.log.maintenance import age_check_interval_ms
from streamhouse.model.errors import StaleEpoch, StorageUnavailable
from streamhouse.model.settings import Settings
from streamhouse.objects.faulty import Moment, Operation

GRACE_MS = 3_600_000
HOUR_MS = 3_600_000


async def segments(running: Running, count: int, **options: Any) -> None:
    """So many segments of one batch each."""
    for _ in range(count):
        await running.produce(sent(500, **options))
        await running.engine.flush()


async def test_records_of_a_quiet_partition_are_uploaded_when_they_are_old_enough() -> None:
    async with bench() as shared, shared.engine(segment_age=50) as running:
        await running.create()
        await running.produce(sent())

        await until(lambda: running.leader().committed_end == 1, "the record is uploaded")

        assert len(await shared.keys()) == 1


async def test_retention_by_time_drops_old_segments_and_keeps_young_ones() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(retention_ms=str(HOUR_MS))
        now_ms = shared.clock.now_ms()
        await segments(running, 3, timestamp_ms=now_ms - 2 * HOUR_MS)
        await segments(running, 2, timestamp_ms=now_ms)

        await running.engine.maintenance.apply_retention(running.leader())

        leader = running.leader()
        assert leader.log_start_offset == 3
        assert [row.base_offset for row in leader.segments] == [3, 4]
        (rows,) = await shared.metadata.load_segments([leader.partition])
        assert [row.base_offset for row in rows] == [3, 4]


async def test_retention_by_size_keeps_at_least_as_much_as_it_says() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(retention_ms="-1")
        await segments(running, 5)
        sizes = [row.size_bytes for row in running.leader().segments]
        topic = running.topics.get("orders")
        await running.topics.configure(topic, {"retention.ms": "-1", "retention.bytes": str(sum(sizes[2:]))})

        await running.engine.maintenance.apply_retention(running.leader())

        assert running.leader().log_start_offset == 2


async def test_a_topic_that_is_only_compacted_is_not_deleted_from() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(retention_ms="0", cleanup_policy="compact")
        await segments(running, 2)

        await running.engine.maintenance.apply_retention(running.leader())

        assert running.leader().log_start_offset == 0


async def test_a_topic_that_is_compacted_and_deleted_from_is_shortened() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(cleanup_policy="compact,delete", retention_ms=str(HOUR_MS))
        await segments(running, 2, timestamp_ms=shared.clock.now_ms() - 2 * HOUR_MS)

        await running.engine.maintenance.apply_retention(running.leader())

        assert running.leader().log_start_offset == 2


async def test_retention_leaves_what_a_reader_has_pinned_until_the_pin_ends() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(retention_ms=str(HOUR_MS))
        await segments(running, 5, timestamp_ms=shared.clock.now_ms() - 2 * HOUR_MS)
        leader, maintenance = running.leader(), running.engine.maintenance
        await shared.metadata.set_pins("reader", 10_000, {leader.partition: 3})
        await shared.metadata.set_pins("faster reader", 60_000, {leader.partition: 4})

        await maintenance.apply_retention(leader)
        assert leader.log_start_offset == 3
        await maintenance.apply_retention(leader)
        assert leader.log_start_offset == 3
        shared.clock.jump(10_001)
        await maintenance.apply_retention(leader)
        assert leader.log_start_offset == 4
        await shared.metadata.set_pins("faster reader", 0, {})
        await maintenance.apply_retention(leader)
        assert leader.log_start_offset == 5


async def test_pins_are_only_asked_for_where_retention_would_drop_something() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(retention_ms=str(HOUR_MS))
        await segments(running, 2, timestamp_ms=shared.clock.now_ms())

        await running.engine.maintenance.apply_retention(running.leader())

        assert "load_pins" not in shared.metadata.calls


async def test_a_pin_does_not_keep_an_operator_from_deleting() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await segments(running, 3)
        await shared.metadata.set_pins("reader", 10_000, {running.leader().partition: 0})

        await running.engine.maintenance.move_log_start(running.leader(), 3)

        assert running.leader().log_start_offset == 3


async def test_records_that_are_not_uploaded_yet_are_never_dropped() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(retention_ms="0", retention_bytes="0")
        await segments(running, 1)
        await running.produce(sent())

        await running.engine.maintenance.apply_retention(running.leader())

        assert running.leader().log_start_offset == 1
        assert running.leader().high_watermark == 2
        assert await running.read()


async def test_retention_without_the_lease_changes_nothing() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(retention_ms="0")
        await segments(running, 2)
        shared.clock.pass_time(60_000)

        with pytest.raises(StaleEpoch):
            await running.engine.maintenance.apply_retention(running.leader())

        assert running.leader().log_start_offset == 0
        assert len(await shared.keys()) == 2


async def test_dropped_objects_stay_for_the_grace_period_and_then_go() -> None:
    async with bench() as shared, shared.engine(garbage_grace=GRACE_MS) as running:
        await running.create(retention_ms="0", retention_bytes="0")
        await segments(running, 2)
        maintenance = running.engine.maintenance
        await maintenance.apply_retention(running.leader())

        await maintenance.remove_garbage()
        shared.clock.jump(GRACE_MS - 1_000)
        await maintenance.remove_garbage()
        assert len(await shared.keys()) == 2
        shared.clock.jump(2_000)
        await maintenance.remove_garbage()

        assert await shared.keys() == []
        assert await shared.metadata.list_garbage(0, 10) == []


@pytest.mark.parametrize("moment", list(Moment))
async def test_garbage_whose_removal_failed_is_removed_next_time(moment: Moment) -> None:
    async with bench() as shared, shared.engine(garbage_grace=GRACE_MS) as running:
        topic = await running.create()
        await segments(running, 3)
        await running.topics.delete(topic)
        shared.clock.jump(GRACE_MS + 1_000)
        shared.objects.fail(Operation.DELETE, moment=moment)

        with pytest.raises(StorageUnavailable):
            await running.engine.maintenance.remove_garbage()
        await running.engine.maintenance.remove_garbage()

        assert await shared.keys() == []


async def test_much_garbage_is_removed_in_several_steps() -> None:
    async with bench() as shared, shared.engine(garbage_grace=GRACE_MS) as running:
        topic = await running.create()
        await segments(running, 1)
        template = running.leader().segments[0].object_key
        keys = [f"{template}-{number}" for number in range(1_200)]
        for key in keys:
            await shared.inner.create(key, [b"x"])
        await running.topics.delete(topic)
        await shared.metadata._database.write(
            lambda connection: connection.executemany("INSERT INTO garbage VALUES (?, 0)", ((key,) for key in keys))
        )
        shared.clock.jump(GRACE_MS + 1_000)

        await running.engine.maintenance.remove_garbage()

        assert await shared.keys() == []


def orphan_key(topic_id: UUID, *, epoch: int = 1) -> str:
    return segment_key(topic_id, 0, 0, epoch, uuid4())


async def search_twice(shared: Bench, running: Running, apart_ms: int) -> None:
    """So that what was an orphan all the time is removed, if that is the grace period."""
    await running.engine.maintenance.remove_orphans()
    shared.clock.pass_time(apart_ms)
    await running.engine.maintenance.remove_orphans()


async def test_an_object_that_was_never_registered_goes_when_that_has_been_known_for_the_grace_period() -> None:
    async with bench() as shared, shared.engine(garbage_grace=GRACE_MS) as running:
        topic = await running.create()
        await segments(running, 1)
        registered = await shared.keys()
        await shared.inner.create(orphan_key(topic.topic_id), [b"never registered"])

        await search_twice(shared, running, GRACE_MS - 60_000)
        assert len(await shared.keys()) == 2
        shared.clock.pass_time(60_000)
        await running.engine.maintenance.remove_orphans()

        assert await shared.keys() == registered


async def test_a_clock_that_jumps_makes_no_orphan_of_what_waits_to_be_registered() -> None:
    async with bench() as shared, shared.engine(garbage_grace=GRACE_MS) as running:
        topic = await running.create()
        await shared.inner.create(orphan_key(topic.topic_id), [b"as a job writes it"])

        await running.engine.maintenance.remove_orphans()
        shared.clock.jump(10 * GRACE_MS)
        await running.engine.maintenance.remove_orphans()

        assert len(await shared.keys()) == 1


async def test_what_is_not_ours_to_judge_is_left_alone() -> None:
    async with bench() as shared, shared.engine(garbage_grace=GRACE_MS) as running:
        topic = await running.create()
        of_a_later_leader = orphan_key(topic.topic_id, epoch=1_000)
        others = [orphan_key(uuid4()), of_a_later_leader, "segments/notes.txt", "elsewhere/x"]
        for key in others:
            await shared.inner.create(key, [b"somebody else's"])

        await search_twice(shared, running, 10 * GRACE_MS)

        assert sorted(await shared.keys()) == sorted(others)


async def test_garbage_is_left_to_its_own_grace_period() -> None:
    # The clean-up itself does not wake meanwhile: it would remove the garbage as such, whose grace period is over.
    paces = {"garbage_interval": 10 * GRACE_MS, "garbage_grace": GRACE_MS}
    async with bench() as shared, shared.engine(**paces) as running:
        await running.create(retention_ms="0", retention_bytes="0")
        await segments(running, 1)
        await running.engine.maintenance.apply_retention(running.leader())

        await search_twice(shared, running, 2 * GRACE_MS)

        assert len(await shared.keys()) == 1


async def test_an_upload_that_waits_for_the_database_for_longer_than_the_grace_period_is_no_orphan() -> None:
    async with bench() as shared, shared.engine(garbage_grace=1_000) as running:
        await running.create()
        await running.produce(sent())
        shared.metadata.fail("commit_segments", times=4)
        flushing = asyncio.ensure_future(running.engine.flush())
        await until(lambda: shared.inner._objects, "the object is there")
        await search_twice(shared, running, 5_000)
        await finishes(flushing, "the flush")

        ((row,),) = await shared.metadata.load_segments([running.leader().partition])
        assert row.object_key in await shared.keys()


async def test_the_log_start_can_be_moved_into_a_segment_which_then_stays() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent(), sent(), sent())
        await running.engine.flush()
        leader = running.leader()

        await running.engine.maintenance.move_log_start(leader, 2)

        assert leader.log_start_offset == 2
        assert len(leader.segments) == 1
        (row,) = await shared.metadata.load_partitions([leader.partition])
        assert row.log_start_offset == 2


async def test_the_clean_up_goes_on_after_a_chore_that_failed() -> None:
    paces = {"retention_interval": 20, "garbage_interval": 20, "garbage_grace": GRACE_MS}
    async with bench() as shared, shared.engine(**paces) as running:
        await running.create(retention_ms="0", retention_bytes="0")
        shared.metadata.fail("advance_log_start")
        shared.metadata.fail("list_garbage", times=2)
        await segments(running, 1)

        await until(lambda: running.leader().log_start_offset == 1, "retention was applied after all")
        shared.clock.jump(GRACE_MS + 1_000)
        await until(lambda: not shared.inner._objects, "the object is gone")


async def test_garbage_is_removed_at_a_pace_of_its_own() -> None:
    """History that is mirrored is older than its retention when it comes: it stays until retention is looked at."""
    async with bench() as shared, shared.engine(garbage_interval=20, garbage_grace=GRACE_MS) as running:
        await running.create(retention_ms="0")
        await segments(running, 2)
        await running.engine.maintenance.move_log_start(running.leader(), 1)
        shared.clock.jump(GRACE_MS + 1_000)

        await until(lambda: len(shared.inner._objects) == 1, "the object is gone")

        assert running.leader().log_start_offset == 1


def test_retention_is_looked_at_as_often_as_in_kafka() -> None:
    assert Settings().retention_interval == 5 * 60_000


@pytest.mark.parametrize(("age_ms", "expected"), [(1, 20), (50, 20), (500, 50), (60_000, 100), (10**12, 100)])
def test_ages_are_checked_often_enough_and_not_too_often(age_ms: int, expected: int) -> None:
    assert age_check_interval_ms(age_ms) == expected
