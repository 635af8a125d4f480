"""Uploads: one copy whatever goes wrong, in order, never given up, never dropped."""

from __future__ import annotations

import asyncio

import pytest

from log_parts.batches import sent
from log_parts.engines import Bench, bench, finishes
from log_parts.waiting import HUNG_SECONDS, until
from streamhouse.core.segment_roll import CATCH_UP_FACTOR
from streamhouse.format.batch import iter_headers
from streamhouse.format.object_keys import parse_segment_key
from streamhouse.format.segment import decode_segment
from streamhouse.model.errors import CorruptData, NotLeader
from streamhouse.model.names import TopicPartition
from streamhouse.objects.faulty import Moment, Operation

PRODUCER = 3


async def stored_offsets(shared: Bench) -> list[int]:
    """The base offsets of all batches in registered segments, in order; each object must be what its row says."""
    (topic,) = await shared.metadata.list_topics()
    partition = TopicPartition(topic.topic_id, 0)
    found: list[int] = []
    expected = None
    (rows,) = await shared.metadata.load_segments([partition])
    for row in rows:
        content = await shared.inner.get(row.object_key)
        footer, blocks = decode_segment(content)
        assert (footer.base_offset, footer.end_offset, footer.epoch, len(content)) == (
            row.base_offset,
            row.end_offset,
            row.epoch,
            row.size_bytes,
        )
        named = parse_segment_key(row.object_key)
        assert named is not None
        assert named.epoch == row.epoch
        assert expected in (None, row.base_offset), "segments follow one another"
        expected = row.end_offset
        found += [header.base_offset for block in blocks for _, header in iter_headers(block)]
    return found


async def test_a_flush_puts_everything_durable_into_one_registered_object() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(*[sent(200) for _ in range(5)])

        await running.engine.flush()

        assert await stored_offsets(shared) == [0, 1, 2, 3, 4]
        assert len(await shared.keys()) == 1
        assert running.leader().buffered_bytes == 0


async def test_a_flush_of_nothing_does_nothing() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()

        await running.engine.flush()
        await running.produce(sent())
        await running.engine.flush()
        await running.engine.flush()

        assert len(await shared.keys()) == 1


@pytest.mark.parametrize("moment", list(Moment))
async def test_an_upload_that_fails_is_tried_again_and_leaves_one_copy(moment: Moment) -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent(), sent())
        shared.objects.fail(Operation.CREATE, times=2, moment=moment)

        await finishes(running.engine.flush(), "the flush")

        assert await stored_offsets(shared) == [0, 1]
        assert len(await shared.keys()) == 1


async def test_a_lost_answer_is_recognised_although_the_object_cannot_be_read_at_once() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent())
        shared.objects.fail(Operation.CREATE, times=1, moment=Moment.AFTER)
        shared.objects.fail(Operation.READ, times=2)

        await finishes(running.engine.flush(), "the flush")

        assert await stored_offsets(shared) == [0]
        assert len(await shared.keys()) == 1


@pytest.mark.parametrize("lost_answer", [False, True])
async def test_a_commit_that_fails_is_tried_again_and_registers_one_segment(lost_answer: bool) -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent(), sent())
        shared.metadata.fail("commit_segments", times=2, lost_answer=lost_answer)

        await finishes(running.engine.flush(), "the flush")

        assert await stored_offsets(shared) == [0, 1]


async def test_appends_go_on_while_the_store_is_away_and_become_fewer_larger_segments() -> None:
    async with bench() as shared, shared.engine(segment_bytes=1024) as running:
        await running.create()
        shared.objects.fail(Operation.CREATE, times=None)
        for _ in range(40):
            await running.produce(sent(1024))
        shared.objects.heal()

        await finishes(running.engine.flush(), "the flush")

        assert await stored_offsets(shared) == list(range(40))
        sizes = [len(await shared.inner.get(key)) for key in await shared.keys()]
        assert len(sizes) <= 5
        rows = running.leader().segments
        assert max(row.end_offset - row.base_offset for row in rows) <= CATCH_UP_FACTOR


async def test_a_batch_larger_than_the_largest_segment_is_one_by_itself() -> None:
    async with bench() as shared, shared.engine(segment_bytes=1024) as running:
        await running.create()
        await running.produce(sent(100), sent(1024 * CATCH_UP_FACTOR + 1), sent(100))

        await finishes(running.engine.flush(), "the flush")

        assert await stored_offsets(shared) == [0, 1, 2]


