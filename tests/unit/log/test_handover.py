"""A partition goes from one engine to another with every record, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from log_parts.batches import sent
from log_parts.engines import Bench, Running, bench, finishes
from log_parts.leaders import Ack
from log_parts.waiting import until
from streamhouse.core.placement.transfer import TransferState
from streamhouse.format.batch import iter_headers
from streamhouse.log import handing_over
from streamhouse.log.leader import GivenUp, PartitionLeader
from streamhouse.metadata.cluster import Placement, Transfer
from streamhouse.model.errors import Fenced, NotLeader
from streamhouse.model.names import TopicPartition
from streamhouse.objects.faulty import Operation

PRODUCER = 11
TIMEOUT_MS = 20_000
DURABILITIES = pytest.mark.parametrize("durability", ["wal", "object"])


@asynccontextmanager
async def two_engines(tmp_path: Path, **settings: Any) -> AsyncIterator[tuple[Bench, Running, Running]]:
    """One that leads `orders`, and one that knows of it."""
    async with bench(tmp_path / "old") as shared, shared.engine("old", **settings) as old:
        await old.create()
        shared.wal_directory = tmp_path / "new"
        async with shared.engine("new", **settings) as new:
            yield shared, old, new


async def accepted(shared: Bench, running: Running, timeout_ms: int = TIMEOUT_MS) -> list[Transfer]:
    """A transfer of all that the old engine leads, to which the new one has agreed."""
    moves = [(partition, "new") for partition in running.engine.held]
    begun = [item for item in await shared.metadata.begin_transfers("old", moves, timeout_ms) if item is not None]
    await shared.metadata.accept_transfers("new", [transfer.transfer_id for transfer in begun])
    return [item for item in await shared.metadata.list_transfers("old") if item.state is TransferState.ACCEPTED]


async def carry_out(
    shared: Bench, running: Running, transfers: Sequence[Transfer], *, looked_up_ms_ago: int = 0
) -> dict[TopicPartition, str]:
    looked_up_at_ms = shared.clock.monotonic_ms() - looked_up_ms_ago
    return await finishes(running.engine.hand_over(transfers, looked_up_at_ms), "the hand-over")


async def hand_over(shared: Bench, running: Running) -> None:
    await carry_out(shared, running, await accepted(shared, running))


def is_segment(key: str) -> bool:
    return key.startswith("segments/")


async def placement(shared: Bench) -> Placement:
    (found,) = await shared.metadata.list_placements()
    return found


async def offsets(running: Running) -> list[int]:
    return [header.base_offset for _, header in iter_headers(await running.read())]


@DURABILITIES
async def test_the_next_leader_has_every_record_and_goes_on_behind_them(tmp_path: Path, durability: str) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, new):
        await old.produce(*[sent(300, fill=b"%d" % number) for number in range(5)])
        before = await old.read()

        await hand_over(shared, old)
        await new.place()

        assert await new.read() == before
        await new.produce(sent())
        assert await offsets(new) == list(range(6))
        assert new.leader().epochs == [(1, 0), (3, 5)]


@DURABILITIES
async def test_the_lease_is_the_next_leaders_at_once_and_needs_nobodys_disk(tmp_path: Path, durability: str) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, _):
        await old.produce(sent())

        await hand_over(shared, old)

        found = await placement(shared)
        assert (found.agent_id, found.epoch, found.wal_agent_id) == ("new", 2, "")
        assert found.lease_left_ms > 0
        assert found.committed_end == 1


@DURABILITIES
async def test_who_was_handed_a_lease_goes_on_with_its_epoch(tmp_path: Path, durability: str) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, new):
        await old.produce(sent(), sent())
        partition = old.leader().partition
        await hand_over(shared, old)

        await new.engine.lead({partition: new.topics.get("orders")}, {partition: 2})

        assert new.leader().epochs == [(1, 0), (2, 2)]
        await new.produce(sent())
        found = await placement(shared)
        assert (found.epoch, found.wal_agent_id) == (2, "new" if durability == "wal" else "")


async def test_who_was_handed_a_lease_that_has_moved_on_leads_nothing(tmp_path: Path) -> None:
    async with two_engines(tmp_path) as (shared, old, new):
        partition = old.leader().partition
        await hand_over(shared, old)
        await shared.metadata.acquire_leases("new", [partition], 30_000)

        await new.engine.lead({partition: new.topics.get("orders")}, {partition: 2})

        assert list(new.engine.held) == []


@DURABILITIES
async def test_the_old_leader_refuses_writes_and_wakes_who_waits(tmp_path: Path, durability: str) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, _):
        await old.produce(sent())
        leader = old.leader()
        woken = asyncio.Event()
        leader.watch(woken.set)

        await hand_over(shared, old)

        assert woken.is_set()
        assert leader.removed
        assert list(old.engine.held) == []
        with pytest.raises(NotLeader):
            old.append(sent(), leader)
        with pytest.raises(NotLeader):
            old.leader()


@DURABILITIES
async def test_a_producers_repeat_at_the_next_leader_is_recognised(tmp_path: Path, durability: str) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, new):
        await old.produce(sent(producer=(PRODUCER, 0, 0)), sent(producer=(PRODUCER, 0, 1)))

        await hand_over(shared, old)
        await new.place()
        await new.produce(sent(producer=(PRODUCER, 0, 1)), sent(producer=(PRODUCER, 0, 2)))

        assert new.leader().next_offset == 3


@DURABILITIES
async def test_what_was_appended_and_not_yet_durable_goes_along(tmp_path: Path, durability: str) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, new):
        acks = [old.append(sent()) for _ in range(3)]

        await hand_over(shared, old)
        await new.place()

        assert all(ack.is_durable for ack in acks)
        assert await offsets(new) == [0, 1, 2]


@DURABILITIES
async def test_writing_goes_on_while_what_is_there_is_uploaded(tmp_path: Path, durability: str) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, new):
        await old.produce(sent(10_000))
        transfers = await accepted(shared, old)
        hold = shared.objects.hold(Operation.CREATE, matches=is_segment, times=1)
        handing_over = asyncio.ensure_future(carry_out(shared, old, transfers))
        await hold.reached.wait()

        late = old.append(sent())
        hold.release()
        await finishes(handing_over, "the hand-over")
        await new.place()

        assert late.is_durable
        assert await offsets(new) == [0, 1]


async def test_many_partitions_are_handed_over_in_one_go(tmp_path: Path) -> None:
    async with bench(tmp_path / "old") as shared, shared.engine("old") as old:
        await old.create(partitions=100)
        for partition in range(100):
            await old.produce(sent(), leader=old.leader(partition=partition))
        shared.wal_directory = tmp_path / "new"
        async with shared.engine("new") as new:
            await hand_over(shared, old)
            await new.place()

            assert len(new.engine.held) == 100
            assert {new.leader(partition=number).next_offset for number in range(100)} == {1}


async def test_after_a_hand_over_a_restart_replays_nothing_of_it(tmp_path: Path) -> None:
    async with bench(tmp_path / "old") as shared:
        async with shared.engine("old") as old:
            await old.create()
            await old.produce(sent())
            shared.wal_directory = tmp_path / "new"
            async with shared.engine("new") as new:
                await hand_over(shared, old)
                await new.place()
                await new.produce(sent())
        shared.wal_directory = tmp_path / "old"
        async with shared.engine("old") as old:
            assert list(old.engine.held) == []


@DURABILITIES
async def test_a_hand_over_that_the_store_refuses_leaves_a_leader_that_can_write(
    tmp_path: Path, durability: str
) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, _):
        await old.produce(sent())
        transfers = await accepted(shared, old)
        await shared.metadata.reject_transfers("new", [transfers[0].transfer_id], "changed its mind")

        await carry_out(shared, old, transfers)
        await old.place()

        await old.produce(sent())
        assert await offsets(old) == [0, 1]
        assert (await placement(shared)).agent_id == "old"


@DURABILITIES
async def test_a_refusal_that_was_heard_leaves_no_doubt_and_the_epoch_as_it_is(tmp_path: Path, durability: str) -> None:
    """The transfer was too old when its turn came; nothing has happened to the lease."""
    async with two_engines(tmp_path, durability=durability) as (shared, old, _):
        await old.produce(sent())
        leader = old.leader()
        transfers = await accepted(shared, old)
        asking = shared.metadata.hold("complete_transfers")
        handing_over = asyncio.ensure_future(carry_out(shared, old, transfers))
        await asking.reached.wait()
        shared.clock.pass_time(TIMEOUT_MS)
        asking.release()

        refused = await handing_over

        assert list(refused) == [leader.partition]
        await old.produce(sent())
        assert (old.leader(), leader.epoch) == (leader, 1)
        assert (await placement(shared)).epoch == 1
        assert await offsets(old) == [0, 1]


@DURABILITIES
async def test_a_refusal_because_the_lease_is_anothers_ends_the_leadership(tmp_path: Path, durability: str) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, new):
        await old.produce(sent())
        leader = old.leader()
        transfers = await accepted(shared, old)
        asking = shared.metadata.hold("complete_transfers")
        handing_over = asyncio.ensure_future(carry_out(shared, old, transfers))
        await asking.reached.wait()
        own = [old.engine.leadership._leases[leader.partition]]
        await shared.metadata.release_leases("old", own, drained=True)
        await new.place()
        asking.release()

        refused = await handing_over

        assert list(refused) == [leader.partition]
        assert leader.removed
        with pytest.raises(NotLeader):
            old.append(sent(), leader)
        await new.produce(sent())
        assert await offsets(new) == [0, 1]


@DURABILITIES
@pytest.mark.parametrize("is_late_at_first", [True, False])
async def test_writing_does_not_stop_for_what_cannot_be_completed_in_time(
    tmp_path: Path, durability: str, is_late_at_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too little was left of it before the flush, or after it."""
    async with two_engines(tmp_path, durability=durability) as (shared, old, _):
        await old.produce(sent())
        leader = old.leader()
        transfers = await accepted(shared, old)
        stops: list[object] = []
        monkeypatch.setattr(PartitionLeader, "give_up_writing", stops.append)
        if is_late_at_first:
            refused = await carry_out(shared, old, transfers, looked_up_ms_ago=TIMEOUT_MS - 1_999)
        else:
            uploading = shared.objects.hold(Operation.CREATE, matches=is_segment, times=1)
            handing_over = asyncio.ensure_future(carry_out(shared, old, transfers))
            await uploading.reached.wait()
            shared.clock.pass_time(TIMEOUT_MS - 1_999)
            uploading.release()
            refused = await handing_over

        assert refused == {leader.partition: "there was less than 2000 ms left to complete it"}
        assert stops == []
        assert "complete_transfers" not in shared.metadata.calls
        monkeypatch.undo()
        await old.produce(sent())
        assert (old.leader(), leader.epoch) == (leader, 1)


