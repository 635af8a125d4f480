"""Leases: taken, renewed, lost and taken again, and what may be written meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from log_parts.batches import header_of, sent
from log_parts.engines import Bench, bench, finishes
from log_parts.leaders import Ack
from log_parts.waiting import until
from streamhouse.metadata.store import EpochStart
from streamhouse.model.errors import MetadataUnavailable, NotFound, NotLeader, OutcomeUnknown

TTL_MS = 30_000


async def test_a_new_topic_is_led_at_once_in_its_first_epoch() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(partitions=3)

        assert [running.leader(partition=number).epoch for number in range(3)] == [1, 1, 1]
        await running.produce(sent())


async def test_each_start_is_a_new_epoch_that_begins_where_the_log_ends() -> None:
    async with bench() as shared:
        for start in range(3):
            async with shared.engine() as running:
                if start == 0:
                    await running.create()
                await running.produce(sent(), sent())
                await running.engine.flush()
                assert running.leader().epochs == [(number + 1, 2 * number) for number in range(start + 1)]


async def test_without_renewal_a_leader_stops_writing_before_its_lease_ends() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        shared.clock.pass_time(int(TTL_MS * 0.95))

        with pytest.raises(NotLeader):
            running.append(sent())


async def test_a_renewal_lets_it_go_on_in_the_same_epoch() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        shared.clock.pass_time(TTL_MS // 2)
        await running.engine.leadership.renew()
        shared.clock.pass_time(TTL_MS // 2)

        await running.produce(sent())

        assert running.leader().epoch == 1


async def test_a_lost_lease_that_nobody_took_is_taken_again_in_a_new_epoch() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent())
        shared.clock.pass_time(2 * TTL_MS)

        await running.engine.leadership.renew()
        await running.produce(sent())

        leader = running.leader()
        assert leader.epoch == 2
        assert leader.epochs == [(1, 0), (2, 1)]
        assert leader.epoch_end(1) == (1, 1)


async def test_a_lease_that_another_agent_took_is_given_up() -> None:
    async with bench() as shared, shared.engine("old") as old:
        topic = await old.create()
        leader = old.leader()
        shared.clock.pass_time(2 * TTL_MS)
        async with shared.engine("new") as new:
            await old.engine.leadership.renew()

            assert leader.removed
            assert old.topics.leaders_of(topic) == [None]
            with pytest.raises(NotLeader):
                old.leader()
            await new.produce(sent())


async def test_a_leader_does_not_go_on_behind_what_another_agent_wrote() -> None:
    """The other one came, wrote and went; its offsets are not ours to give again."""
    async with bench() as shared, shared.engine("old") as old:
        await old.create()
        await old.produce(sent())
        leader = old.leader()
        shared.clock.pass_time(2 * TTL_MS)
        async with shared.engine("new") as new:
            await new.produce(sent(), sent())
            await new.engine.stop()

        await old.engine.leadership.renew()

        assert leader.removed
        with pytest.raises(NotLeader):
            leader.append(sent(), header_of(sent()), Ack())


async def test_a_leader_does_not_go_on_behind_what_another_agent_wrote_and_deleted() -> None:
    """No segment of the other one is left to show that it was there, but its offsets are used up all the same."""
    async with bench() as shared, shared.engine("old") as old:
        await old.create()
        await old.produce(sent())
        leader = old.leader()
        shared.clock.pass_time(2 * TTL_MS)
        async with shared.engine("new") as new:
            await new.produce(sent(), sent())
            await new.engine.flush()
            await new.engine.maintenance.move_log_start(new.leader(), 2)
            assert new.leader().segments == []
            await new.engine.stop()

        await old.engine.leadership.renew()

        assert leader.removed


async def test_what_waits_for_the_disk_when_a_lease_is_lost_to_another_fails() -> None:
    async with bench() as shared, shared.engine("old") as old:
        await old.create()
        leader = old.leader()
        shared.clock.pass_time(2 * TTL_MS)
        async with shared.engine("new"):
            leader.writable_until_ms = 2**60  # it has not noticed yet
            ack = Ack()
            batch = sent()
            leader.append(batch, header_of(batch), ack)
            leader.remove(NotLeader("another agent leads"))
            await asyncio.sleep(0)

    assert [type(heard) for heard in ack.heard] == [OutcomeUnknown]


async def test_a_store_that_is_away_leaves_leaders_to_run_out_by_themselves() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        shared.metadata.fail("renew_leases", times=1)

        with pytest.raises(MetadataUnavailable):
            await running.engine.leadership.renew()
        await running.produce(sent())
        shared.clock.pass_time(TTL_MS)
        with pytest.raises(NotLeader):
            running.append(sent())
        await running.engine.leadership.renew()
        await running.produce(sent())


@pytest.mark.parametrize("step", ["acquire_leases", "begin_epochs"])
@pytest.mark.parametrize("lost_answer", [False, True])
async def test_a_store_that_goes_away_while_a_lease_is_taken_again_does_no_harm(step: str, lost_answer: bool) -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(partitions=2)
        await running.produce(sent())
        shared.clock.pass_time(2 * TTL_MS)
        shared.metadata.fail(step, lost_answer=lost_answer)
        with suppress(MetadataUnavailable):
            await running.engine.leadership.renew()

        await running.engine.leadership.renew()

        await running.produce(sent())
        await running.produce(sent(), leader=running.leader(partition=1))
        await finishes(running.engine.flush(), "the flush")
        assert running.leader().committed_end == 2


async def test_a_commit_whose_answer_is_still_on_its_way_is_not_taken_for_another_agents() -> None:
    """The store was away for so long that the lease ran out, and swallowed two answers: that of a commit, which is
    being repeated, and that of the first try to take the lease again."""
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent())
        leader = running.leader()
        shared.metadata.fail("commit_segments", times=6, lost_answer=True)
        flushing = asyncio.ensure_future(running.engine.flush())
        await until(lambda: "commit_segments" in shared.metadata.calls, "the commit is under way")
        while (await shared.metadata.load_partitions([leader.partition]))[0].next_offset == 0:
            pass
        shared.clock.pass_time(2 * TTL_MS)
        shared.metadata.fail("acquire_leases", lost_answer=True)
        with suppress(MetadataUnavailable):
            await running.engine.leadership.renew()
        await running.engine.leadership.renew()

        assert not leader.removed
        await finishes(flushing, "the flush")
        await running.produce(sent())


async def test_a_leader_that_is_given_up_writes_no_more_though_its_lease_is_lost_and_taken_again() -> None:
    """Else what it acknowledged after everything was settled would be in no segment when the next leader begins."""
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent())
        leader = running.leader()
        given_up = leader.give_up_writing()
        shared.clock.pass_time(2 * TTL_MS)
        await running.engine.leadership.renew()

        assert leader.epoch == 2
        with pytest.raises(NotLeader):
            leader.append(sent(), header_of(sent()), Ack())

        running.engine.leadership.doubt(leader, given_up)
        await running.engine.leadership.renew()
        await running.produce(sent())
        assert (leader.epoch, leader.high_watermark) == (3, 2)


async def test_a_stop_waits_for_a_lease_that_is_being_taken_again_and_releases_that_one() -> None:
    """Released with the epoch that it had before, it would stay this agent's, and wait for it for ever."""
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent())
        await running.engine.flush()
        shared.clock.pass_time(2 * TTL_MS)
        granted, go_on = asyncio.Event(), asyncio.Event()
        acquire = shared.metadata.acquire_leases

        async def slowly(*arguments: Any) -> Any:
            leases = await acquire(*arguments)
            granted.set()
            await go_on.wait()
            return leases

        shared.metadata.acquire_leases = slowly  # type: ignore[method-assign]
        renewing = asyncio.create_task(running.engine.leadership.renew())
        await granted.wait()
        ending = asyncio.create_task(running.engine.leadership.end_renewals())
        await until(lambda: running.engine.leadership._one_retaking._waiters, "it waits for the taking")
        go_on.set()
        await finishes(ending, "the end of renewals")
        await renewing
        running.leader().give_up_writing()
        await running.engine.leadership.release([running.leader()], drained=True)

        (placement,) = await shared.metadata.list_placements()
        assert (placement.epoch, placement.lease_left_ms <= 0, placement.wal_agent_id) == (2, True, "")
        await running.engine.leadership.renew()
        (placement,) = await shared.metadata.list_placements()
        assert placement.lease_left_ms <= 0, "nothing is renewed any more"


