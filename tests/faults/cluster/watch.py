"""Who holds what, one after the other, as the database has it."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from node.cluster import Agent, Cluster
from node.wait import HUNG_SECONDS, eventually


class Held(NamedTuple):
    agent: str
    epoch: int
    is_live: bool


Key = tuple[str, int]
"""A topic and the number of a partition, or "" and that of a shard."""

_TO_HAND_OVER = ("streamhouse_partitions_to_hand_over", "streamhouse_coordinator_shards_to_hand_over")


def metric(agent: Agent, sample: str) -> float:
    """What the agent says of itself; `sample` has its labels."""
    (line,) = [line for line in metrics(agent) if line.startswith(f"{sample} ")]
    return float(line.split()[-1])


def metrics(agent: Agent) -> list[str]:
    """Line by line."""
    with urllib.request.urlopen(f"{agent.http}/metrics", timeout=HUNG_SECONDS) as answer:
        lines: list[str] = answer.read().decode().splitlines()
    return lines


class Watch:
    """Who held each partition and each shard, one after the other."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.history: dict[Key, list[tuple[str, int]]] = defaultdict(list)

    def look(self) -> dict[Key, Held]:
        held = {(at.topic, at.partition): Held(at.agent, at.epoch, at.is_live) for at in self._cluster.leases()}
        rows = self._cluster.storage.query(
            """SELECT shard, leader_agent_id, epoch,
                   lease_expires_at > extract(epoch FROM clock_timestamp()) * 1000
               FROM coordinator_leases"""
        )
        held |= {("", shard): Held(agent, epoch, is_live) for shard, agent, epoch, is_live in rows}
        for key, (agent, epoch, _) in held.items():
            if (agent, epoch) not in self.history[key][-1:]:
                self.history[key].append((agent, epoch))
        return held

    def wait_settled(self) -> dict[Key, Held]:
        """Until nothing has changed hands for two seconds, with everything held and nothing to be handed over, such as
        what is tried again later."""
        since = time.monotonic()
        before: dict[Key, Held] = {}

        def settled() -> bool:
            nonlocal since, before
            now = self.look()
            if now != before or not all(held.is_live for held in now.values()) or self._is_any_to_hand_over():
                since, before = time.monotonic(), now
            return time.monotonic() - since > 2

        eventually(settled, "nothing to change hands", pause=0.2)
        self.history.clear()
        return self.look()

    def _is_any_to_hand_over(self) -> bool:
        return any(metric(agent, name) for agent in self._cluster.agents.values() for name in _TO_HAND_OVER)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.1):
                self.look()

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            yield
        finally:
            ended.set()
            watching.join()