@DURABILITIES
async def test_a_hand_over_while_the_store_is_away_is_doubtful_until_the_lease_is_taken_anew(
    tmp_path: Path, durability: str
) -> None:
    """The request may still arrive: under the epoch that it names, it must then mean nothing."""
    async with two_engines(tmp_path, durability=durability) as (shared, old, _):
        await old.produce(sent())
        before = old.leader()
        transfers = await accepted(shared, old)
        shared.metadata.fail("complete_transfers")
        shared.metadata.fail("renew_leases", after=1)

        refused = await carry_out(shared, old, transfers)
        assert refused == {before.partition: "injected fault"}
        with pytest.raises(NotLeader):
            old.append(sent(), before)
        await old.engine.leadership.renew()
        await old.place()

        assert old.leader().epoch > 1
        await old.produce(sent())
        (late,) = await shared.metadata.complete_transfers("old", [(transfers[0].transfer_id, 1, 1)], 30_000)
        assert late is not None
        assert await offsets(old) == [0, 1]


@DURABILITIES
async def test_after_a_completion_whose_answer_was_lost_nothing_is_acknowledged(
    tmp_path: Path, durability: str
) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, new):
        await old.produce(sent())
        leader = old.leader()
        shared.metadata.fail("complete_transfers", lost_answer=True)
        acks: list[Ack] = []

        def try_to_write() -> None:
            with suppress(NotLeader):
                acks.append(old.append(sent(fill=b"late"), leader))

        await hand_over(shared, old)
        try_to_write()
        await new.place()
        await new.produce(sent())
        for _ in range(2):
            await old.engine.leadership.renew()
            try_to_write()

        assert acks == []
        assert leader.removed
        assert await offsets(new) == [0, 1]


