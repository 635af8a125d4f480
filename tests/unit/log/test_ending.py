"""Several may want to end one leadership at the same time: a hand-over, a change of durability, a stop. Whatever
becomes of one, nothing is written that another relies on not being written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from log_parts.batches import sent
from log_parts.engines import Bench, Running, bench, finishes
from log_parts.waiting import until
from streamhouse.format.batch import iter_headers
from streamhouse.log import handing_over
from streamhouse.log.leader import GivenUp, PartitionLeader
from streamhouse.metadata.cluster import Transfer
from streamhouse.model.errors import Fenced, NotLeader, Unavailable
from streamhouse.model.names import TopicPartition
from streamhouse.objects.faulty import Hold, Operation


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hand-overs end when a test says so, and not because a machine is slow."""
    monkeypatch.setattr(handing_over, "_QUICK_MS", 60_000)
    monkeypatch.setattr(handing_over, "_STOPPED_LIMIT_MS", 60_000)


@asynccontextmanager
async def orders_and_a_slow_one(tmp_path: Path) -> AsyncIterator[tuple[Bench, Running]]:
    """An engine that leads `orders`, where all is uploaded, and `slow`."""
    async with bench(tmp_path / "wal") as shared, shared.engine() as running:
        await running.create("orders")
        await running.create("slow")
        await running.produce(sent())
        await running.engine.flush()
        yield shared, running


async def accepted(shared: Bench, running: Running) -> list[Transfer]:
    moves = [(partition, "new") for partition in running.engine.held]
    begun = [item for item in await shared.metadata.begin_transfers("agent-1", moves, 200_000) if item is not None]
    await shared.metadata.accept_transfers("new", [transfer.transfer_id for transfer in begun])
    return begun


class FailingHandOver:
    """Of both topics, whose writing has stopped: the last records of `slow` cannot be stored, as will be seen."""

    def __init__(self, task: asyncio.Task[dict[TopicPartition, str]], hold: Hold) -> None:
        self._task = task
        self._hold = hold

    @classmethod
    async def begun(cls, shared: Bench, running: Running) -> FailingHandOver:
        transfers = await accepted(shared, running)
        renewal = shared.metadata.hold("renew_leases")
        task = asyncio.create_task(running.engine.hand_over(transfers, shared.clock.monotonic_ms()))
        await renewal.reached.wait()
        slow = running.leader("slow")

        def is_of_slow(key: str) -> bool:
            return str(slow.partition.topic_id) in key

        hold = shared.objects.hold(Operation.CREATE, times=1, matches=is_of_slow)
        shared.objects.fail(Operation.CREATE, matches=is_of_slow, error=lambda: Fenced("not ours"))
        write_at_the_last_moment(running, slow)
        renewal.release()
        await finishes(hold.reached.wait(), "the last upload")
        assert refuses_to_write(running)
        return cls(task, hold)

    async def fails(self) -> None:
        self._hold.release()
        refusals = await finishes(self._task, "the hand-over")
        assert set(refusals.values()) == {"not ours"}


def write_at_the_last_moment(running: Running, leader: PartitionLeader) -> None:
    """What comes just before writing stops has to be stored while it stands still."""
    give_up_writing = leader.give_up_writing

    def write_before() -> GivenUp:
        leader.give_up_writing = give_up_writing  # type: ignore[method-assign]
        running.append(sent(), leader)
        return give_up_writing()

    leader.give_up_writing = write_before  # type: ignore[method-assign]


def refuses_to_write(running: Running, leader: PartitionLeader | None = None) -> bool:
    try:
        running.append(sent(fill=b"late"), leader)
    except NotLeader:
        return True
    return False


async def change_durability(running: Running, **config: str) -> None:
    others = {name.replace("_", "."): value for name, value in config.items()}
    await running.topics.configure(running.topics.get("orders"), {"streamhouse.durability": "object"} | others)


async def offsets(running: Running) -> list[int]:
    return [header.base_offset for _, header in iter_headers(await running.read())]


def is_of_orders(running: Running) -> Callable[[str], bool]:
    topic_id = str(running.topics.get("orders").topic_id)
    return lambda key: key.startswith("segments/") and topic_id in key


async def test_a_hand_over_that_fails_lets_nothing_write_that_is_being_released(tmp_path: Path) -> None:
    """What is acknowledged between the request to release and its commit is on a disk that nobody will look at."""
    async with orders_and_a_slow_one(tmp_path) as (shared, running):
        leader = running.leader()
        handing = await FailingHandOver.begun(shared, running)
        release = shared.metadata.hold("release_leases")
        await change_durability(running)
        await finishes(release.reached.wait(), "the release")

        await handing.fails()
        is_refused = refuses_to_write(running, leader)
        running.engine.commit_appends()
        acknowledged = leader.next_offset
        await until(lambda: leader.high_watermark == acknowledged, "what was appended is acknowledged")
        release.release()
        await until(lambda: leader.removed, "its leadership has ended")
        await running.place()

        assert await offsets(running) == list(range(acknowledged))
        assert is_refused
        assert not running.leader().is_local
        await running.produce(sent())
        assert await offsets(running) == [0, 1]