async def test_partitions_are_uploaded_beside_one_another() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(partitions=3)
        for partition in range(3):
            await running.produce(sent(), leader=running.leader(partition=partition))
        hold = shared.objects.hold(Operation.CREATE, times=1)
        flushing = asyncio.ensure_future(running.engine.flush())
        await hold.reached.wait()

        await until(
            lambda: sum(running.leader(partition=p).committed_end for p in range(3)) == 2, "the others are done"
        )

        hold.release()
        await finishes(flushing, "the flush")


async def test_only_one_upload_of_a_partition_runs_at_a_time() -> None:
    async with bench() as shared, shared.engine(segment_bytes=1024) as running:
        await running.create()
        hold = shared.objects.hold(Operation.CREATE)
        for _ in range(20):
            await running.produce(sent(1024))
            running.engine.uploader.due(running.leader())
        await hold.reached.wait()

        assert shared.objects.calls[Operation.CREATE] == 1
        hold.release()
        await finishes(running.engine.flush(), "the flush")
        assert await stored_offsets(shared) == list(range(20))


async def test_a_lease_lost_during_an_upload_and_taken_again_registers_it_once() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent(), sent())
        hold = shared.objects.hold(Operation.CREATE)
        flushing = asyncio.ensure_future(running.engine.flush())
        await hold.reached.wait()
        shared.clock.pass_time(60_000)
        await running.engine.leadership.renew()
        hold.release()

        await finishes(flushing, "the flush")

        assert await stored_offsets(shared) == [0, 1]
        assert running.leader().epoch == 2
        await running.produce(sent())


async def test_a_deposed_leaders_upload_changes_nothing() -> None:
    async with bench() as shared, shared.engine("old") as old:
        await old.create()
        await old.produce(sent(), sent())
        leader = old.leader()
        hold = shared.objects.hold(Operation.CREATE, times=1)
        flushing = asyncio.ensure_future(old.engine.flush())
        await hold.reached.wait()
        shared.clock.pass_time(60_000)
        async with shared.engine("new") as new:
            await new.produce(sent())
            await new.engine.flush()
            hold.release()
            await old.engine.leadership.renew()
            await finishes(flushing, "the old flush")

            assert leader.removed
            assert await stored_offsets(shared) == [0]
            with pytest.raises(NotLeader):
                old.append(sent(), leader)


async def test_the_stored_producer_state_knows_nothing_of_what_comes_after_its_segment() -> None:
    async with bench() as shared:
        async with shared.engine(segment_bytes=1024) as running:
            await running.create()
            await running.produce(sent(10_000, producer=(PRODUCER, 0, 0)), sent(10_000, producer=(PRODUCER, 0, 1)))
            stuck = shared.objects.hold(Operation.CREATE, matches=lambda key: f"{1:020d}-" in key)
            flushing = asyncio.ensure_future(running.engine.flush())
            await stuck.reached.wait()
            assert running.leader().committed_end == 1
        flushing.cancel()
        shared.objects.heal()

        # The second batch is gone with the memory of the first process, so its producer sends it again.
        async with shared.engine() as running:
            assert running.leader().next_offset == 1
            await running.produce(sent(10_000, producer=(PRODUCER, 0, 1)))
            await running.produce(sent(10_000, producer=(PRODUCER, 0, 0)))
            assert running.leader().next_offset == 2


async def test_a_leader_that_is_removed_lets_its_flush_go() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create()
        await running.produce(sent())
        shared.objects.fail(Operation.CREATE, times=None)
        flushing = asyncio.ensure_future(running.engine.flush())
        await until(lambda: shared.objects.calls[Operation.CREATE], "an upload was tried")

        await running.topics.delete(topic)

        await finishes(flushing, "the flush")
        assert await shared.keys() == []


async def test_a_damaged_database_fails_a_flush_instead_of_leaving_it_waiting() -> None:
    async with bench() as shared, shared.engine(shutdown_timeout=3_000) as running:
        await running.create()
        await running.produce(sent())
        shared.metadata.fail("commit_segments", error=CorruptData("the database is damaged"))

        flushing = asyncio.ensure_future(running.engine.flush())
        await asyncio.wait([flushing], timeout=HUNG_SECONDS)

        # It may be tried again and succeed, or fail; it must not wait for an answer that was given.
        assert flushing.done()


async def test_an_upload_is_counted_as_under_way_until_it_is_registered() -> None:
    """So that it is not taken for an orphan meanwhile."""
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent())
        shared.metadata.fail("commit_segments", times=3)
        flushing = asyncio.ensure_future(running.engine.flush())
        await until(lambda: shared.inner._objects, "the object is there")

        assert set(await shared.keys()) <= running.engine.uploader.keys_under_way
        await finishes(flushing, "the flush")
        assert running.engine.uploader.keys_under_way == set()