async def test_a_completion_whose_answer_was_lost_is_noticed_also_after_the_next_leader_has_gone(
    tmp_path: Path,
) -> None:
    """The lease can be had again, but what the other one wrote is not to be written over."""
    async with two_engines(tmp_path) as (shared, old, new):
        await old.produce(sent())
        leader = old.leader()
        transfers = await accepted(shared, old)
        shared.metadata.fail("complete_transfers", lost_answer=True)
        shared.metadata.fail("renew_leases", after=1, times=3)
        await carry_out(shared, old, transfers)
        shared.metadata.heal()
        await new.place()
        await new.produce(sent())
        await new.engine.stop()

        await old.engine.leadership.renew()

        assert leader.removed


@DURABILITIES
async def test_a_hand_over_that_takes_too_long_is_given_up_and_writing_goes_on(tmp_path: Path, durability: str) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, _):
        await old.produce(sent())
        transfers = await accepted(shared, old)
        shared.objects.fail(Operation.CREATE, times=None, matches=is_segment)

        # So much is over that little more is left than the pause in writing may take.
        refused = await carry_out(shared, old, transfers, looked_up_ms_ago=TIMEOUT_MS - 2_200)
        shared.objects.heal()

        assert "its records were not in the object store within " in refused[old.leader().partition]
        await old.produce(sent())
        await finishes(old.engine.flush(), "the flush")
        assert old.leader().committed_end == 2


