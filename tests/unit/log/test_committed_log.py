"""What any agent can serve of a partition that another leads: its segments, as far as they go."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from log_parts.batches import sent
from log_parts.engines import Running, bench
from streamhouse.broker.fetch import Fetcher, PartitionRead
from streamhouse.format.batch import iter_headers
from streamhouse.log import committed_log
from streamhouse.model.errors import MetadataUnavailable, NotFound, OffsetOutOfRange
from streamhouse.model.names import TopicPartition

HOUR_MS = 3_600_000


async def fill(running: Running, *sizes: int) -> None:
    """A segment for each number of records."""
    for count in sizes:
        await running.produce(*[sent() for _ in range(count)])
        await running.engine.flush()


async def read(running: Running, offset: int) -> PartitionRead:
    """As a node does that does not lead."""
    log = await running.engine.committed_logs.at(running.leader().partition, offset)
    asked = PartitionRead(log, offset, 2**30)
    await Fetcher(running.engine.reader).read([asked], 2**30)
    return asked


async def test_segments_are_there_and_what_is_only_in_the_wal_is_not() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await fill(running, 2, 3)
        await running.produce(sent())

        log = await running.engine.committed_logs.at(running.leader().partition, 0)

        assert (log.topic, log.epoch, log.removed) == ("orders", 1, False)
        assert (log.log_start_offset, log.committed_end, log.high_watermark) == (0, 5, 5)
        assert log.tail.start_offset == log.tail.end_offset == 5
        assert [log.segment_at(offset).base_offset for offset in range(5)] == [0, 0, 2, 2, 2]


async def test_what_it_serves_is_what_the_leader_stored() -> None:
    async with bench() as shared, shared.engine(tail_bytes=0) as running:
        await running.create()
        await fill(running, 3, 3)

        found = await read(running, 2)

        assert found.problem is None
        assert [header.base_offset for _, header in iter_headers(b"".join(found.parts))] == [2, 3, 4, 5]


async def test_a_partition_that_nobody_ever_wrote_to_is_empty() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await shared.metadata.create_topic("orders", uuid4(), 1, {})

        log = await running.engine.committed_logs.at(TopicPartition(topic.topic_id, 0), 0)

        assert (log.epoch, log.log_start_offset, log.committed_end) == (-1, 0, 0)


async def test_a_partition_that_is_gone_is_not_found() -> None:
    async with bench() as shared, shared.engine() as running:
        with pytest.raises(NotFound):
            await running.engine.committed_logs.at(TopicPartition(uuid4(), 0), 0)


async def test_below_the_log_start_nothing_is_served() -> None:
    async with bench() as shared, shared.engine(tail_bytes=0) as running:
        await running.create()
        await fill(running, 2, 2)
        await running.engine.maintenance.move_log_start(running.leader(), 2)
        log = await running.engine.committed_logs.at(running.leader().partition, 1)

        with pytest.raises(OffsetOutOfRange):
            log.segment_at(1)
        assert isinstance((await read(running, 1)).problem, OffsetOutOfRange)


async def test_the_store_is_asked_once_for_what_is_known_and_again_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committed_log, "_TRUSTED_MS", HOUR_MS)
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await fill(running, 3)
        logs = running.engine.committed_logs
        partition = running.leader().partition
        first = await logs.at(partition, 0)
        shared.metadata.calls.clear()
        assert [await logs.at(partition, offset) for offset in (1, 2)] == [first, first]
        assert shared.metadata.calls == []
        await fill(running, 2)

        assert (await logs.at(partition, 3)).committed_end == 5
        assert first.committed_end == 3


async def test_only_so_many_logs_are_remembered_and_those_are_the_ones_asked_for_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committed_log, "_REMEMBERED_LOGS", 2)
    monkeypatch.setattr(committed_log, "_TRUSTED_MS", HOUR_MS)
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=3)
        for number in range(3):
            await running.produce(sent(), leader=running.leader(partition=number))
        await running.engine.flush()
        logs = running.engine.committed_logs
        zero, one, two = (TopicPartition(topic.topic_id, number) for number in range(3))
        first = await logs.at(zero, 0)
        await logs.at(one, 0)
        await logs.at(zero, 0)
        await logs.at(two, 0)
        shared.metadata.calls.clear()

        assert await logs.at(zero, 0) is first
        assert shared.metadata.calls == []
        await logs.at(one, 0)
        assert "load_segments" in shared.metadata.calls


async def test_what_retention_removed_since_it_was_loaded_is_out_of_range_and_no_damage() -> None:
    """The leader's clean-up does not ask who remembers what; the objects are gone after the grace period."""
    async with bench() as shared, shared.engine(tail_bytes=0, garbage_grace=1_000) as running:
        await running.create()
        await fill(running, 2, 2)
        assert (await read(running, 0)).problem is None
        await running.engine.maintenance.move_log_start(running.leader(), 2)
        shared.clock.pass_time(5_000)
        await running.engine.maintenance.remove_garbage()

        assert isinstance((await read(running, 0)).problem, OffsetOutOfRange)