async def test_a_hand_over_that_fails_lets_nothing_write_whose_last_records_are_stored_for_a_release(
    tmp_path: Path,
) -> None:
    async with orders_and_a_slow_one(tmp_path) as (shared, running):
        leader = running.leader()
        hold = shared.objects.hold(Operation.CREATE, times=1, matches=is_of_orders(running))
        write_at_the_last_moment(running, leader)
        handing = await FailingHandOver.begun(shared, running)
        await finishes(hold.reached.wait(), "the upload")
        await change_durability(running)
        await until(lambda: len(running.engine.uploader._flushing[leader]) == 2, "both wait for the upload")

        await handing.fails()
        assert not refuses_to_write(running, leader), "nothing but the hand-over has stopped it yet"
        running.engine.commit_appends()
        hold.release()
        await until(lambda: leader.removed, "its leadership has ended")
        await running.place()

        assert await offsets(running) == [0, 1, 2]


async def test_a_hand_over_that_fails_lets_nothing_write_in_a_node_that_stops(tmp_path: Path) -> None:
    async with orders_and_a_slow_one(tmp_path) as (shared, running):
        leader = running.leader()
        handing = await FailingHandOver.begun(shared, running)
        stopping = asyncio.create_task(running.engine.stop())
        await until(lambda: not len(running.engine._chores), "the stop has begun")

        await handing.fails()
        await running.engine.leadership.renew()

        assert refuses_to_write(running, leader)
        await finishes(stopping, "the stop")


async def test_a_partition_that_nobody_gives_up_any_more_is_written_to_again(tmp_path: Path) -> None:
    """Also if the hand-over was not the only one that had given it up."""
    async with orders_and_a_slow_one(tmp_path) as (shared, running):
        leader = running.leader()
        handing = await FailingHandOver.begun(shared, running)
        shared.metadata.fail("release_leases")
        await change_durability(running)
        await until(lambda: "release_leases" in shared.metadata.calls, "the release was tried")
        await running.topics.configure(running.topics.get("orders"), {})

        await handing.fails()
        await running.engine.leadership.renew()

        await running.produce(sent(), leader=leader)
        assert (running.leader(), leader.epoch) == (leader, 2)
        assert await offsets(running) == [0, 1]


async def test_many_changes_of_a_config_end_a_leadership_once(tmp_path: Path) -> None:
    async with orders_and_a_slow_one(tmp_path) as (shared, running):
        leader = running.leader()
        release = shared.metadata.hold("release_leases")
        for number in range(1, 6):
            await change_durability(running, retention_ms=f"{number}000000")
        await finishes(release.reached.wait(), "the release")
        release.release()
        await until(lambda: leader.removed, "its leadership has ended")

        assert shared.metadata.calls.count("release_leases") == 1


async def test_a_lease_that_was_taken_again_while_it_was_released_is_not_forgotten(tmp_path: Path) -> None:
    """The store holds it under an epoch for which nobody has asked for a release."""
    async with bench(tmp_path / "wal") as shared, shared.engine(lease_ttl=2_000, lease_renewal=20) as running:
        await running.create("orders")
        await running.produce(sent())
        leader = running.leader()
        release = shared.metadata.hold("release_leases")
        await change_durability(running)
        await finishes(release.reached.wait(), "the release")
        shared.clock.pass_time(10_000)
        await until(lambda: leader.epoch > 1, "the lease was lost and taken again")
        release.release()
        await until(lambda: leader.removed, "its leadership has ended")

        (placement,) = await shared.metadata.list_placements()
        assert (placement.epoch, placement.lease_left_ms <= 0, placement.wal_agent_id) == (leader.epoch, True, "")


async def test_what_is_not_all_in_the_object_store_is_not_released_as_if_it_were(tmp_path: Path) -> None:
    async with bench(tmp_path / "wal") as shared, shared.engine() as running:
        await running.create("orders")
        await running.produce(sent())
        leader = running.leader()
        given_up = leader.give_up_writing()

        with pytest.raises(Unavailable, match="orders/0"):
            await running.engine.leadership.release([leader], drained=True)

        leader.take_back(given_up)
        await running.engine.leadership.renew()
        await running.produce(sent())
        assert (await shared.metadata.list_placements())[0].wal_agent_id == "agent-1"