@DURABILITIES
async def test_a_hand_over_that_breaks_off_after_writing_has_stopped_does_not_leave_it_so(
    tmp_path: Path, durability: str
) -> None:
    async with two_engines(tmp_path, durability=durability) as (shared, old, _):
        await old.produce(sent())
        transfers = await accepted(shared, old)
        hold = shared.objects.hold(Operation.CREATE, matches=is_segment, times=1)
        handing_over = asyncio.ensure_future(carry_out(shared, old, transfers))
        await hold.reached.wait()
        old.append(sent())
        shared.objects.fail(
            Operation.CREATE,
            matches=lambda key: is_segment(key) and f"{1:020d}-" in key,
            error=lambda: Fenced("not ours"),
        )
        hold.release()
        with suppress(Fenced):
            await finishes(handing_over, "the hand-over")

        await old.engine.leadership.renew()
        await old.place()

        await old.produce(sent())


async def test_a_partition_that_is_led_no_longer_is_not_handed_over(tmp_path: Path) -> None:
    async with two_engines(tmp_path) as (shared, old, _):
        transfers = await accepted(shared, old)
        old.engine.leadership.depose(old.leader(), NotLeader("another agent leads"))

        await carry_out(shared, old, transfers)

        assert (await placement(shared)).agent_id == "old"


