"""The object WAL: nothing is acknowledged before it is committed, in order, whatever fails; one copy of each object."""

from __future__ import annotations

import asyncio

import pytest

from log_parts.engines import finishes
from log_parts.object_wals import AGENT, GRACE_MS, quiet, running, stepped
from log_parts.waiting import until
from streamhouse.format.object_keys import parse_wal_object_key
from streamhouse.format.wal_object import decode_wal_object
from streamhouse.model.errors import CorruptData, NotLeader, StorageUnavailable
from streamhouse.objects.faulty import Moment, Operation


async def test_batches_of_several_partitions_share_an_object_and_are_acknowledged() -> None:
    async with running() as bench:
        owners = [bench.owner(partition) for partition in range(3)]
        for owner in owners * 2:
            owner.append(bench.wal)

        await bench.until_durable(*owners)

        assert await bench.object_sizes() == [6]
        for owner in owners:
            assert owner.heard == [2]
            assert await bench.replayed(owner) == owner.appended
        assert bench.wal.keys_under_way == set()


async def test_nothing_is_acknowledged_before_the_metadata_store_has_committed_it() -> None:
    async with running() as bench:
        owner = bench.owner()
        bench.store.gate.clear()
        owner.append(bench.wal)
        await until(lambda: bench.store.transactions, "the object is stored and its commit under way")
        await quiet()
        assert await bench.keys() != []
        assert owner.heard == []

        bench.store.gate.set()

        await bench.until_durable(owner)


async def test_nothing_is_committed_before_the_object_store_has_it() -> None:
    async with running() as bench:
        owner = bench.owner()
        hold = bench.objects.hold(Operation.CREATE)
        owner.append(bench.wal)
        await until(hold.reached.is_set, "the upload is under way")
        await quiet()
        assert (bench.store.transactions, owner.heard) == ([], [])

        hold.release()

        await bench.until_durable(owner)


# --- being late ---


async def test_what_is_stored_in_time_is_never_overdue() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner()
        assert bench.wal.overdue_ms() == 0
        owner.append(bench.wal)
        await clock.pass_time(10_000)
        assert (owner.heard, bench.wal.overdue_ms()) == ([1], 0)


async def test_what_is_not_stored_is_overdue_until_something_is() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner()
        bench.objects.fail(Operation.CREATE, times=None)
        owner.append(bench.wal)
        await clock.pass_time(4_010)
        assert bench.wal.overdue_ms() == 4_000

        bench.objects.heal()
        await clock.pass_time(10_000)

        assert (owner.durable_end, bench.wal.overdue_ms()) == (1, 0)


async def test_a_large_object_has_the_time_that_it_takes() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner()
        bench.objects.fail(Operation.CREATE, times=None)
        owner.append(bench.wal, 2 * 2**20)
        await clock.pass_time(1_000)
        assert bench.wal.overdue_ms() == 0
        await clock.pass_time(2_000)
        assert 1_900 <= bench.wal.overdue_ms() <= 2_000


async def test_what_nobody_wants_any_more_is_not_overdue() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner()
        bench.objects.fail(Operation.CREATE, times=None)
        owner.append(bench.wal)
        await clock.pass_time(4_000)
        bench.wal.forget(owner)
        assert bench.wal.overdue_ms() == 0


# --- the window ---


async def test_an_idle_wal_writes_nothing_and_has_no_timer() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner()
        await clock.pass_time(1_000)
        owner.append(bench.wal)
        await clock.pass_time(10)
        assert owner.heard == [1]
        slept = len(clock.slept_ms)

        await clock.pass_time(1_000)

        assert len(clock.slept_ms) == slept
        assert (clock.sleepers, len(bench.wal._tasks)) == (0, 0)
        assert len(await bench.keys()) == 1


async def test_an_idle_wal_flushes_ten_milliseconds_after_the_first_batch() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner()
        owner.append(bench.wal)
        await clock.pass_time(9)
        owner.append(bench.wal)
        assert await bench.keys() == []

        await clock.pass_time(1)

        assert owner.heard == [2]
        assert await bench.object_sizes() == [2]


