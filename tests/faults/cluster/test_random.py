"""Many random faults from a seed, one after the other and on top of one another: nothing is lost, and it heals.

`SWEEP_SEED=7` chooses other faults, `SWEEP=200` makes more of them, `SOAK_SECONDS=3600` goes on for that long."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator

import pytest

from faults.cluster.workloads import PARTITIONS
from faults.sweep import sweep_seed, sweep_size
from faults.workload import Workload
from node.cluster import Agent, Cluster, Cut
from node.network import Way

SOAK_SECONDS = int(os.environ.get("SOAK_SECONDS", 0))
EPISODE = 8
"""Faults in the life of one topic: then all that its clients saw is judged, and another one begins."""

pytestmark = pytest.mark.timeout(SOAK_SECONDS + 60 * sweep_size(1) + 300)


class Storm:
    """What can happen to an agent. Each fault says what it did, so that a failure can be told from its output."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._source = random.Random(seed)
        self.told: list[str] = []

    def strike(self) -> None:
        """One fault, on an agent that may be hurt already."""
        agent = self._source.choice(list(self._cluster.agents.values()))
        fault = self._source.choice(self._faults)
        self.told.append(f"{fault.__name__} {agent.name}")
        fault(agent)

    @property
    def _faults(self) -> list[Callable[[Agent], None]]:
        return [
            self.kill, self.kill, self.kill_all, self.pause, self.stop, self.cut_database, self.cut_store,
            self.freeze_database, self.freeze_store, self.drop_connections, self.lose_commits,
        ]  # fmt: skip

    def kill(self, agent: Agent) -> None:
        agent.kill9()

    def kill_all(self, _: Agent) -> None:
        for agent in self._cluster.agents.values():
            agent.kill9()

    def pause(self, agent: Agent) -> None:
        if agent.running:
            agent.pause()

    def stop(self, agent: Agent) -> None:
        """Orderly, if it can: one that is cut off may not be able to end in order."""
        if agent.is_whole:
            assert agent.terminate() == 0, agent.stderr()

    def cut_database(self, agent: Agent) -> None:
        agent.cut(Way.DATABASE)

    def cut_store(self, agent: Agent) -> None:
        agent.cut(Way.STORE)

    def freeze_database(self, agent: Agent) -> None:
        agent.cut(Way.DATABASE, Cut.SILENT)

    def freeze_store(self, agent: Agent) -> None:
        agent.cut(Way.STORE, Cut.SILENT)

    def drop_connections(self, _: Agent) -> None:
        """All of all agents at once, as when the database or the store restarts."""
        for agent in self._cluster.agents.values():
            for proxy in agent.proxies.values():
                proxy.cut()

    def lose_commits(self, agent: Agent) -> None:
        agent.proxies[Way.DATABASE].lose_answers_to(b"COMMIT", self._source.randrange(1, 5))

    def wait(self) -> None:
        """Nothing, until a lease has run out, or until some time in between."""
        lasting = self._source.choice([0.0, self._source.random() * 2, 2.5, 4.0])
        end = time.monotonic() + lasting
        while time.monotonic() < end:
            time.sleep(0.05)

    def calm(self) -> None:
        """All that is hurt is whole again, except what the next fault may find still hurt."""
        for agent in self._cluster.agents.values():
            agent.mend()
            if agent.running:
                agent.resume()
        self._cluster.start()

    @property
    def is_over(self) -> bool:
        """Half of the faults come before the last one has ended."""
        return self._source.random() < 0.5


def episodes() -> Iterator[int]:
    """How many faults each has."""
    if SOAK_SECONDS:
        end = time.monotonic() + SOAK_SECONDS
        while time.monotonic() < end:
            yield EPISODE
        return
    left = sweep_size(4)
    while left > 0:
        yield min(left, EPISODE)
        left -= EPISODE


def test_random_faults_lose_nothing(cluster: Cluster) -> None:
    seed = sweep_seed()
    for number, faults in enumerate(episodes()):
        storm = Storm(cluster, seed + number)
        try:
            run_episode(cluster, storm, faults)
        except BaseException as error:
            error.add_note(f"SWEEP_SEED={seed + number}, {cluster.durability}: {', '.join(storm.told)}")
            raise
        print(f"seed {seed + number}, {cluster.durability}: {', '.join(storm.told)}")


def run_episode(cluster: Cluster, storm: Storm, faults: int) -> None:
    workload = Workload(cluster.bootstrap, cluster.new_topic(), partitions=PARTITIONS)
    workload.create_topic()
    cluster.wait_led(workload.topic)
    with workload.tail():
        for _ in range(faults):
            workload.send(150)
            storm.strike()
            workload.send(50)
            storm.wait()
            if storm.is_over:
                storm.calm()
        storm.calm()
        workload.settle()
    cluster.wait_led()
    workload.assert_holds()
    cluster.assert_sound()