@DURABILITIES
async def test_writing_does_not_stop_where_storing_is_slow(
    tmp_path: Path, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A try that cannot succeed costs those who write nothing: no pause, and no new epoch."""
    monkeypatch.setattr(handing_over, "_QUICK_MS", -1)
    async with two_engines(tmp_path, durability=durability) as (shared, old, _):
        await old.produce(sent())
        leader = old.leader()
        transfers = await accepted(shared, old)
        stops: list[object] = []
        monkeypatch.setattr(PartitionLeader, "give_up_writing", stops.append)

        refused = await carry_out(shared, old, transfers)

        assert list(refused) == [leader.partition]
        assert "writing may stop for 2000 ms only" in refused[leader.partition]
        assert stops == []
        await old.produce(sent())
        assert (old.leader(), leader.epoch) == (leader, 1)


@DURABILITIES
async def test_what_could_not_be_stored_while_writing_stood_still_goes_on_under_the_same_epoch(
    tmp_path: Path, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was asked to move the lease, so there is nothing to doubt."""
    monkeypatch.setattr(handing_over, "_STOPPED_LIMIT_MS", 50)
    async with two_engines(tmp_path, durability=durability) as (shared, old, _):
        await old.produce(sent())
        leader = old.leader()
        transfers = await accepted(shared, old)
        give_up_writing = PartitionLeader.give_up_writing

        def write_once_more(given_up: PartitionLeader) -> GivenUp:
            """And what that needs does not come to its end in time."""
            shared.objects.fail(Operation.CREATE, times=None)
            old.append(sent(), given_up)
            return give_up_writing(given_up)

        monkeypatch.setattr(PartitionLeader, "give_up_writing", write_once_more)
        refused = await carry_out(shared, old, transfers)
        shared.objects.heal()

        assert refused == {leader.partition: "the last records were not stored within 50 ms"}
        await old.produce(sent())
        assert (old.leader(), leader.epoch) == (leader, 1)
        assert (await placement(shared)).epoch == 1
        assert await offsets(old) == [0, 1, 2]
        monkeypatch.undo()


# --- durability ---


@pytest.mark.parametrize(("before", "after"), [("wal", "object"), ("object", "wal")])
async def test_a_topic_whose_durability_changes_is_led_anew_with_all_its_records(
    tmp_path: Path, before: str, after: str
) -> None:
    async with bench(tmp_path / "wal") as shared, shared.engine() as running:
        topic = await running.create(streamhouse_durability=before)
        await running.produce(sent(), sent())
        first = running.leader()

        await running.topics.configure(topic, {"streamhouse.durability": after})
        await until(lambda: first.removed, "the leadership has ended")
        await running.place()

        second = running.leader()
        assert (first.is_local, second.is_local) == (before == "wal", after == "wal")
        assert second.epoch == 2
        await running.produce(sent())
        assert await offsets(running) == [0, 1, 2]
        assert (await placement(shared)).wal_agent_id == ("agent-1" if after == "wal" else "")


async def test_two_changes_in_a_row_do_not_end_the_leadership_that_follows_the_first(tmp_path: Path) -> None:
    """What the next leader acknowledges would be on its disk while the store lets anybody lead."""
    async with bench(tmp_path / "wal") as shared, shared.engine() as running:
        topic = await running.create(streamhouse_durability="object")
        await running.produce(sent())
        first = running.leader()
        hold = shared.objects.hold(Operation.CREATE, matches=is_segment, times=1)
        await running.topics.configure(topic, {"streamhouse.durability": "wal"})
        await hold.reached.wait()
        await running.topics.configure(topic, {"streamhouse.durability": "wal", "retention.ms": "100000"})
        hold.release()
        await until(lambda: first.removed, "the first leadership has ended")
        await running.place()
        await running.produce(sent())
        for _ in range(50):
            await asyncio.sleep(0.001)

        found = await placement(shared)
        assert (found.agent_id, found.wal_agent_id) == ("agent-1", "agent-1")
        assert found.lease_left_ms > 0


async def test_a_change_of_durability_while_the_store_is_away_is_made_when_it_is_back(tmp_path: Path) -> None:
    async with bench(tmp_path / "wal") as shared, shared.engine(lease_ttl=2_000, lease_renewal=20) as running:
        topic = await running.create()
        await running.produce(sent())
        first = running.leader()
        shared.metadata.fail("release_leases")
        await running.topics.configure(topic, {"streamhouse.durability": "object"})
        await until(lambda: "release_leases" in shared.metadata.calls, "it was tried")

        await until(lambda: first.removed or first.writable_until_ms > 0, "it is led again")
        await until(lambda: first.removed, "it is led anew")
        await running.place()
        assert not running.leader().is_local
