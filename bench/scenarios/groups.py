"""(h) Groups: how long 50 members of 200 partitions take to be stable, and in how many rebalances."""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiokafka  # type: ignore[import-untyped]
from aiokafka.coordinator.assignors.range import RangePartitionAssignor  # type: ignore[import-untyped]

from bench.rows import Row, at_most
from bench.run import Run
from bench.servers import ServerFailed, serving, start_node
from bench.topics import create_topic

MEMBERS = 50
PARTITIONS = 200
TOPIC = "shared"
PATIENCE_SECONDS = 120.0


class Watch(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    """Counts the rebalances that a member has come through, and rings when it has."""

    def __init__(self, changed: asyncio.Event) -> None:
        self.rebalances = 0
        self.owned: frozenset[int] = frozenset()
        self._changed = changed

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.owned = frozenset()

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.rebalances += 1
        self.owned = frozenset(at.partition for at in assigned)
        self._changed.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The group of all that started at once, and the same when one more comes to it."""

    together_seconds: float
    together_rebalances: int
    last_seconds: float
    last_rebalances: int


class Crowd:
    """Members in one event loop, each with its own connections and with its client's default settings."""

    def __init__(self, address: str, group: str) -> None:
        self._address = address
        self._group = group
        self._changed = asyncio.Event()
        self._watches: list[Watch] = []
        self._ending = AsyncExitStack()

    async def __aenter__(self) -> Crowd:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._ending.aclose()

    @property
    def rebalances(self) -> int:
        return max((watch.rebalances for watch in self._watches), default=0)

    async def join(self, count: int) -> None:
        """Starts that many more, together, and waits until they and all the others share the partitions."""
        await asyncio.gather(*(self._start() for _ in range(count)))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not self._is_stable():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise ServerFailed(f"the group was not stable after {PATIENCE_SECONDS:g} s") from None

    async def _start(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._address,
            group_id=self._group,
            enable_auto_commit=False,
            partition_assignment_strategy=(RangePartitionAssignor,),
        )
        watch = Watch(self._changed)
        consumer.subscribe([TOPIC], listener=watch)
        self._watches.append(watch)
        self._ending.push_async_callback(consumer.stop)
        await consumer.start()

    def _is_stable(self) -> bool:
        owned = [watch.owned for watch in self._watches]
        return all(owned) and sorted(at for one in owned for at in one) == list(range(PARTITIONS))


async def measure(address: str, group: str) -> Measured:
    async with Crowd(address, group) as crowd:
        started = time.perf_counter()
        await crowd.join(MEMBERS - 1)
        together_seconds, together_rebalances = time.perf_counter() - started, crowd.rebalances
        started = time.perf_counter()
        await crowd.join(1)
        return Measured(
            together_seconds=together_seconds,
            together_rebalances=together_rebalances,
            last_seconds=time.perf_counter() - started,
            last_rebalances=crowd.rebalances - together_rebalances,
        )


def rows(run: Run) -> Iterator[Row]:
    run.say(f"a group of {MEMBERS} members over {PARTITIONS} partitions")
    # It warns of every rebalance, and those are what is measured.
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    measured: list[Measured] = []
    with serving(start_node(run.directory("groups"))) as node:
        address = f"{node.host}:{node.port}"
        create_topic(address, TOPIC, PARTITIONS)
        measured.extend(asyncio.run(measure(address, f"crowd-{turn}")) for turn in range(run.plan.repeats))

    def median(figures: Sequence[float]) -> float:
        return statistics.median(figures)

    yield Row(
        scenario="groups",
        name=f"{MEMBERS - 1} members at once, to stable",
        figure=median([one.together_seconds for one in measured]),
        unit="s",
        note=f"rebalances: {median([one.together_rebalances for one in measured]):g}; "
        "a new group waits 3 s for members, and again while more come",
    )
    yield Row(
        scenario="groups",
        name=f"member {MEMBERS} joins, to stable",
        figure=median([one.last_seconds for one in measured]),
        unit="s",
        goal=at_most(5.0, "s"),
        note="clients hear of it with their heartbeats, every 3 s",
    )
    yield Row(
        scenario="groups",
        name=f"rebalances after member {MEMBERS} has joined",
        figure=max(one.last_rebalances for one in measured),
        unit="",
        goal=at_most(1, ""),
    )