async def test_expired_leases_are_renewed_by_the_task_that_keeps_them() -> None:
    async with bench() as shared, shared.engine(lease_ttl=2_000, lease_renewal=20) as running:
        await running.create()
        running.engine.leadership.expire()
        with pytest.raises(NotLeader):
            running.append(sent())

        await until(lambda: running.leader().writable_until_ms > 0, "the lease is renewed")

        await running.produce(sent())


async def test_a_wall_clock_that_jumps_costs_an_epoch_and_no_record() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent())
        for jump_ms in (3_600_000, -7_200_000, 3_600_000):
            shared.clock.jump(jump_ms)
            await running.produce(sent())
            await running.engine.leadership.renew()
            await running.produce(sent())
        await finishes(running.engine.flush(), "the flush")

        assert running.leader().committed_end == 7


async def test_nothing_is_appended_while_a_lease_is_taken_again() -> None:
    """The holder's own clock would let it write on while the store, whose clock jumped, makes it take the lease again.
    Where an epoch starts must be the same in memory and in the store, or a consumer would see a truncation."""
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent())
        leader = running.leader()
        begin_epochs = shared.metadata.begin_epochs

        async def appends_meanwhile(agent_id: str, starts: Sequence[EpochStart]) -> list[bool]:
            noted: list[bool] = await begin_epochs(agent_id, starts)
            with pytest.raises(NotLeader):
                await running.produce(sent())
            return noted

        shared.clock.jump(3_600_000)
        running.engine.leadership._metadata = _With(shared.metadata, begin_epochs=appends_meanwhile)  # type: ignore[assignment]
        await running.engine.leadership.renew()
        (row,) = await shared.metadata.load_partitions([leader.partition])

        assert list(row.epochs) == leader.epochs


