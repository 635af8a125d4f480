"""Three agents, their clients and everything around them, run through the storm of one seed and back to rest."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from random import Random
from unittest.mock import patch
from uuid import UUID

from sim.cluster.agent import EPOCH_MS, SimulatedAgent
from sim.cluster.bucket import Bucket
from sim.cluster.clients import Producer, Reader
from sim.cluster.database import Database
from sim.cluster.history import Entry, History, entries_of
from sim.cluster.loop import VirtualLoop
from sim.cluster.network import Network
from sim.cluster.node import SETTINGS
from sim.cluster.schedule import AGENTS, STORM_SECONDS, Fault, Schedule, draw
from sim.cluster.services import BucketClient, DatabaseClient
from streamhouse.cluster import hand_overs
from streamhouse.core.placement import assignment
from streamhouse.core.placement.ring import Ring
from streamhouse.format.segment import decode_segment
from streamhouse.log.seams import find_seams
from streamhouse.metadata.cluster import Change
from streamhouse.model.errors import Fenced, NotFound
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.runtime import entropy

TOPICS = tuple(
    Topic(
        name=durability,
        topic_id=UUID(int=number),
        partition_count=2,
        config={"streamhouse.durability": durability},
        created_at_ms=EPOCH_MS,
    )
    for number, durability in enumerate(("object", "wal"), start=1)
)
_LOOK_SECONDS = 0.2
_TRANSFER_TIMEOUT_MS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one schedule came to; `digest` is the same for every run of a seed."""

    acknowledged: int
    read: int
    starts: int
    epochs: int
    steps: int
    digest: int


class Violation(AssertionError):
    """Names the seed, what is wrong and the schedule."""

    def __init__(self, seed: int, problems: Sequence[str], schedule: Schedule) -> None:
        shown = "\n".join(problems[:8])
        super().__init__(f"seed {seed}:\n{shown}\nschedule: {schedule}")
        self.invariants = {problem.split(maxsplit=1)[0] for problem in problems}


