"""Replies in a storm: every produce is answered in the time that it gives the node, or its connection ends; and one
that would wait for ever is answered once the storm is over, whatever happened to leases, leaders, stores, sockets."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest

from faults.sweep import sweep_seed, sweep_size
from sim.cluster import node as sim_node
from sim.cluster.clients import Producer
from sim.cluster.simulation import Outcome, Simulation, Violation
from sim.replies import door
from sim.replies.clients import NEVER_MS, Client, ConnectedProducer, WideProducer
from sim.replies.door import DoorAgent
from streamhouse.log.leader import NOBODY, PartitionLeader
from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka import session

SHARDS = 2
SEEDS = 100
SEEDS_TO_FIND_A_BUG = 60
HALF_OPEN_MS = {"database": 12_000, "bucket": 30_000}


@pytest.fixture(autouse=True)
def _cheap_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class ReplySimulation(Simulation):
    """The cluster's simulation with clients that speak Kafka. In every second seed connections to the services are half
    open: who is cut off waits for as long as the product lets it. In every fifth, buffers hold next to nothing."""

    agent_type = DoorAgent
    healing_seconds = 200.0

    def __init__(self, seed: int) -> None:
        self.keeps_time = seed % 5 != 0
        super().__init__(seed)
        if seed % 2:
            self.network.timeout_ms = HALF_OPEN_MS

    def _make_producers(self) -> list[Producer]:
        self.topic_names = {partition: record.topic for partition, record in self.database.partitions.items()}
        self.callers = [Client(self, self.random.choice((0, 1_500, 3_000))), Client(self, NEVER_MS)]
        pick = self.random.choice
        idempotent = [
            ConnectedProducer(self, partition, number, pick(self.callers))
            for number, partition in enumerate(self.partitions, start=1)
        ]
        plain = [ConnectedProducer(self, pick(self.partitions), None, pick(self.callers)) for _ in range(3)]
        first, *_, last = self.partitions
        return [*idempotent, *plain, WideProducer(self, (first, last), self.callers[0])]

    def _storm(self) -> None:
        for client in self.callers:
            self.loop.start(client.ask_around(), self.loop.nobody)
        super()._storm()

    def _illness(self) -> list[str]:
        waiting = [request for client in self.callers for end in client.ends for request in end.unanswered]
        return super()._illness() + [f"{request} has no answer" for request in waiting]

    def run(self) -> Outcome:
        settings = sim_node.SETTINGS
        if not self.keeps_time:
            settings = replace(settings, partition_buffer_bytes=400, buffer_bytes=900)
        with (
            patch.object(session, "stopwatch_s", self.loop.time),
            patch.object(sim_node, "SETTINGS", settings),
            patch.object(door, "SETTINGS", settings),
        ):
            return super().run()


def run(seeds: Sequence[int]) -> list[Outcome]:
    return [ReplySimulation(seed).run() for seed in seeds]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_storm_makes_a_node_forget_an_answer(shard: int) -> None:
    """`SWEEP=10000 SWEEP_SEED=7` runs as many other schedules as that."""
    count = max(1, sweep_size(SEEDS) // SHARDS)
    first = sweep_seed() * 10_000_000 + shard * count
    outcomes = run(range(first, first + count))
    assert sum(outcome.acknowledged for outcome in outcomes) > 20 * count, "hardly anything was acknowledged"


# --- answers forgotten ---


@contextmanager
def time_does_not_pass() -> Iterator[None]:
    """A request's time-out is not looked at."""
    with patch.object(session.KafkaSession, "time_passes", lambda _: None):
        yield


@contextmanager
def batches_are_taken_back_without_a_word() -> Iterator[None]:
    """Whose batch is taken back, because its leader is deposed or the disk has failed, is not told."""
    not_durable = PartitionLeader.not_durable

    def forget_waiters(leader: PartitionLeader, problem: StreamHouseError) -> None:
        leader._pending = deque((pending[0], NOBODY, *pending[2:]) for pending in leader._pending)
        not_durable(leader, problem)

    with patch.object(PartitionLeader, "not_durable", forget_waiters):
        yield


@pytest.mark.parametrize(
    ("mutation", "shown_by"), [(time_does_not_pass, "R1"), (batches_are_taken_back_without_a_word, "I8")]
)
def test_an_answer_that_is_forgotten_is_found(
    mutation: Callable[[], AbstractContextManager[None]], shown_by: str
) -> None:
    with mutation():
        seed = first_to_show(shown_by, range(SEEDS_TO_FIND_A_BUG))
    print(f"{mutation.__name__}: found by seed {seed}")
    ReplySimulation(seed).run()


def first_to_show(invariant: str, seeds: Sequence[int]) -> int:
    for seed in seeds:
        try:
            ReplySimulation(seed).run()
        except Violation as found:
            if invariant in found.invariants:
                return seed
    pytest.fail(f"{len(seeds)} schedules did not show it")


def test_a_seed_gives_the_same_schedule_down_to_the_last_step() -> None:
    assert run([5, 6, 7]) == run([5, 6, 7])