async def test_a_busy_wal_flushes_every_quarter_of_a_second() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner()
        hold = bench.objects.hold(Operation.CREATE)
        owner.append(bench.wal)
        await clock.pass_time(10)
        await until(hold.reached.is_set, "the upload is under way")
        for _ in range(249):
            owner.append(bench.wal)
            await clock.pass_time(1)
        assert bench.objects.calls[Operation.CREATE] == 1

        await clock.pass_time(1)

        assert bench.objects.calls[Operation.CREATE] == 2
        owner.append(bench.wal)
        await clock.pass_time(249)
        assert bench.objects.calls[Operation.CREATE] == 2
        await clock.pass_time(1)
        assert bench.objects.calls[Operation.CREATE] == 3
        hold.release()
        await bench.until_durable(owner)
        assert await bench.object_sizes() == [1, 249, 1]


async def test_while_batches_keep_coming_the_object_waits_for_more() -> None:
    """A PUT costs money: where waiting gathers batches it goes on, however fast the store is."""
    async with stepped() as (bench, clock):
        owner = bench.owner()
        owner.append(bench.wal)
        await clock.pass_time(10)
        await bench.until_durable(owner)
        for _ in range(249):
            owner.append(bench.wal)
            await clock.pass_time(1)
        assert await bench.object_sizes() == [1]

        await clock.pass_time(1)

        await bench.until_durable(owner)
        assert await bench.object_sizes() == [1, 249]


async def test_when_no_more_batches_come_the_object_waits_no_longer() -> None:
    """Clients that wait for answers have sent all that they may."""
    async with stepped() as (bench, clock):
        owner = bench.owner()
        owner.append(bench.wal)
        await clock.pass_time(10)
        await bench.until_durable(owner)
        for _ in range(40):
            owner.append(bench.wal)
            await clock.pass_time(1)
        await clock.pass_time(8)
        assert await bench.object_sizes() == [1]

        await clock.pass_time(1)

        await bench.until_durable(owner)
        assert await bench.object_sizes() == [1, 40]


async def test_a_batch_after_a_long_upload_still_waits_for_those_right_behind_it() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner()
        bench.objects.hold(Operation.CREATE)
        owner.append(bench.wal)
        await clock.pass_time(1_000)

        owner.append(bench.wal)
        await clock.pass_time(9)
        assert bench.objects.calls[Operation.CREATE] == 1
        await clock.pass_time(1)

        assert bench.objects.calls[Operation.CREATE] == 2
        bench.objects.heal()
        await bench.until_durable(owner)


async def test_a_busy_wal_that_becomes_idle_waits_no_longer_than_an_idle_one() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner()
        hold = bench.objects.hold(Operation.CREATE)
        owner.append(bench.wal)
        await clock.pass_time(10)
        owner.append(bench.wal)
        await clock.pass_time(20)
        assert bench.objects.calls[Operation.CREATE] == 1

        hold.release()
        await quiet()

        assert owner.heard == [1, 2]
        assert clock.sleepers == 0


async def test_a_full_object_does_not_wait() -> None:
    async with stepped(object_bytes=1_000) as (bench, _):
        owner = bench.owner()
        hold = bench.objects.hold(Operation.CREATE)
        for _ in range(4):
            owner.append(bench.wal, 500)
        await quiet()

        assert bench.objects.calls[Operation.CREATE] == 2
        hold.release()
        await bench.until_durable(owner)
        assert await bench.object_sizes() == [2, 2]


async def test_a_kick_ends_the_window() -> None:
    async with stepped() as (bench, _):
        owner = bench.owner()
        owner.append(bench.wal)

        bench.wal.kick()
        await quiet()

        assert owner.heard == [1]
        bench.wal.kick()
        assert bench.objects.calls[Operation.CREATE] == 1