class _ErrorLog(logging.Handler):
    """Exceptions that the product did not expect: nothing that is simulated here should lead to one."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        problem = record.exc_info[1] if record.exc_info else None
        if problem is not None:
            self.messages.append(f"{record.name}: {record.getMessage()} {problem!r}")


class Simulation:
    agent_type = SimulatedAgent
    healing_seconds = 40.0

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.schedule = draw(seed)
        self.random = Random(seed + 1)
        self.loop = VirtualLoop(lambda: self.random.random() ** 3 * 20)
        self.network = Network(self.loop, self.random, self.schedule.weather)
        self.history = History()
        self.values = count(1)
        self.answers_lost = self.schedule.answers_lost
        self.is_storm_over = False
        self._database_offset_ms = 0
        self._may_elect_at = 0.0
        self.database = Database(TOPICS, self._database_ms, self._report)
        self.bucket = Bucket(self._database_ms)
        self.partitions = list(self.database.partitions)
        self._clients: dict[str, list[DatabaseClient]] = {agent_id: [] for agent_id in AGENTS}
        self.agents = {agent_id: self._make_agent(agent_id) for agent_id in AGENTS}
        self._producer_ids = count(1)
        self.producers = self._make_producers()
        self._reader = Reader(self, self.partitions)
        self._errors = _ErrorLog()

    # --- a run ---

    def run(self) -> Outcome:
        """Raises a Violation."""
        with self._everything_from_the_seed():
            try:
                self._storm()
                self._heal()
                self._check()
                problems = [*self.loop.failures, *self._errors.messages, *self.history.violations]
            finally:
                self.loop.close()
        if problems:
            raise Violation(self.seed, problems, self.schedule)
        return Outcome(
            acknowledged=self.history.acknowledged,
            read=self.history.read,
            starts=sum(agent.starts for agent in self.agents.values()),
            epochs=sum(record.epoch for record in self.database.partitions.values()),
            steps=self.loop.steps,
            digest=self.random.getrandbits(64),
        )

    def _storm(self) -> None:
        for agent in self.agents.values():
            agent.disk.sync_fails = self.schedule.sync_fails
            self.loop.call_soon(agent.start, context=self.loop.nobody)
        for fault in self.schedule.faults:
            self.loop.call_at(fault.at, self._strike, fault, context=self.loop.nobody)
        for client in (*self.producers, self._reader):
            self.loop.start(client.run(), self.loop.nobody)
        self.loop.run_until(STORM_SECONDS)

    def _heal(self) -> None:
        """Faults end; whoever is dead is started. Some time later all must be well (I8)."""
        self.is_storm_over = True
        self.network.heal()
        self.answers_lost = 0.0
        for agent in self.agents.values():
            agent.disk.sync_fails = 0.0
            self.loop.call_soon(agent.resume, context=self.loop.nobody)
            self.loop.call_soon(agent.start, context=self.loop.nobody)
        deadline = self.loop.time() + self.healing_seconds
        while self._illness() and self.loop.time() < deadline:
            for agent in self.agents.values():
                self.loop.call_soon(agent.flush, context=self.loop.nobody)
            self.loop.run_until(self.loop.time() + _LOOK_SECONDS)

    def _check(self) -> None:
        for illness in self._illness():
            self.history.violations.append(f"I8 after {self.healing_seconds} s: {illness}")
        placements = {placement.partition: placement for placement in self.database.list_placements()}
        for partition, record in self.database.partitions.items():
            ranges = self.database.needed_ranges(partition)
            for seam in find_seams(placements[partition], record.segments, ranges):
                self.history.violations.append(f"I3 {record.topic}/{partition.partition}: {seam}")
            self.history.check_log(partition, self._read_log(partition), sorted(record.epochs.items()))

    def _read_log(self, partition: TopicPartition) -> list[Entry]:
        log: list[Entry] = []
        for segment in self.database.partitions[partition].segments:
            try:
                _, blocks = decode_segment(self.bucket.get(segment.object_key))
            except NotFound:
                self.history.violations.append(f"I7 {segment.object_key} is registered and not there")
            else:
                log += [entry for block in blocks for entry in entries_of(bytes(block))]
        return log

    # --- being well ---

    def _illness(self) -> list[str]:
        """What is not yet as it should be: everything sent, led, and in segments."""
        ill = [f"a producer waits for {producer.waits_for}" for producer in self.producers if producer.waits_for]
        for partition, record in self.database.partitions.items():
            name = f"{record.topic}/{partition.partition}"
            agent = self.agents.get(record.leader_agent_id)
            leader = agent.node.leaders.get(partition) if agent is not None and agent.node is not None else None
            if agent is None or leader is None or leader.epoch != record.epoch or not agent.is_serving:
                ill.append(f"nobody leads {name}, last was {record.leader_agent_id!r}")
            elif leader.next_offset != record.next_offset:
                ill.append(f"{name} is committed up to {record.next_offset}, and ends at {leader.next_offset}")
        return ill

    # --- the world that clients see ---

    def guess_leader(self, partition: TopicPartition) -> SimulatedAgent:
        """Who should know better: the leader by the database, mostly; else anybody, so also one that was deposed."""
        known = self.agents.get(self.database.partitions[partition].leader_agent_id)
        if known is not None and self.random.random() < 0.75:
            return known
        return self.agents[self.random.choice(AGENTS)]

    def durable_end(self, partition: TopicPartition) -> int:
        """What would survive the death of every process."""
        on_disks = max(agent.disk.synced_end(partition) for agent in self.agents.values())
        return max(self.database.partitions[partition].durable_end, on_disks)

    # --- faults ---

    def _strike(self, fault: Fault) -> None:
        if self.is_storm_over:
            return
        agent = self.agents.get(fault.agent_id)
        later = self.loop.call_later
        match fault.kind:
            case "crash":
                agent.crash()
                later(fault.seconds, agent.start)
            case "pause":
                agent.pause()
                later(fault.seconds, agent.resume)
            case "drain":
                agent.drain()
            case "cut from database" | "cut from bucket":
                self._cut(fault.agent_id, fault.kind.removeprefix("cut from "), fault.seconds)
            case "database away" | "bucket away":
                self._cut("*", fault.kind.removesuffix(" away"), fault.seconds)
            case "wall clock jumps":
                agent.clock.wall_offset_ms += fault.amount
            case "database clock jumps":
                self._database_offset_ms += fault.amount
                self._may_elect_at = self.loop.time() + SETTINGS.lease_ttl / 1000
            case "pin":
                self.database.pin_partition(self.partitions[fault.amount], fault.agent_id)
            case "elect unclean":
                for partition in self.partitions:
                    self._elect(partition)
            case "grow":
                self._grow(self.database.list_topics()[fault.amount])

    def _grow(self, topic: Topic) -> None:
        """By one partition, which is written to and read from then on."""
        self.database.grow_topic(topic, topic.partition_count + 1)
        partition = TopicPartition(topic.topic_id, topic.partition_count)
        self.partitions.append(partition)
        self._reader.add(partition)
        producer = Producer(self, partition, next(self._producer_ids))
        self.producers.append(producer)
        self.loop.start(producer.run(), self.loop.nobody)

    def _cut(self, agent_id: str, service: str, seconds: float) -> None:
        self.network.cut(agent_id, service)
        self.loop.call_later(seconds, self.network.mend, agent_id, service)

    def _elect(self, partition: TopicPartition) -> None:
        """An operator who does not wait any longer for an agent's disk.

        Just after the database's clock has jumped, that agent may still hold what the database calls expired. Commits
        are safe from that, but nothing can be for records that are on its disk alone."""
        if self.loop.time() < self._may_elect_at:
            return
        record = self.database.partitions[partition]
        try:
            given_up = self.database.elect_unclean(partition)
        except Fenced:
            return
        if given_up:
            self.history.elected_unclean(partition, record.epoch, record.next_offset)

    # --- inside ---

    def _make_agent(self, agent_id: str) -> SimulatedAgent:
        def make_database_client() -> DatabaseClient:
            client = DatabaseClient(agent_id, self.database, self.network)
            self._clients[agent_id] = [client]
            return client

        bucket = BucketClient(agent_id, self.bucket, self.network)
        segment_bytes = self.schedule.segment_bytes
        return self.agent_type(agent_id, self.loop, self.random, make_database_client, bucket, segment_bytes)

    def _make_producers(self) -> list[Producer]:
        ids = self._producer_ids
        return [Producer(self, partition, next(ids)) for partition in self.partitions] + [
            Producer(self, self.random.choice(self.partitions), next(ids)),
            Producer(self, self.random.choice(self.partitions), None),
        ]

    def _report(self, change: Change) -> None:
        """A hint and no promise: it takes its time, and who is cut off hears nothing."""
        for agent_id, agent in self.agents.items():
            process = agent.process
            if process is not None and not self.network.is_cut((agent_id, "database")):
                for client in self._clients[agent_id]:
                    self.loop.call_later(self.network.delay(), client.notify, change, context=process.context)

    def _database_ms(self) -> int:
        return EPOCH_MS + int(self.loop.time() * 1000) + self._database_offset_ms

    @contextmanager
    def _everything_from_the_seed(self) -> Iterator[None]:
        """Ids and jitter are drawn from it too. Rings, which take long to build and never change, are kept."""
        log = logging.getLogger("streamhouse")
        level = log.level
        log.addHandler(self._errors)
        log.setLevel(logging.ERROR)
        log.propagate = False
        gc.disable()
        try:
            with (
                patch.object(entropy, "random", self.random),
                patch.object(entropy, "uuid4", lambda: UUID(int=self.random.getrandbits(128), version=4)),
                patch.object(hand_overs, "TRANSFER_TIMEOUT_MS", _TRANSFER_TIMEOUT_MS),
                patch.object(assignment, "Ring", lambda agent_ids: _ring(frozenset(agent_ids))),
            ):
                yield
        finally:
            gc.enable()
            log.removeHandler(self._errors)
            log.setLevel(level)
            log.propagate = True


@cache
def _ring(agent_ids: frozenset[str]) -> Ring:
    return Ring(agent_ids)