async def test_deleted_records_are_out_of_range_within_a_second() -> None:
    async with bench() as shared, shared.engine(tail_bytes=0) as running:
        await running.create()
        await fill(running, 2, 2)
        assert (await read(running, 0)).problem is None
        await running.engine.maintenance.move_log_start(running.leader(), 2)
        shared.clock.pass_time(1_000)

        assert isinstance((await read(running, 0)).problem, OffsetOutOfRange)
        assert (await read(running, 2)).problem is None


async def test_while_the_store_is_away_readers_go_on_for_as_long_as_objects_stay() -> None:
    async with bench() as shared, shared.engine(garbage_grace=2_000_000) as running:
        await running.create()
        await fill(running, 3)
        logs, partition = running.engine.committed_logs, running.leader().partition
        first = await logs.at(partition, 0)
        shared.metadata.fail("load_partitions", times=100)

        for _ in range(5):
            shared.clock.pass_time(100_000)
            assert await logs.at(partition, 0) is first
        for ask in (logs.at(partition, 3), logs.now(partition, 0)):  # what is not known cannot be guessed
            with pytest.raises(MetadataUnavailable):
                await ask
        shared.clock.pass_time(501_000)
        for _ in range(3):
            with pytest.raises(MetadataUnavailable):
                await logs.at(partition, 0)


async def test_a_store_that_does_not_answer_keeps_one_reader_for_a_moment_and_not_each_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committed_log, "_PATIENCE_S", 0.01)
    monkeypatch.setattr(committed_log, "_AWAY_MS", HOUR_MS)
    async with bench() as shared, shared.engine(garbage_grace=10 * HOUR_MS) as running:
        topic = await running.create(partitions=3)
        for number in range(3):
            await running.produce(sent(), leader=running.leader(partition=number))
        await running.engine.flush()
        logs = running.engine.committed_logs
        partitions = [TopicPartition(topic.topic_id, number) for number in range(3)]
        known = [await logs.at(partition, 0) for partition in partitions]
        shared.clock.pass_time(2_000)
        shared.metadata.calls.clear()
        shared.metadata.hold("load_partitions")

        for _ in range(3):
            assert [await logs.at(partition, 0) for partition in partitions] == known
            shared.clock.pass_time(2_000)
        assert shared.metadata.calls.count("load_partitions") == 1
        monkeypatch.setattr(committed_log, "_PATIENCE_S", 60)
        shared.clock.pass_time(HOUR_MS)
        assert [await logs.at(partition, 0) for partition in partitions] == known
        assert shared.metadata.calls.count("load_partitions") == 4


async def test_an_answer_that_comes_late_does_not_take_the_place_of_a_newer_one() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await fill(running, 2, 2)
        logs, partition = running.engine.committed_logs, running.leader().partition
        await logs.at(partition, 0)
        held = shared.metadata.hold("load_segments")
        late = asyncio.ensure_future(logs.now(partition, 4))
        await held.reached.wait()
        shared.clock.pass_time(1)
        await running.engine.maintenance.move_log_start(running.leader(), 2)
        newer = await logs.now(partition, 2)
        held.release()
        await late

        assert logs._logs[partition].log is newer


async def test_a_look_that_is_broken_off_vouches_for_nothing() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await fill(running, 2, 2)
        logs, partition = running.engine.committed_logs, running.leader().partition
        await logs.at(partition, 0)
        await running.engine.maintenance.move_log_start(running.leader(), 2)
        shared.clock.pass_time(1_000)
        held = shared.metadata.hold("load_partitions")
        look = asyncio.ensure_future(logs.at(partition, 0))
        await held.reached.wait()
        look.cancel()

        assert (await logs.at(partition, 0)).log_start_offset == 2


async def test_a_partition_that_was_deleted_is_not_served_between_two_looks() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create()
        await fill(running, 2)
        logs, partition = running.engine.committed_logs, running.leader().partition
        await logs.at(partition, 0)
        await shared.metadata.delete_topic(topic.topic_id)
        shared.clock.pass_time(1_000)

        for _ in range(3):
            with pytest.raises(NotFound):
                await logs.at(partition, 0)
