"""A node's storage: killed and started again it has what it acknowledged, once, at the same offsets."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from log_parts.batches import sent
from log_parts.engines import bench, finishes
from log_parts.waiting import until
from streamhouse.format.batch import iter_headers
from streamhouse.model.errors import CorruptData, NotLeader
from streamhouse.model.names import TopicPartition
from streamhouse.objects.faulty import Operation

PRODUCER = 11


@pytest.fixture
def wal(tmp_path: Path) -> Path:
    return tmp_path / "wal"


async def test_what_was_acknowledged_survives_a_kill(wal: Path) -> None:
    async with bench(wal) as shared:
        async with shared.engine() as running:
            await running.create()
            await running.produce(*[sent(300, fill=b"%d" % number) for number in range(10)])
            before = await running.read()
        async with shared.engine() as running:
            assert await running.read() == before
            await running.produce(sent())
            assert running.leader().next_offset == 11


async def test_a_kill_between_uploads_leaves_nothing_out_and_nothing_twice(wal: Path) -> None:
    async with bench(wal) as shared:
        for start in range(5):
            async with shared.engine(tail_bytes=0) as running:
                if start == 0:
                    await running.create()
                await running.produce(*[sent(300) for _ in range(4)])
                await running.engine.flush()
                await running.produce(*[sent(300) for _ in range(3)])
        async with shared.engine() as running:
            headers = [header for _, header in iter_headers(await running.read())]

        assert [header.base_offset for header in headers] == list(range(35))
        assert [header.leader_epoch for header in headers] == [1 + number // 7 for number in range(35)]


async def test_a_kill_after_the_commit_and_before_the_trim_replays_nothing_twice(wal: Path) -> None:
    async with bench(wal) as shared:
        async with shared.engine() as running:
            await running.create()
            await running.produce(*[sent(300) for _ in range(5)])
            running.leader()._wal = _NeverTrimmed(running.engine.wals.local)  # type: ignore[assignment]
            await running.engine.flush()
        async with shared.engine() as running:
            assert running.leader().next_offset == 5
            assert running.leader().buffered_bytes == 0
            await running.produce(sent())
            assert [header.base_offset for _, header in iter_headers(await running.read())] == list(range(6))


class _NeverTrimmed:
    """A WAL whose trimming a kill came before."""

    def __init__(self, wal: object) -> None:
        self._wal = wal

    def covered(self, owner: object, end_offset: int) -> None:
        return

    def __getattr__(self, name: str) -> object:
        return getattr(self._wal, name)


async def test_recovery_that_is_killed_is_done_again(wal: Path) -> None:
    async with bench(wal) as shared:
        async with shared.engine() as running:
            await running.create()
            await running.produce(sent(), sent())
            before = await running.read()
        for step in ("acquire_leases", "load_partitions", "load_segments", "begin_epochs", "renew_leases"):
            shared.metadata.fail(step)
            with pytest.raises(Exception, match="injected"):
                async with shared.engine():
                    pytest.fail("it started")
        async with shared.engine() as running:
            assert await running.read() == before


async def test_an_idempotent_producers_repeat_after_a_kill_gets_its_first_offset_back(wal: Path) -> None:
    async with bench(wal) as shared:
        async with shared.engine() as running:
            await running.create()
            await running.produce(sent(producer=(PRODUCER, 0, 0)))
            await running.engine.flush()
            await running.produce(sent(producer=(PRODUCER, 0, 1)))
        async with shared.engine() as running:
            await running.produce(sent(producer=(PRODUCER, 0, 0)), sent(producer=(PRODUCER, 0, 1)))
            assert running.leader().next_offset == 2


async def test_records_of_a_topic_that_was_deleted_are_not_replayed(wal: Path) -> None:
    async with bench(wal) as shared:
        async with shared.engine() as running:
            topic = await running.create()
            await running.produce(sent())
            await running.topics.delete(topic)
            await running.create()
            await running.produce(sent(fill=b"new"))
        async with shared.engine() as running:
            assert running.leader().next_offset == 1


def remove_oldest(wal: Path) -> None:
    min(wal.iterdir()).unlink()


async def test_a_wal_with_a_hole_stops_the_node(wal: Path) -> None:
    async with bench(wal) as shared:
        async with shared.engine() as running:
            await running.create()
            await running.produce(sent())
        async with shared.engine() as running:
            await running.produce(sent())
        remove_oldest(wal)

        with pytest.raises(CorruptData):
            async with shared.engine():
                pytest.fail("it started")


async def test_a_full_wal_is_recovered_although_it_holds_more_than_the_buffer(wal: Path) -> None:
    """A kill while the object store was away: the node must come back with full buffers."""
    async with bench(wal) as shared:
        async with shared.engine() as running:
            await running.create()
            shared.objects.fail(Operation.CREATE, times=None)
            await running.produce(*[sent(10_000) for _ in range(20)])
        shared.objects.heal()

        async with shared.engine(buffer_bytes=150_000, partition_buffer_bytes=150_000) as running:
            assert running.leader().next_offset == 20
            await finishes(running.engine.flush(), "the flush")


async def test_a_stop_uploads_everything_and_lets_another_agent_take_over_at_once(wal: Path) -> None:
    async with bench(wal) as shared:
        async with shared.engine("first") as running:
            await running.create()
            running.append(sent())  # not even handed to the disk yet
            await finishes(running.engine.stop(), "the stop")
        shared.wal_directory = wal.parent / "other"
        async with shared.engine("second") as running:
            assert running.leader().next_offset == 1
            assert await running.read()


async def test_a_stop_that_cannot_upload_leaves_the_records_in_the_wal(wal: Path) -> None:
    async with bench(wal) as shared:
        async with shared.engine(shutdown_timeout=300) as running:
            await running.create()
            await running.produce(sent())
            shared.objects.fail(Operation.CREATE, times=None)
            await finishes(running.engine.stop(), "the stop")
        shared.objects.heal()
        async with shared.engine() as running:
            assert running.leader().next_offset == 1


async def test_a_stop_that_takes_longer_than_a_lease_still_uploads_everything(wal: Path) -> None:
    """The leases must be kept for as long as the flush needs them."""
    async with bench(wal) as shared, shared.engine(lease_ttl=30_000, lease_renewal=20) as running:
        await running.create()
        await running.produce(sent())
        leader = running.leader()
        hold = shared.objects.hold(Operation.CREATE)
        stopping = asyncio.ensure_future(running.engine.stop())
        await finishes(hold.reached.wait(), "the upload has begun")

        renewals = shared.metadata.calls
        for _ in range(4):
            shared.clock.pass_time(15_000)
            # When the second begins, the first has been answered.
            enough = renewals.count("renew_leases") + 2
            await until(lambda enough=enough: renewals.count("renew_leases") >= enough, "the leases are renewed")
        hold.release()
        await finishes(stopping, "the stop")

        assert leader.committed_end == 1


async def test_what_is_acknowledged_while_a_stop_is_under_way_is_not_left_behind(wal: Path) -> None:
    """One partition is settled while another still uploads: what is written to it now must not be missed later."""
    async with bench(wal) as shared:
        async with shared.engine("first") as running:
            await running.create(partitions=2)
            for partition in range(2):
                await running.produce(sent(), leader=running.leader(partition=partition))
            hold = shared.objects.hold(Operation.CREATE, matches=lambda key: "/00001/" in key)
            stopping = asyncio.ensure_future(running.engine.stop())
            await hold.reached.wait()
            await until(lambda: running.leader().committed_end == 1, "the other partition is uploaded")
            acknowledged = 1
            with suppress(NotLeader):
                await running.produce(sent())
                acknowledged = 2
            hold.release()
            await finishes(stopping, "the stop")
        shared.wal_directory = wal.parent / "other"
        async with shared.engine("second") as running:
            assert running.leader().next_offset == acknowledged


async def test_a_kill_leaves_no_task_and_no_complaint(wal: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = asyncio.all_tasks()
    async with bench(wal) as shared:
        with caplog.at_level(logging.WARNING):
            async with shared.engine(segment_bytes=1024) as running:
                await running.create()
                await running.produce(sent(2000))
                for _ in range(20):
                    running.append(sent(2000))
        await until(lambda: asyncio.all_tasks() == before, "no task is left")
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_start_takes_up_what_its_disk_holds_and_passes_over_the_rest(wal: Path) -> None:
    async with bench(wal) as shared:
        async with shared.engine() as running:
            await running.create("on-disk")
            await running.produce(sent(), leader=running.leader("on-disk"))
        existing = [
            *await shared.metadata.list_topics(),
            await shared.metadata.create_topic("nobodys", uuid4(), 1, {}),
        ]
        starting = shared.unstarted()
        try:
            await starting.engine.start(existing)
            assert [leader.topic for leader in starting.engine.leadership.leaders.values()] == ["on-disk"]
            assert list(starting.engine.held) == [TopicPartition(existing[0].topic_id, 0)]
        finally:
            await starting.engine.abort()


async def test_what_is_on_another_agents_disk_is_not_led_although_its_lease_ran_out(wal: Path) -> None:
    async with bench(wal) as shared:
        async with shared.engine("gone") as running:
            await running.create()
            await running.produce(sent())
        shared.clock.pass_time(60_000)
        shared.wal_directory = wal.parent / "other"
        async with shared.engine("next") as running:
            with pytest.raises(NotLeader):
                running.leader()
        shared.wal_directory = wal
        async with shared.engine("gone") as running:
            assert running.leader().next_offset == 1


async def test_an_engine_beside_one_that_leads_starts_and_leads_nothing() -> None:
    async with bench() as shared, shared.engine("living") as running:
        await running.create()

        async with shared.engine("second") as second:
            assert list(second.engine.held) == []
        await running.produce(sent())


async def test_partitions_that_fill_the_nodes_buffer_together_are_uploaded_before_their_time(wal: Path) -> None:
    """Each is far from a full segment, and all of it came in one burst, before any of it was durable."""
    limits = {"buffer_bytes": 2**20, "partition_buffer_bytes": 2**20, "segment_bytes": 2**20, "segment_age": 3_600_000}
    async with bench(wal) as shared, shared.engine(**limits) as running:
        await running.create(partitions=4)
        for partition in range(4):
            running.append(sent(250_000), running.leader(partition=partition))
        running.engine.wals.local.kick()

        await until(lambda: running.engine.buffer.used_bytes < 2**19, "there is room again")


async def test_many_small_wal_files_are_trimmed_as_segments_are_committed(wal: Path) -> None:
    async with bench(wal) as shared, shared.engine(segment_bytes=1024) as running:
        await running.create()
        for _ in range(12):
            await running.produce(*[sent(100_000) for _ in range(5)])
            await running.engine.flush()

        await until(lambda: len(list(wal.iterdir())) <= 5, "files are used again")


async def test_a_wal_that_is_gone_with_records_in_it_stops_the_start(tmp_path: Path) -> None:
    """Another disk under the same name must not be taken for the one that has the records."""
    async with bench(tmp_path / "wal") as shared:
        async with shared.engine() as running:
            await running.create()
            await running.produce(sent())
        for file in (tmp_path / "wal").iterdir():
            file.unlink()

        with pytest.raises(CorruptData, match="1 partitions"):
            async with shared.engine():
                pass