class _With:
    """A store with some methods of its own."""

    def __init__(self, store: object, **methods: object) -> None:
        self._store = store
        self._methods = methods

    def __getattr__(self, name: str) -> object:
        return self._methods.get(name) or getattr(self._store, name)


async def test_a_renewal_does_not_let_a_leader_write_before_its_epoch_has_begun() -> None:
    """The store does not know yet on whose disk the records would be, nor where the epoch starts."""
    async with bench() as shared, shared.engine() as running:
        shared.metadata.fail("begin_epochs")
        with suppress(MetadataUnavailable):
            await running.create()

        await running.engine.leadership.renew()

        assert list(running.engine.held) == []
        with pytest.raises(NotLeader):
            running.append(sent())
        await running.place()
        await running.produce(sent())
        assert running.leader().epochs == [(1, 0)]


def ahead_while_an_epoch_begins(shared: Bench) -> Any:
    """A store whose clock is ahead for that one call, as where another server takes over whose clock is behind: the
    lease has run out, and later has not."""

    async def begin_epochs(agent_id: str, starts: Sequence[EpochStart]) -> list[bool]:
        shared.clock.jump(2 * TTL_MS)
        noted: list[bool] = await shared.metadata.begin_epochs(agent_id, starts)
        shared.clock.jump(-2 * TTL_MS)
        return noted

    return _With(shared.metadata, begin_epochs=begin_epochs)


async def test_nothing_is_written_in_an_epoch_that_the_store_passed_over(tmp_path: Path) -> None:
    """It does not know on whose disk the records are, and would let another lead without them."""
    async with bench(tmp_path / "a") as shared:
        async with shared.engine("a") as running:
            running.engine.leadership._metadata = ahead_while_an_epoch_begins(shared)
            await running.create()
            assert list(running.engine.held) == []
            with pytest.raises(NotLeader):
                running.append(sent())

            running.engine.leadership._metadata = shared.metadata
            await running.place()
            await running.produce(sent())
            assert running.leader().epochs == [(1, 0)]
        shared.clock.pass_time(2 * TTL_MS)
        shared.wal_directory = tmp_path / "b"
        async with shared.engine("b") as other:
            assert list(other.engine.held) == []


async def test_a_leader_does_not_go_on_in_an_epoch_that_the_store_passed_over() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent())
        leader = running.leader()
        shared.clock.pass_time(2 * TTL_MS)
        running.engine.leadership._metadata = ahead_while_an_epoch_begins(shared)
        await running.engine.leadership.renew()
        with pytest.raises(NotLeader):
            running.append(sent())

        running.engine.leadership._metadata = shared.metadata
        await running.engine.leadership.renew()
        await running.produce(sent())

        (row,) = await shared.metadata.load_partitions([leader.partition])
        assert list(row.epochs) == leader.epochs == [(1, 0), (3, 1)]


@pytest.mark.parametrize("step", ["load_partitions", "load_segments", "load_wal_ranges", "begin_epochs"])
async def test_partitions_whose_taking_up_broke_off_are_led_at_the_next_try(step: str) -> None:
    async with bench() as shared, shared.engine() as running:
        shared.metadata.fail(step)
        with suppress(MetadataUnavailable):
            await running.create(partitions=3)

        await running.place()

        assert len(running.engine.held) == 3
        for partition in range(3):
            await running.produce(sent(), leader=running.leader(partition=partition))


async def test_a_topic_deleted_while_its_lease_is_taken_again_is_forgotten() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create()
        leader = running.leader()
        begin_epochs = shared.metadata.begin_epochs

        async def deleted_meanwhile(agent_id: str, starts: Sequence[EpochStart]) -> list[bool]:
            noted: list[bool] = await begin_epochs(agent_id, starts)
            await running.topics.delete(topic)
            return noted

        shared.clock.pass_time(2 * TTL_MS)
        running.engine.leadership._metadata = _With(shared.metadata, begin_epochs=deleted_meanwhile)  # type: ignore[assignment]
        await running.engine.leadership.renew()

        assert leader.removed
        assert leader.partition not in running.engine.leadership._leases
        with pytest.raises(NotLeader):
            leader.append(sent(), header_of(sent()), Ack())


async def test_a_deleted_topics_leader_is_gone_from_every_place() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create()
        leader = running.leader()

        await running.topics.delete(topic)

        assert leader.removed
        assert dict(running.engine.leadership.leaders) == {}
        with pytest.raises(NotFound):
            running.leader()


async def test_a_changed_config_reaches_the_leaders() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create()

        await running.topics.configure(topic, {"message.timestamp.type": "LogAppendTime"})
        batch = sent()
        appended = running.leader().append(batch, header_of(batch), Ack())

        assert running.leader().config.stamps_append_time
        assert appended[1] > 0