async def test_no_more_objects_are_in_flight_than_allowed_and_the_rest_waits_in_objects_of_the_right_size() -> None:
    async with stepped(object_bytes=1_000, max_in_flight=2) as (bench, clock):
        owner = bench.owner()
        hold = bench.objects.hold(Operation.CREATE)
        for _ in range(9):
            owner.append(bench.wal, 500)
        await clock.pass_time(1_000)
        bench.wal.kick()
        await quiet()
        assert bench.objects.calls[Operation.CREATE] == 2
        assert clock.sleepers == 0

        hold.release()
        await quiet()
        await clock.pass_time(250)

        assert owner.durable_end == 9
        assert await bench.object_sizes() == [2, 2, 2, 2, 1]


# --- order ---


async def test_uploads_finish_in_any_order_and_commits_are_made_in_the_order_of_sealing() -> None:
    async with stepped(object_bytes=500) as (bench, _):
        owner = bench.owner()
        hold = bench.objects.hold(Operation.CREATE, times=1)
        for _ in range(3):
            owner.append(bench.wal, 500)
        await quiet()
        assert len(await bench.keys()) == 2
        assert (bench.store.transactions, owner.heard) == ([], [])

        hold.release()
        await quiet()

        assert owner.heard == [1, 2, 3]
        assert bench.store.transactions == [await bench.keys()], "what is ready together is one transaction"
        assert await bench.replayed(owner) == owner.appended


async def test_an_object_whose_upload_is_not_finished_is_not_committed_with_those_before_it() -> None:
    async with stepped(object_bytes=500) as (bench, _):
        owner = bench.owner()
        owner.append(bench.wal, 500)
        hold = bench.objects.hold(Operation.CREATE, matches=lambda key: key == max(bench.wal.keys_under_way))
        owner.append(bench.wal, 500)
        await until(hold.reached.is_set, "the second upload is under way")
        await quiet()
        assert owner.heard == [1]
        assert bench.store.transactions == [await bench.keys()]

        hold.release()
        await quiet()

        assert owner.heard == [1, 2]


async def test_while_a_commit_runs_the_next_ones_gather() -> None:
    async with stepped(object_bytes=500) as (bench, _):
        owner = bench.owner()
        bench.store.gate.clear()
        for _ in range(3):
            owner.append(bench.wal, 500)
            await quiet()

        bench.store.gate.set()
        await quiet()

        assert [len(keys) for keys in bench.store.transactions] == [1, 2]
        assert owner.heard == [1, 2, 3]


async def test_keys_sort_in_the_order_of_sealing_also_when_the_wall_clock_is_set_back() -> None:
    async with stepped(object_bytes=500) as (bench, clock):
        owner = bench.owner()
        for now_ms in (2_000_000, 2_000_000, 1_000_000):
            clock.set_wall_clock(now_ms)
            owner.append(bench.wal, 500)
            await quiet()

        committed = [key for keys in bench.store.transactions for key in keys]
        assert committed == await bench.keys()
        parsed = [parse_wal_object_key(key) for key in committed]
        assert [key and (key.agent_id, key.sealed_at_ms) for key in parsed] == [
            (AGENT, 2_000_000),
            (AGENT, 2_000_001),
            (AGENT, 2_000_002),
        ]


async def test_a_new_epoch_begins_a_new_range() -> None:
    async with stepped() as (bench, clock):
        owner, other = bench.owner(0, epoch=3), bench.owner(1)
        owner.append(bench.wal)
        owner.append(bench.wal)
        other.append(bench.wal)
        owner.epoch = 4
        owner.append(bench.wal)
        bench.store.grant(owner.partition, AGENT, 4)
        await clock.pass_time(10)

        (content,) = [await bench.inner.get(key) for key in await bench.keys()]
        assert [entry[:4] for entry, _ in decode_wal_object(content)] == [
            (owner.partition, 3, 0, 2),
            (other.partition, other.epoch, 0, 1),
            (owner.partition, 4, 2, 3),
        ]
        # The metadata store knows epoch 4 only, so the first range is refused, and what follows it with it.
        assert other.heard == [1]
        assert owner.durable_end == 0
        assert bench.fenced == [owner]


