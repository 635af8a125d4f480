"""A leader that cannot make anything durable gives its partition up: nothing is lost, and nothing comes late."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from log_parts.batches import sent
from log_parts.engines import finishes
from log_parts.leaders import Ack
from log_parts.waiting import until
from streamhouse.model.errors import MetadataUnavailable, NotLeader, OutcomeUnknown
from streamhouse.objects.faulty import Operation
from unit.log.test_handover import offsets, placement, two_engines

PRODUCER = 11


def is_wal_object(key: str) -> bool:
    return key.startswith("wal/")


def is_unknown(ack: Ack) -> bool:
    (heard,) = ack.heard
    return isinstance(heard, OutcomeUnknown)


async def test_the_next_leader_has_what_was_acknowledged_and_the_rest_is_unknown(tmp_path: Path) -> None:
    async with two_engines(tmp_path, durability="object") as (shared, old, new):
        await old.produce(sent(), sent())
        hold = shared.objects.hold(Operation.CREATE, matches=is_wal_object)
        leader, waiting = old.leader(), old.append(sent(fill=b"waiting"))
        await hold.reached.wait()

        await old.engine.let_go([leader.partition])

        assert is_unknown(waiting)
        assert leader.removed
        with pytest.raises(NotLeader):
            old.append(sent(), leader)
        found = await placement(shared)
        assert found.lease_left_ms <= 0
        shared.objects.heal()
        await new.place()
        await new.produce(sent())
        assert await offsets(new) == [0, 1, 2]


async def test_an_object_that_arrives_after_that_adds_nothing(tmp_path: Path) -> None:
    async with two_engines(tmp_path, durability="object") as (shared, old, new):
        hold = shared.objects.hold(Operation.CREATE, matches=is_wal_object, times=1)
        leader = old.leader()
        old.append(sent(fill=b"late"))
        await hold.reached.wait()
        await old.engine.let_go([leader.partition])
        await new.place()
        await new.produce(sent(fill=b"next"))

        hold.release()
        await until(lambda: not old.engine.wals.object.keys_under_way, "the late object is stored and settled")

        assert await offsets(new) == [0]
        content = await new.read()
        assert b"next" in content
        assert b"late" not in content


async def test_what_a_producer_sends_again_is_stored_once_whatever_became_of_the_first(tmp_path: Path) -> None:
    """The commit is on its way when the partition is given up: it counts, and the repeat is recognised."""
    async with two_engines(tmp_path, durability="object") as (shared, old, new):
        leader = old.leader()
        await old.produce(sent(producer=(PRODUCER, 0, 0)))
        shared.metadata.fail("commit_wal_objects", lost_answer=True)
        waiting = old.append(sent(producer=(PRODUCER, 0, 1)))
        await until(lambda: shared.metadata.calls.count("commit_wal_objects") == 2, "a commit whose answer is lost")

        await old.engine.let_go([leader.partition])
        await new.place()

        assert is_unknown(waiting)
        await new.produce(sent(producer=(PRODUCER, 0, 1)), sent(producer=(PRODUCER, 0, 2)))
        assert await offsets(new) == [0, 1, 2]


async def test_what_is_on_the_agents_own_disk_is_not_let_go(tmp_path: Path) -> None:
    async with two_engines(tmp_path, durability="wal") as (_, old, _):
        await old.engine.let_go([old.leader().partition])

        await old.produce(sent())
        assert await offsets(old) == [0]


async def test_what_could_not_be_released_is_doubtful_and_taken_up_anew(tmp_path: Path) -> None:
    async with two_engines(tmp_path, durability="object") as (shared, old, _):
        leader = old.leader()
        await old.produce(sent())
        shared.metadata.fail("release_leases", lost_answer=True)

        with pytest.raises(MetadataUnavailable):
            await old.engine.let_go([leader.partition])
        with pytest.raises(NotLeader):
            old.append(sent(), leader)
        await old.engine.leadership.renew()
        await old.place()

        assert old.leader() is not leader
        await old.produce(sent())
        assert await offsets(old) == [0, 1]


async def test_letting_go_does_not_wait_for_the_store(tmp_path: Path) -> None:
    async with two_engines(tmp_path, durability="object") as (shared, old, _):
        await old.produce(sent())
        hold = shared.objects.hold(Operation.CREATE)
        acks = [old.append(sent()) for _ in range(3)]
        await hold.reached.wait()

        await finishes(old.engine.let_go([old.leader().partition]), "the letting go")

        assert all(is_unknown(ack) for ack in acks)
        await asyncio.sleep(0)
        assert list(old.engine.held) == []
