"""Producers and readers: they ask whoever may lead, wait as long as clients do, and write down what they hear."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Protocol

from sim.cluster.agent import SimulatedAgent
from sim.cluster.history import MAX_RECORDS, History, batch_of, entries_of
from sim.cluster.loop import VirtualLoop
from sim.cluster.node import Failed
from streamhouse.log.leader import PartitionLeader
from streamhouse.model.errors import SequenceRefused, StreamHouseError
from streamhouse.model.names import TopicPartition

_TIMEOUT_SECONDS = 1.2


class World(Protocol):
    """What clients see of the simulation."""

    loop: VirtualLoop
    random: Random
    history: History
    values: count[int]
    answers_lost: float

    @property
    def is_storm_over(self) -> bool: ...

    def guess_leader(self, partition: TopicPartition) -> SimulatedAgent: ...

    def durable_end(self, partition: TopicPartition) -> int: ...


async def ask(world: World, send: Callable[[float, Callable[[object], None]], bool]) -> object:
    """The answer; a TimeoutError if there is none, and a ConnectionError if nobody listens."""
    loop, random = world.loop, world.random
    answer = loop.create_future()

    def settle(result: object) -> None:
        if not answer.done():
            answer.set_result(result)

    def reply(result: object) -> None:
        if random.random() >= world.answers_lost:
            loop.call_later(random.random() * 0.003, settle, result, context=loop.nobody)

    if not send(random.random() * 0.003, reply):
        return ConnectionError()
    timer = loop.call_later(_TIMEOUT_SECONDS, settle, TimeoutError(), context=loop.nobody)
    result = await answer
    timer.cancel()
    return result


class Producer:
    """One batch at a time. An idempotent one sends a batch until it is acknowledged, another only once."""

    def __init__(self, world: World, partition: TopicPartition, producer_id: int | None) -> None:
        self._world = world
        self._partition = partition
        self._producer_id = producer_id
        self._epoch = 0
        self._sequence = 0
        self.waits_for = ""

    async def run(self) -> None:
        world = self._world
        pause_seconds = world.random.uniform(0.1, 0.7)
        while not world.is_storm_over:
            await asyncio.sleep(world.random.random() * 2 * pause_seconds)
            values = [next(world.values) for _ in range(world.random.randint(1, MAX_RECORDS))]
            is_idempotent = self._producer_id is not None
            name = f"producer {self._producer_id}"
            world.history.sent(self._partition, name, values, is_idempotent=is_idempotent)
            if is_idempotent:
                await self._send_until_acknowledged(values)
            else:
                await self._send(values)
        self.waits_for = ""

    async def _send_until_acknowledged(self, values: list[int]) -> None:
        world = self._world
        while True:
            answer = await self._send(values)
            if isinstance(answer, int):
                self._sequence += len(values)
                return
            if isinstance(answer, SequenceRefused) and world.history.has_given_up(self._partition):
                # What came before was given up with an agent's disk: as a real client does, start anew.
                self._epoch, self._sequence = self._epoch + 1, 0
            self.waits_for = f"{values} of {self._partition.topic_id.int}/{self._partition.partition}: {answer!r}"
            await asyncio.sleep(world.random.uniform(0.02, 0.4))

    async def _send(self, values: list[int]) -> object:
        world, partition = self._world, self._partition
        producer = (-1, -1, -1) if self._producer_id is None else (self._producer_id, self._epoch, self._sequence)
        batch = batch_of(values, producer)
        agent = world.guess_leader(partition)

        def send(delay: float, reply: Callable[[object], None]) -> bool:
            return agent.node is not None and agent.deliver(delay, agent.node.produce, partition, batch, reply)

        answer = await ask(world, send)
        if isinstance(answer, int):
            world.history.acked(partition, answer, values)
        elif self._producer_id is None and isinstance(answer, (StreamHouseError, ConnectionError)):
            world.history.refused(partition, values)
        else:
            assert isinstance(answer, (StreamHouseError, Failed, TimeoutError, ConnectionError))
        return answer


class Reader:
    """Reads each partition from the start, over and over, from agents that lead it or believe that they do."""

    def __init__(self, world: World, partitions: list[TopicPartition]) -> None:
        self._world = world
        self._positions = dict.fromkeys(partitions, 0)

    def add(self, partition: TopicPartition) -> None:
        self._positions[partition] = 0

    async def run(self) -> None:
        world = self._world
        while not world.is_storm_over:
            await asyncio.sleep(world.random.random() * 0.3)
            await self._read(world.random.choice(list(self._positions)))

    async def _read(self, partition: TopicPartition) -> None:
        world, offset = self._world, self._positions[partition]
        agent = world.guess_leader(partition)
        durable: list[int] = []

        def answered(reply: Callable[[object], None]) -> Callable[[object], None]:
            def note(result: object) -> None:
                durable.append(world.durable_end(partition))
                reply(result)

            return note

        def send(delay: float, reply: Callable[[object], None]) -> bool:
            note = answered(reply)
            return agent.node is not None and agent.deliver(delay, agent.node.fetch, partition, offset, note)

        answer = await ask(world, send)
        if not isinstance(answer, tuple):
            self._positions[partition] = 0
            return
        leader, epoch, high_watermark, parts = answer
        assert isinstance(leader, PartitionLeader)
        entries = [entry for part in parts for entry in entries_of(part)]
        world.history.saw(partition, entries, epoch=epoch, high_watermark=high_watermark, durable_end=durable[0])
        self._positions[partition] = entries[-1].offset + 1 if entries else 0
