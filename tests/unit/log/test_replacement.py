"""Segments in the place of others: seen to be what they are said to be, swapped once, and never half."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from log_parts.batches import real
from log_parts.compaction import Keep, store_rewritten
from log_parts.engines import Bench, Running, bench, finishes
from log_parts.waiting import until
from services.clock import ManualClock
from streamhouse.format.object_keys import segment_key
from streamhouse.format.records import decode_records
from streamhouse.format.segment import Lineage
from streamhouse.log.committed_log import CommittedLogs
from streamhouse.log.verify import Verification
from streamhouse.metadata.store import SegmentRow
from streamhouse.model.errors import InvalidInput, NotLeader, StaleEpoch, Unavailable
from streamhouse.objects.faulty import Operation

GRACE_MS = 3_600_000
EVERYTHING = 2**31


async def led_log(running: Running, segments: int = 3, records: int = 4, **config: str) -> list[SegmentRow]:
    """Segments of one batch, whose values are their offsets."""
    await running.create(**config)
    for number in range(segments):
        values = [str(offset).encode() for offset in range(number * records, (number + 1) * records)]
        await running.produce(real(*values))
        await running.engine.flush()
    return list(running.leader().segments)


async def offsets_read(running: Running, start: int = 0) -> list[int]:
    """From segments, as far as they go, each checked to be the record that was written there."""
    parts = await running.engine.reader.read(running.leader(), start, EVERYTHING)
    records = decode_records(b"".join(bytes(part) for part in parts), start_offset=start)
    assert all(record.value == str(record.offset).encode() for record in records)
    return [record.offset for record in records]


async def replaced(
    running: Running, old: Sequence[SegmentRow], *new: SegmentRow, commit_id: UUID | None = None
) -> None:
    keys = [row.object_key for row in old]
    await running.engine.replacer.replace(running.leader(), commit_id or uuid4(), keys, new)


async def stored_rows(shared: Bench, running: Running) -> list[SegmentRow]:
    (rows,) = await shared.metadata.load_segments([running.leader().partition])
    return rows


def every(step: int) -> Keep:
    return lambda record: record.offset % step == step - 1


async def test_readers_get_the_new_segments_and_the_old_objects_stay_for_the_grace_period() -> None:
    async with bench() as shared, shared.engine(garbage_grace=GRACE_MS) as running:
        old = await led_log(running)
        new = await store_rewritten(running, old[:2], every(4))

        await replaced(running, old[:2], new)

        leader = running.leader()
        assert [row.object_key for row in leader.segments] == [new.object_key, old[2].object_key]
        assert [row.object_key for row in await stored_rows(shared, running)] == [new.object_key, old[2].object_key]
        assert (leader.log_start_offset, leader.committed_end, leader.high_watermark) == (0, 12, 12)
        for start in range(12):
            expected = [offset for offset in (3, 7, 8, 9, 10, 11) if offset >= start]
            assert await offsets_read(running, start) == expected
        assert old[0].object_key in await shared.keys()
        shared.clock.jump(GRACE_MS + 1)
        await running.engine.maintenance.remove_garbage()
        assert sorted(await shared.keys()) == sorted([new.object_key, old[2].object_key])


async def test_what_the_tail_still_has_of_replaced_segments_is_not_served() -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        await running.produce(real(b"12", b"13"))
        tail = running.leader().tail
        assert (tail.start_offset, tail.end_offset) == (0, 14)
        new = await store_rewritten(running, old[:2], every(4))

        await replaced(running, old[:2], new)

        assert (tail.start_offset, tail.end_offset) == (8, 14)
        assert [record.offset for record in decode_records(await running.read())] == [3, 7, *range(8, 14)]
        await running.produce(real(b"14"))
        assert [record.offset for record in decode_records(await running.read())] == [3, 7, *range(8, 15)]


async def test_other_agents_read_the_new_segments_within_a_second_and_who_plans_at_once() -> None:
    """What they know of a partition is looked at again; objects that were replaced stay for those who have begun."""
    async with bench() as shared, shared.engine(garbage_grace=GRACE_MS) as running:
        old = await led_log(running)
        partition, clock = running.leader().partition, ManualClock()
        logs, planning = (CommittedLogs(shared.metadata, clock, GRACE_MS // 2) for _ in range(2))
        before = await logs.at(partition, 0)
        assert await planning.now(partition, 0) is not None
        new = await store_rewritten(running, old, every(4))
        await replaced(running, old, new)

        planned = await planning.now(partition, 0)
        assert [row.object_key for row in planned.segments] == [new.object_key]
        clock.advance(999)
        assert await logs.at(partition, 0) is before
        parts = await running.engine.reader.read(before, 0, EVERYTHING)
        assert [record.offset for record in decode_records(b"".join(map(bytes, parts)))] == list(range(12))
        clock.advance(1)
        after = await logs.at(partition, 0)

        assert [row.object_key for row in after.segments] == [new.object_key]
        clock.advance(1_000)
        shared.metadata.calls.clear()
        assert await logs.at(partition, 0) is after
        assert shared.metadata.calls == ["load_partitions"]


@pytest.mark.parametrize("deep", [False, True])
async def test_gaps_are_no_violation_and_what_is_not_where_its_row_says_is(deep: bool) -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        new = await store_rewritten(running, old[:2], every(4))
        await replaced(running, old[:2], new)

        async def findings() -> list[str]:
            verification = Verification(
                metadata=shared.metadata, objects=shared.inner, oldest_upload_ms=shared.clock.now_ms(), deep=deep
            )
            report = await verification.run(await shared.metadata.list_placements())
            return [finding.message for finding in report.findings]

        assert await findings() == []
        # As if the object held offsets that its row does not stand for.
        await shared.metadata._database.write(
            lambda connection: connection.execute("UPDATE segments SET base_offset = 4 WHERE base_offset = 0")
        )
        messages = await findings()
        assert any("gap: no segment holds 0 to 3" in message for message in messages)
        assert any("holds offsets 3 to 7" in message for message in messages) == deep


async def test_a_repeat_is_done_once_and_the_next_leader_knows_of_it() -> None:
    async with bench() as shared:
        commit_id = uuid4()
        async with shared.engine(garbage_grace=GRACE_MS) as running:
            old = await led_log(running)
            new = await store_rewritten(running, old, every(2))
            for _ in range(2):
                await replaced(running, old, new, commit_id=commit_id)
        shared.clock.jump(GRACE_MS)
        async with shared.engine(garbage_grace=GRACE_MS) as running:
            await replaced(running, old, new, commit_id=commit_id)

            assert [row.object_key for row in running.leader().segments] == [new.object_key]
            assert await offsets_read(running) == [1, 3, 5, 7, 9, 11]


async def test_a_lost_answer_is_asked_for_again_until_the_outcome_is_known() -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        new = await store_rewritten(running, old, every(2))
        shared.metadata.fail("replace_segments", lost_answer=True)
        shared.metadata.fail("replace_segments", times=2)

        await finishes(replaced(running, old, new), "the replacement")

        assert [row.object_key for row in running.leader().segments] == [new.object_key]
        assert shared.metadata.calls.count("replace_segments") == 4


async def test_it_is_finished_also_when_the_caller_has_gone() -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        new = await store_rewritten(running, old, every(2))
        shared.metadata.fail("replace_segments", lost_answer=True)
        caller = asyncio.ensure_future(replaced(running, old, new))
        await until(lambda: "replace_segments" in shared.metadata.calls, "the store is asked")
        caller.cancel()

        await until(lambda: len(running.leader().segments) == 1, "readers have the new segment")

        assert await offsets_read(running) == [1, 3, 5, 7, 9, 11]


async def test_only_one_replacement_of_a_partition_is_under_way() -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        first = await store_rewritten(running, old[:2])
        second = await store_rewritten(running, old[2:])
        shared.metadata.fail("replace_segments", times=2)
        under_way = asyncio.ensure_future(replaced(running, old[:2], first))
        await until(lambda: "replace_segments" in shared.metadata.calls, "the store is asked")
        with pytest.raises(Unavailable, match="being replaced"):
            await replaced(running, old[2:], second)
        await finishes(under_way, "the first replacement")

        await replaced(running, old[2:], second)

        assert [row.object_key for row in running.leader().segments] == [first.object_key, second.object_key]
        assert running.engine.replacer.keys_under_way == set()


async def test_segments_come_and_go_while_others_are_replaced() -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running, 4)
        new = await store_rewritten(running, old[1:3], every(4))
        shared.metadata.fail("replace_segments", times=2)
        under_way = asyncio.ensure_future(replaced(running, old[1:3], new))
        await until(lambda: "replace_segments" in shared.metadata.calls, "the store is asked")

        await running.produce(real(*(str(offset).encode() for offset in range(16, 20))))
        await running.engine.flush()
        await running.engine.maintenance.move_log_start(running.leader(), 4)
        await finishes(under_way, "the replacement")

        leader = running.leader()
        assert [(row.base_offset, row.end_offset) for row in leader.segments] == [(4, 12), (12, 16), (16, 20)]
        assert [row.object_key for row in leader.segments] == [
            row.object_key for row in await stored_rows(shared, running)
        ]
        assert await offsets_read(running, 4) == [7, 11, *range(12, 20)]


@pytest.mark.parametrize("is_merged", [True, False])
@pytest.mark.parametrize("log_start", [1, 4, 5, 8, 11])
async def test_a_log_start_that_is_heard_of_before_the_replacement_gives_the_same(
    log_start: int, is_merged: bool
) -> None:
    """The store did the replacement first, but its answer came last."""
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        parts = [old[:2]] if is_merged else [old[:1], old[1:2]]
        new = [await store_rewritten(running, part, every(4)) for part in parts]
        shared.metadata.fail("replace_segments", lost_answer=True)
        under_way = asyncio.ensure_future(replaced(running, old[:2], *new))
        await until(lambda: "replace_segments" in shared.metadata.calls, "the store is asked")

        await running.engine.maintenance.move_log_start(running.leader(), log_start)
        await finishes(under_way, "the replacement")

        leader = running.leader()
        assert [row.object_key for row in leader.segments] == [
            row.object_key for row in await stored_rows(shared, running)
        ]
        assert await offsets_read(running, log_start) == [
            offset for offset in (3, 7, 8, 9, 10, 11) if offset >= log_start
        ]


async def test_what_retention_dropped_before_is_not_replaced() -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        new = await store_rewritten(running, old[:2], every(4))
        await running.engine.maintenance.move_log_start(running.leader(), 4)

        with pytest.raises(StaleEpoch, match="no longer there"):
            await replaced(running, old[:2], new)

        assert [row.object_key for row in running.leader().segments] == [row.object_key for row in old[1:]]
        assert await offsets_read(running, 4) == list(range(4, 12))


async def test_a_leader_that_was_deposed_replaces_nothing() -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        new = await store_rewritten(running, old)
        leader = running.leader()
        shared.metadata.fail("replace_segments", times=1_000)
        under_way = asyncio.ensure_future(replaced(running, old, new))
        await until(lambda: "replace_segments" in shared.metadata.calls, "the store is asked")
        running.engine.leadership.depose(leader, NotLeader("another leads"))

        with pytest.raises(NotLeader):
            await finishes(under_way, "the replacement")

        shared.metadata.heal()
        (rows,) = await shared.metadata.load_segments([leader.partition])
        assert [row.object_key for row in rows] == [row.object_key for row in old]


async def test_an_object_that_is_not_what_its_row_says_is_refused() -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        good = await store_rewritten(running, old, every(4))
        partition = running.leader().partition
        elsewhere = segment_key(uuid4(), partition.partition, 0, good.epoch, uuid4())
        missing = segment_key(partition.topic_id, partition.partition, 0, good.epoch, uuid4())
        for wrong, match in (
            (replace(good, object_key=missing), "is not there"),
            (replace(good, object_key=elsewhere), "is not the key"),
            (replace(good, object_key="segments/x"), "is not the key"),
            (replace(good, epoch=good.epoch + 1), "is not the key"),
            (replace(good, base_offset=1), "is not the key"),
            (replace(good, end_offset=11), r"holds offsets \[3, 12\)"),
            (replace(good, end_offset=13), r"holds offsets \[3, 12\)"),
            (replace(good, record_count=4), "has 3 records and not 4"),
            (replace(good, size_bytes=1), "bytes and not 1"),
            (replace(good, min_timestamp_ms=0), "smallest timestamp and not 0"),
            (replace(good, max_timestamp_ms=9), "largest timestamp and not 9"),
        ):
            with pytest.raises(InvalidInput, match=match):
                await replaced(running, old, wrong)
        content = bytearray(await shared.inner.get(good.object_key))
        content[-30] ^= 1
        await shared.inner.create(missing, [content])
        with pytest.raises(InvalidInput, match="is not a segment"):
            await replaced(running, old, replace(good, object_key=missing))

        assert list(running.leader().segments) == old
        assert "replace_segments" not in shared.metadata.calls


async def test_the_last_record_must_be_kept() -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        headless = await store_rewritten(running, old, lambda record: record.offset < 9)

        with pytest.raises(InvalidInput, match=r"do not fill \[0, 12\) to its end"):
            await replaced(running, old, replace(headless, end_offset=12))


async def test_an_object_that_may_be_taken_for_an_orphan_is_not_registered() -> None:
    async with bench() as shared, shared.engine(garbage_grace=GRACE_MS) as running:
        old = await led_log(running)
        new = await store_rewritten(running, old)
        shared.clock.jump(GRACE_MS // 2 + 1)
        await running.engine.leadership.renew()

        with pytest.raises(StaleEpoch, match="too long ago"):
            await replaced(running, old, new)


async def test_an_object_that_waits_for_the_database_is_no_orphan() -> None:
    async with bench() as shared, shared.engine(garbage_grace=GRACE_MS) as running:
        old = await led_log(running)
        new = await store_rewritten(running, old, every(2))
        shared.metadata.fail("replace_segments", times=4)
        under_way = asyncio.ensure_future(replaced(running, old, new))
        await until(lambda: "replace_segments" in shared.metadata.calls, "the store is asked")
        await running.engine.maintenance.remove_orphans()
        shared.clock.pass_time(GRACE_MS + 1)
        await running.engine.leadership.renew()
        await running.engine.maintenance.remove_orphans()
        with pytest.raises(StaleEpoch):  # the lease ran out meanwhile
            await finishes(under_way, "the replacement")
        assert new.object_key in await shared.keys()

        await running.engine.maintenance.remove_orphans()
        shared.clock.pass_time(GRACE_MS + 1)
        await running.engine.maintenance.remove_orphans()

        assert sorted(await shared.keys()) == sorted(row.object_key for row in old)


async def test_a_store_that_is_away_leaves_everything_as_it_was() -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        new = await store_rewritten(running, old)
        shared.objects.fail(Operation.HEAD)
        with pytest.raises(Unavailable):
            await replaced(running, old, new)
        assert list(running.leader().segments) == old

        await replaced(running, old, new)

        assert [row.object_key for row in running.leader().segments] == [new.object_key]


async def test_a_read_across_a_swap_gives_every_record_once() -> None:
    """The merged batch begins with what was read from the old segments before."""
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        new = await store_rewritten(running, old)
        held = shared.objects.hold(Operation.READ, matches=lambda key: key == old[0].object_key)
        reading = asyncio.ensure_future(running.engine.reader.read(running.leader(), 0, EVERYTHING))
        await held.reached.wait()
        await replaced(running, old, new)
        held.release()
        parts = await finishes(reading, "the read")

        records = decode_records(b"".join(bytes(part) for part in parts))
        assert [record.offset for record in records] == [0, 1, 2, 3]
        assert await offsets_read(running, 4) == list(range(4, 12))


def lineage(rows: Sequence[SegmentRow], generation: int) -> Lineage:
    return Lineage(generation, rows[0].base_offset, rows[-1].end_offset, 0)


async def test_only_what_the_newest_plan_made_takes_the_place_of_others() -> None:
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        first, second = [await shared.metadata.begin_generation(running.leader().partition) for _ in range(2)]
        for stale in (None, lineage(old, first)):
            overtaken = await store_rewritten(running, old, every(2), lineage=stale)
            with pytest.raises(StaleEpoch, match="another plan has begun generation 2"):
                await replaced(running, old, overtaken)
        assert [row.object_key for row in await stored_rows(shared, running)] == [row.object_key for row in old]

        new = await store_rewritten(running, old, every(4), lineage=lineage(old, second))
        await replaced(running, old, new)

        assert await offsets_read(running) == [3, 7, 11]


async def test_segments_that_do_not_belong_together_are_refused() -> None:
    """Else a bucket alone could not tell which of them are the log."""
    async with bench() as shared, shared.engine() as running:
        old = await led_log(running)
        generation = await shared.metadata.begin_generation(running.leader().partition)
        of_all = lineage(old, generation)
        parts = [await store_rewritten(running, [row], lineage=of_all) for row in old]

        with pytest.raises(InvalidInput, match=r"under one name, and cover \[0, 12\) under 3"):
            await replaced(running, old, *parts)
        with pytest.raises(InvalidInput, match=r"were to cover \[0, 12\) together"):
            await replaced(running, old[:1], parts[0])
        other = await store_rewritten(running, old[1:], lineage=lineage(old[1:], generation))
        with pytest.raises(InvalidInput, match="come from different plans"):
            await replaced(running, old, parts[0], other)
        assert [row.object_key for row in await stored_rows(shared, running)] == [row.object_key for row in old]