async def test_both_ranges_of_an_owner_whose_epoch_has_changed_are_committed_while_their_leases_live() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner(epoch=3)
        owner.append(bench.wal)
        await clock.pass_time(10)
        bench.store.grant(owner.partition, AGENT, 4)
        owner.epoch = 4
        owner.append(bench.wal)
        await clock.pass_time(10)

        assert owner.heard == [1, 2]
        assert [(item.epoch, item.base_offset, item.end_offset) for item in bench.store.ranges] == [
            (3, 0, 1),
            (4, 1, 2),
        ]
        assert await bench.replayed(owner) == owner.appended


# --- failures ---


@pytest.mark.parametrize("moment", list(Moment))
async def test_an_upload_that_fails_is_tried_again_and_leaves_one_object(moment: Moment) -> None:
    async with running() as bench:
        owner = bench.owner()
        bench.objects.fail(Operation.CREATE, times=3, moment=moment)
        owner.append(bench.wal)

        await bench.until_durable(owner)

        assert len(await bench.keys()) == 1
        assert await bench.replayed(owner) == owner.appended


async def test_a_lost_answer_is_recognised_although_the_object_cannot_be_read_at_once() -> None:
    async with running() as bench:
        owner = bench.owner()
        bench.objects.fail(Operation.CREATE, moment=Moment.AFTER)
        bench.objects.fail(Operation.READ, times=2)
        owner.append(bench.wal)

        await bench.until_durable(owner)

        assert len(await bench.keys()) == 1


@pytest.mark.parametrize("lost_answer", [False, True])
async def test_a_commit_that_fails_is_tried_again_and_made_once(lost_answer: bool) -> None:
    async with running() as bench:
        owner = bench.owner()
        bench.store.fail(times=3, lost_answer=lost_answer)
        owner.append(bench.wal)

        await bench.until_durable(owner)

        assert len(bench.store.transactions) == 4
        assert len(bench.store.ranges) == 1
        assert owner.heard == [1]


async def test_an_object_under_our_key_that_is_not_ours_fences_its_owners() -> None:
    async with running() as bench:
        owner = bench.owner()
        hold = bench.objects.hold(Operation.CREATE)
        owner.append(bench.wal)
        await until(hold.reached.is_set, "the upload is under way")
        (key,) = bench.wal.keys_under_way
        await bench.inner.create(key, [b"something else"])
        hold.release()

        await until(lambda: owner.heard, "the owner hears of it")

        assert [type(problem) for problem in owner.problems] == [NotLeader]
        assert bench.fenced == [owner]
        assert bench.store.transactions == []
        assert bench.wal.keys_under_way == set()


async def test_a_store_that_is_broken_fences_the_owners_instead_of_leaving_them_waiting() -> None:
    async with running() as bench:
        owners = [bench.owner(0), bench.owner(1)]
        bench.store.fail(error=CorruptData("the database is damaged"))
        for owner in owners:
            owner.append(bench.wal)

        await until(lambda: all(owner.heard for owner in owners), "the owners hear of it")

        assert [type(owner.heard[0]) for owner in owners] == [NotLeader, NotLeader]
        assert bench.fenced == owners
        later = bench.owner(2)
        later.append(bench.wal)
        await bench.until_durable(later)


