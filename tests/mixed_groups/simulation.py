"""Consumers that come, go, crash and change their protocol, and a coordinator that dies, from one seed.

The coordinator is the real one, on virtual time; the store, the network and the clients are models. Among the clients
whose commits the group would take, at most one owns a partition at any moment, and no commit goes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from consumer_protocol.rules import topic
from mixed_groups.clients import ClassicConsumer, Consumer, Lost, NewerConsumer
from mixed_groups.store import ModelStore
from sim.cluster.loop import Process, VirtualLoop
from streamhouse.core.groups.classic import ClassicGroup
from streamhouse.core.groups.classic_messages import ClassicLimits
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.consumer_heartbeat import ConsumerLimits, TopicIdPartition
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.groups.coordinator import GroupCoordinator
from streamhouse.groups.group import Group
from streamhouse.model.names import TopicPartition
from streamhouse.server.kafka.embedded_protocol import KafkaEmbeddedProtocol

REQUEST_SECONDS = 20.0
_HOUR_MS = 3_600_000


class LoopClock:
    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)

    async def sleep_ms(self, duration_ms: float) -> None:
        future = self._loop.create_future()
        self._loop.call_later(duration_ms / 1000, _settle, future, None)
        await future


class Simulation:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.loop = VirtualLoop(lambda: 1.0)
        self.clock = LoopClock(self.loop)
        self.store = ModelStore(self)
        self.topics = {"orders": topic(1, 8), "clicks": topic(2, 3)}
        self.clients: dict[Consumer, asyncio.Task[None]] = {}
        self.calm = False
        self.switched = 0
        self.restarts = 0
        self._stopped_at: float | None = None
        self._ids = 0
        self._coordinator: GroupCoordinator | None = None
        self._process: Process | None = None
        self.start_coordinator()

    # --- what clients and the store use ---

    def new_id(self, kind: str) -> str:
        self._ids += 1
        return f"{kind}-{self._ids}"

    async def sleep_ms(self, duration_ms: float) -> None:
        await self.clock.sleep_ms(duration_ms)

    async def pass_time(self) -> None:
        await self.clock.sleep_ms(self.random.randint(0, 3))

    def end_of(self, partition: TopicIdPartition) -> int:
        """Every log grows, until the storm is over."""
        until = self.loop.time() if self._stopped_at is None else self._stopped_at
        return int(until * (1 + partition[1]))

    async def ask(self, client: Consumer, request: Callable[[GroupCoordinator], Coroutine[Any, Any, Any]]) -> Any:
        """One request to whoever coordinates when it arrives; what one client sends arrives in order."""
        answer = self.loop.create_future()
        if not self._is_lost():
            arrival = max(self.loop.time() + self._delay(), client.arrives_not_before)
            client.arrives_not_before = arrival
            self.loop.call_at(arrival, self._arrive, request, answer, context=self.loop.nobody)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await answer
        except TimeoutError:
            raise Lost from None

    def _arrive(
        self, request: Callable[[GroupCoordinator], Coroutine[Any, Any, Any]], answer: asyncio.Future[Any]
    ) -> None:
        coordinator, process = self._coordinator, self._process
        if coordinator is None or process is None:
            return

        async def serve() -> None:
            reply = await request(coordinator)
            if not self._is_lost():
                self.loop.call_later(self._delay(), _settle, answer, reply, context=self.loop.nobody)

        self.loop.start(serve(), process.context)

    def _is_lost(self) -> bool:
        return not self.calm and self.random.random() < 0.02

    def _delay(self) -> float:
        return self.random.randint(1, 20 if self.calm else 200) / 1000

    # --- the coordinator ---

    def start_coordinator(self) -> None:
        process = Process("coordinator")
        coordinator = GroupCoordinator(
            agent_id="agent",
            store=self.store,  # type: ignore[arg-type]
            clock=self.clock,
            topics=lambda: self.topics,
            lease_ttl_ms=_HOUR_MS,
            lease_renewal_ms=_HOUR_MS,
            offsets_retention_ms=_HOUR_MS,
            classic_limits=ClassicLimits(initial_rebalance_delay_ms=1_000),
            consumer_limits=ConsumerLimits(session_timeout_ms=10_000, heartbeat_interval_ms=2_000),
            embedded=KafkaEmbeddedProtocol(),
        )

        async def start() -> None:
            await coordinator.acquire_shards(range(SHARD_COUNT))
            self._coordinator, self._process = coordinator, process

        self.loop.start(start(), process.context)
        self._process = process

    def kill_coordinator(self) -> None:
        """Between any two of its steps. What it had not stored has not happened."""
        self.restarts += 1
        assert self._process is not None
        self._process.is_alive = False
        self._coordinator = None
        self.loop.call_later(self.random.random(), self.start_coordinator, context=self.loop.nobody)

    @property
    def group(self) -> Group | None:
        if self._coordinator is None:
            return None
        groups = self._coordinator.all_groups()
        return groups[0] if isinstance(groups, list) and groups else None

    # --- clients ---

    def start_client(self, kind: str, instance_id: str | None = None) -> None:
        consumer: Consumer
        if kind == "newer":
            consumer = NewerConsumer(self, instance_id)
        else:
            consumer = ClassicConsumer(self, instance_id, cooperative=kind == "cooperative")
        task = self.loop.create_task(consumer.run(), context=self.loop.nobody.copy())  # type: ignore[attr-defined]
        task.add_done_callback(self.loop._ended)
        self.clients[consumer] = task

    def crash_client(self, consumer: Consumer) -> None:
        self.clients.pop(consumer).cancel()

    def stop_client(self, consumer: Consumer) -> None:
        consumer.stopping = True
        del self.clients[consumer]

    def switch_all_to_classic(self) -> None:
        for consumer in [one for one in self.clients if isinstance(one, NewerConsumer)]:
            self.switch_client(consumer)

    def switch_client(self, consumer: Consumer) -> None:
        """A rolling change: the application goes, in order or not, and comes back in the other protocol."""
        self.switched += 1
        to = self.random.choice(["eager", "cooperative"]) if isinstance(consumer, NewerConsumer) else "newer"
        if self.random.random() < 0.3:
            self.crash_client(consumer)
        else:
            self.stop_client(consumer)
        wait = self.random.random() * 3
        self.loop.call_later(wait, self.start_client, to, consumer.instance_id, context=self.loop.nobody)

    # --- the whole ---

    def storm(self, seconds: float) -> None:
        until = self.loop.time() + seconds
        while self.loop.time() < until:
            self._run(self.random.random() * 4)
            consumers = sorted(self.clients, key=lambda one: one.claim.member_id)
            match self.random.randrange(8):
                case 0 | 1 if consumers:
                    self.switch_client(self.random.choice(consumers))
                case 3 if consumers:
                    self.crash_client(self.random.choice(consumers))
                    self.start_client(self.random.choice(["eager", "cooperative", "newer"]))
                case 4 | 5 if self._coordinator is not None:
                    self.kill_coordinator()
                case 6 if self.random.random() < 0.3:
                    self._grow()
                case 7:
                    self.switch_all_to_classic()
                case _:
                    pass

    def there_and_back(self) -> None:
        """Whatever the storm did: the group is classic, then not, then is again."""
        for _ in range(2):
            self.switch_all_to_classic()
            self._run(30)
            self.start_client("newer")
            self._run(10)

    def _grow(self) -> None:
        shape = self.topics["orders"]
        self.topics = {**self.topics, "orders": shape._replace(partition_count=shape.partition_count + 1)}
        if self._coordinator is not None and self._process is not None:
            self.loop.call_soon(self._coordinator.topics_changed, context=self._process.context)

    def _run(self, seconds: float) -> None:
        until = self.loop.time() + seconds
        while self.loop.time() < until:
            self.loop.run_until(min(until, self.loop.time() + 0.02))
            self.check()

    def check(self) -> None:
        assert not self.loop.failures, self.loop.failures
        group = self.group
        if group is None or group.machine is None:
            return
        epochs = accepted_epochs(group.machine)
        owners: dict[TopicIdPartition, str] = {}
        for consumer in self.clients:
            claim = consumer.claim
            if epochs.get(claim.member_id) == claim.generation:
                for partition in consumer.owned:
                    other = owners.setdefault(partition, claim.member_id)
                    assert other == claim.member_id, f"{partition} is owned by {other} and {claim.member_id}"

    def settle(self) -> None:
        """No more faults: soon every partition has one owner, everything is committed, and nothing stirs."""
        self.calm = True
        self._stopped_at = None
        self._run(60)
        self._stopped_at = self.loop.time()
        self._run(10)
        group = self.group
        assert group is not None
        generation = group.generation
        self._run(20)
        assert group.generation == generation, "the group stirs without a reason"
        everything = sorted(
            (shape.topic_id, index) for shape in self.topics.values() for index in range(shape.partition_count)
        )
        assert sorted(partition for consumer in self.clients for partition in consumer.owned) == everything
        for partition in everything:
            assert self.store.offsets[TopicPartition(*partition)] == self.end_of(partition)
        newer = any(isinstance(consumer, NewerConsumer) for consumer in self.clients)
        assert isinstance(group.machine, ConsumerGroup if newer else ClassicGroup)


def accepted_epochs(machine: ClassicGroup | ConsumerGroup) -> dict[str, int]:
    """With which generation or epoch each member's commits are taken."""
    if isinstance(machine, ClassicGroup):
        return {member.member_id: machine.generation for member in machine.describe().members}
    return {member.member_id: member.member_epoch for member in machine.stored().members}


def _settle(answer: asyncio.Future[Any], reply: Any) -> None:
    if not answer.done():
        answer.set_result(reply)