async def test_an_object_that_waited_too_long_for_its_commit_is_stored_anew() -> None:
    """Others may take it for garbage once it is as old as the grace period."""
    async with stepped() as (bench, clock):
        owner = bench.owner()
        bench.store.fail(times=1)
        owner.append(bench.wal)
        await clock.pass_time(10)
        (old,) = await bench.keys()
        assert bench.wal.keys_under_way == {old}
        clock.advance(GRACE_MS // 2 + 1)

        await clock.pass_time(50)

        assert owner.heard == [1]
        _, new = await bench.keys()
        assert bench.store.transactions == [[old], [new]]
        await bench.inner.delete([old])
        assert await bench.replayed(owner) == owner.appended


async def test_a_commit_whose_answer_was_lost_counts_although_the_object_was_stored_anew() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner()
        bench.store.fail(lost_answer=True)
        owner.append(bench.wal)
        await clock.pass_time(10)
        clock.advance(GRACE_MS // 2 + 1)

        await clock.pass_time(50)

        assert owner.heard == [1]
        old, new = await bench.keys()
        assert [item.object_key for item in bench.store.ranges] == [old]
        assert bench.wal.keys_under_way == set()
        assert new != old


# --- fencing and forgetting ---


async def test_a_fenced_owner_hears_of_it_once_and_the_others_of_its_object_go_on() -> None:
    async with stepped(object_bytes=500) as (bench, _):
        deposed, kept = bench.owner(0), bench.owner(1)
        bench.store.gate.clear()
        for _ in range(3):
            deposed.append(bench.wal, 250)
            kept.append(bench.wal, 250)
        deposed.append(bench.wal)
        bench.store.grant(deposed.partition, "agent-2", deposed.epoch + 1)
        await quiet()

        bench.store.gate.set()
        bench.wal.kick()
        await quiet()

        assert kept.heard == [1, 2, 3]
        assert [type(problem) for problem in deposed.heard] == [NotLeader]
        assert bench.fenced == [deposed]
        assert bench.store.durable_ends[deposed.partition] == 0
        assert await bench.replayed(kept) == kept.appended


async def test_what_a_fenced_owner_still_appends_is_refused_and_not_stored() -> None:
    async with stepped() as (bench, clock):
        deposed = bench.owner()
        deposed.append(bench.wal)
        bench.store.grant(deposed.partition, "agent-2", deposed.epoch + 1)
        await clock.pass_time(10)
        assert len(deposed.problems) == 1

        deposed.append(bench.wal)
        await clock.pass_time(10)

        assert [type(problem) for problem in deposed.problems] == [NotLeader, NotLeader]
        assert bench.fenced == [deposed]
        assert len(await bench.keys()) == 1
        assert clock.sleepers == 0


async def test_an_owner_may_be_forgotten_while_it_is_told_that_it_was_fenced() -> None:
    async with stepped() as (bench, clock):
        deposed, kept = bench.owner(0), bench.owner(1)
        bench.wal._report_fenced = lambda owner, problem: bench.wal.forget(owner)
        deposed.append(bench.wal)
        kept.append(bench.wal)
        bench.store.grant(deposed.partition, "agent-2", deposed.epoch + 1)

        await clock.pass_time(10)

        assert (kept.heard, len(deposed.problems)) == ([1], 1)


async def test_what_was_gathered_of_a_forgotten_owner_is_not_stored() -> None:
    async with stepped() as (bench, clock):
        forgotten, kept = bench.owner(0), bench.owner(1)
        forgotten.append(bench.wal)
        kept.append(bench.wal)

        bench.wal.forget(forgotten)
        await clock.pass_time(10)

        assert (forgotten.heard, kept.heard) == ([], [1])
        assert await bench.object_sizes() == [1]


async def test_with_all_its_owners_forgotten_the_wal_is_idle() -> None:
    async with stepped() as (bench, clock):
        owner = bench.owner()
        owner.append(bench.wal)

        bench.wal.forget(owner)
        await quiet()

        assert len(bench.wal._tasks) == 0
        await clock.pass_time(10)
        assert await bench.keys() == []


async def test_a_forgotten_owner_hears_nothing_of_what_was_in_flight() -> None:
    async with stepped() as (bench, clock):
        forgotten, kept = bench.owner(0), bench.owner(1)
        hold = bench.objects.hold(Operation.CREATE)
        forgotten.append(bench.wal)
        kept.append(bench.wal)
        await clock.pass_time(10)

        bench.wal.forget(forgotten)
        hold.release()
        await quiet()

        assert (forgotten.heard, kept.heard) == ([], [1])


async def test_an_upload_that_nobody_waits_for_is_not_tried_for_ever() -> None:
    async with running() as bench:
        owner = bench.owner()
        bench.objects.fail(Operation.CREATE, times=None)
        owner.append(bench.wal)
        await until(lambda: bench.objects.calls[Operation.CREATE] > 2, "it is tried again")

        bench.wal.forget(owner)

        await until(lambda: not len(bench.wal._tasks), "it is given up")
        assert (owner.heard, bench.store.transactions) == ([], [])
        assert bench.wal.keys_under_way == set()


# --- the end ---


async def test_closing_finishes_what_was_appended_without_waiting_for_the_window() -> None:
    async with stepped(object_bytes=500, max_in_flight=1, close_timeout_ms=10_000) as (bench, _):
        owner = bench.owner()
        for _ in range(5):
            owner.append(bench.wal, 300)

        await finishes(bench.wal.close(), "close")

        assert owner.heard[-1] == 5
        assert await bench.replayed(owner) == owner.appended


async def test_a_closed_wal_refuses_appends() -> None:
    async with stepped() as (bench, _):
        bench.wal.check_writable()
        await bench.wal.close()

        with pytest.raises(StorageUnavailable):
            bench.wal.check_writable()


@pytest.mark.parametrize("dead", ["objects", "metadata", "silent"])
async def test_closing_ends_although_a_store_is_dead_and_nothing_unsure_is_acknowledged(dead: str) -> None:
    async with stepped(object_bytes=500, max_in_flight=1) as (bench, _):
        owner = bench.owner()
        if dead == "objects":
            bench.objects.fail(Operation.CREATE, times=None)
        elif dead == "metadata":
            bench.store.fail(times=1_000)
        else:
            bench.objects.hold(Operation.CREATE)
        for _ in range(3):
            owner.append(bench.wal, 500)
        await quiet()

        await finishes(bench.wal.close(), "close")

        assert [type(problem) for problem in owner.heard] == [StorageUnavailable]
        assert len(bench.wal._tasks) == 0
        assert bench.fenced == []


async def test_closing_that_is_cancelled_leaves_no_task() -> None:
    async with stepped(close_timeout_ms=60_000) as (bench, _):
        owner = bench.owner()
        bench.objects.hold(Operation.CREATE)
        owner.append(bench.wal)
        closing = asyncio.ensure_future(bench.wal.close())
        await quiet()

        closing.cancel()
        await asyncio.wait([closing])

        assert closing.cancelled()
        assert len(bench.wal._tasks) == 0


# --- what ends as nothing should ---


async def test_an_upload_that_breaks_off_without_a_word_leaves_nobody_waiting() -> None:
    """A task that ends by a stray cancellation is silent. What is behind it would wait for its turn for ever."""
    async with running() as bench:
        first, second = bench.owner(0), bench.owner(1)
        hold = bench.objects.hold(Operation.CREATE)
        first.append(bench.wal)
        await until(hold.reached.is_set, "the upload is under way")
        (upload,) = (task for task in asyncio.all_tasks() if task.get_name() == "object-wal:upload")
        upload.cancel()
        await until(lambda: first.problems, "the owner is told")
        hold.release()
        second.append(bench.wal)

        await bench.until_durable(second)
        assert bench.fenced == [first]


async def test_a_commit_that_breaks_off_without_a_word_leaves_nobody_waiting() -> None:
    async with running() as bench:
        first, second = bench.owner(0), bench.owner(1)
        bench.store.gate.clear()
        first.append(bench.wal)
        await until(lambda: bench.store.transactions, "the commit is under way")
        (commit,) = (task for task in asyncio.all_tasks() if task.get_name() == "object-wal:commit")
        commit.cancel()
        await until(lambda: first.problems, "the owner is told")
        bench.store.gate.set()
        second.append(bench.wal)

        await bench.until_durable(second)
        assert bench.fenced == [first]


async def test_an_owner_that_fails_when_it_is_told_keeps_nobody_else_from_being_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running() as bench:
        broken, other = bench.owner(0), bench.owner(1)

        def fail(end_offset: int) -> None:
            raise AssertionError("it cannot even be told")

        monkeypatch.setattr(broken, "durable", fail)
        broken.append(bench.wal)
        other.append(bench.wal)

        await until(lambda: other.heard, "the other one is told")
        await until(lambda: broken.problems, "and this one, that it must begin again")
