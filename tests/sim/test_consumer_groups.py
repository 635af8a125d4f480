"""Twenty consumers of the new protocol in simulated time: delays, losses, crashes, pauses and restarts, from a seed."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from consumer_protocol.client import REBALANCE_TIMEOUT_MS, Client
from consumer_protocol.rules import check_commits, check_one_owner, check_settled, topic
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.consumer_heartbeat import ConsumerLimits, HeartbeatReply, HeartbeatRequest
from streamhouse.core.groups.consumer_snapshot import ConsumerState
from streamhouse.core.groups.outcome import GroupError

CLIENTS = 20
STORM_MS = 600_000
REQUEST_TIMEOUT_MS = 5_000
LIMITS = ConsumerLimits()
HEARTBEATS_TO_SETTLE = 8
SUBSCRIPTIONS = [(("orders",), ""), (("orders", "clicks"), ""), ((), "orders.*"), (("clicks",), "orders.*")]


@dataclass(slots=True, kw_only=True, eq=False)
class Process:
    """A client in its process; what it sends arrives in order, since it uses one connection at a time."""

    client: Client
    running: bool = True
    paused_until_ms: int = 0
    attempt: int = 0
    waiting: bool = False
    arrives_not_before_ms: int = 0
    heartbeats: int = 0


class Simulation:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0
        self.storm = True
        self.group = ConsumerGroup("g", limits=LIMITS)
        self.stored = self.group.stored()
        self.topics = {"orders": topic(1, 24), "clicks": topic(2, 7)}
        self.topics_made = 2
        self.processes: list[Process] = []
        self.made = 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.event_count = 0
        self.highest_epoch = 0
        self.most_members = 0
        self.fenced = 0

    def after(self, delay_ms: int, event: Callable[[], None]) -> None:
        self.event_count += 1
        heapq.heappush(self.events, (self.now_ms + delay_ms, self.event_count, event))

    def run_until(self, end_ms: int) -> None:
        while self.events and self.events[0][0] <= end_ms:
            self.now_ms, _, event = heapq.heappop(self.events)
            event()
            self.check()
        self.now_ms = end_ms

    def check(self) -> None:
        clients = [process.client for process in self.processes if process.running]
        check_one_owner(self.group, clients)
        check_commits(self.group, clients)
        assert self.group.group_epoch >= self.highest_epoch
        assert self.group.stored() == self.stored
        self.highest_epoch = self.group.group_epoch

    # Clients

    def start(self, instance_id: str | None = None) -> None:
        self.made += 1
        names, regex = self.random.choice(SUBSCRIPTIONS)
        client = Client(member_id=f"m{self.made}", names=names, regex=regex, instance_id=instance_id)
        process = Process(client=client)
        self.processes.append(process)
        self.after(self.random.randrange(2_000), lambda: self.beat(process))

    def beat(self, process: Process) -> None:
        """Send a heartbeat if none is under way; comes back by itself at the interval."""
        if not process.running or process.waiting:
            return
        if process.paused_until_ms > self.now_ms:
            self.after(process.paused_until_ms - self.now_ms, lambda: self.beat(process))
            return
        process.attempt += 1
        process.heartbeats += 1
        process.waiting = True
        attempt, request = process.attempt, process.client.heartbeat()
        if not self.is_lost():
            arrival_ms = max(self.now_ms + self.delay_ms(), process.arrives_not_before_ms)
            process.arrives_not_before_ms = arrival_ms
            self.after(arrival_ms - self.now_ms, lambda: self.arrive(process, attempt, request))
        self.after(REQUEST_TIMEOUT_MS, lambda: self.give_up(process, attempt))

    def arrive(self, process: Process, attempt: int, request: HeartbeatRequest) -> None:
        decision = self.group.heartbeat(request, self.topics, self.now_ms)
        if decision.persist:
            self.stored = self.group.stored()
        if not self.is_lost():
            self.after(self.delay_ms(), lambda: self.answer(process, attempt, request, decision.reply))

    def answer(
        self, process: Process, attempt: int, request: HeartbeatRequest, reply: HeartbeatReply | GroupError
    ) -> None:
        if not process.running or not process.waiting or attempt != process.attempt:
            return
        process.waiting = False
        client = process.client
        client.hear(request, reply)
        if client.fatal is not None:
            assert client.fatal is GroupError.UNRELEASED_INSTANCE_ID, client.fatal
            client.fatal = None  # the process is started again and again until its former life has expired
        elif isinstance(reply, GroupError):
            self.fenced += 1
            self.after(1, lambda: self.beat(process))
        if client.to_revoke:
            self.after(self.revocation_ms(), lambda: self.revoked(process))
        elif client.must_report or client.announces:
            self.after(1, lambda: self.beat(process))
        self.after(LIMITS.heartbeat_interval_ms, lambda: self.beat_if_idle(process, attempt))

    def beat_if_idle(self, process: Process, attempt: int) -> None:
        if process.attempt == attempt:
            self.beat(process)

    def revoked(self, process: Process) -> None:
        process.client.finish_revoking()
        self.beat(process)

    def give_up(self, process: Process, attempt: int) -> None:
        if process.running and process.waiting and process.attempt == attempt:
            process.waiting = False
            process.client.hear_nothing()
            self.beat(process)

    def is_lost(self) -> bool:
        return self.storm and self.random.random() < 0.06

    def delay_ms(self) -> int:
        if self.storm and self.random.random() < 0.03:
            return self.random.randrange(1_000, 20_000)
        return self.random.randrange(1, 300)

    def revocation_ms(self) -> int:
        """How long a client needs to give up partitions; sometimes longer than it said it would at most."""
        if self.storm and self.random.random() < 0.1:
            return self.random.randrange(4_000, 2 * REBALANCE_TIMEOUT_MS)
        return self.random.randrange(1, 4_000)

    # Faults

    def fault(self) -> None:
        if not self.storm:
            return
        alive = [process for process in self.processes if process.running]
        victim = self.random.choice(alive)
        match self.random.randrange(10):
            case 0 | 1:
                self.crash(victim)
            case 2 | 3:
                victim.paused_until_ms = self.now_ms + self.random.randrange(5_000, 150_000)
            case 4:
                self.leave(victim)
            case 5:
                victim.client.subscribe(*self.random.choice(SUBSCRIPTIONS))
            case 6:
                self.change_topics()
            case 7:
                self.restart_coordinator()
            case _:
                pass
        self.after(self.random.randrange(500, 15_000), self.fault)

    def crash(self, process: Process) -> None:
        process.running = False
        self.processes.remove(process)
        self.start(process.client.instance_id)

    def leave(self, process: Process) -> None:
        """It closes in order: its goodbye is the last that it sends, and the last that arrives."""
        process.running = False
        self.processes.remove(process)
        goodbye = process.client.farewell()
        wait_ms = max(process.arrives_not_before_ms - self.now_ms, 0) + self.delay_ms()
        self.after(wait_ms, lambda: self.arrive(process, process.attempt, goodbye))
        self.after(wait_ms + 1, lambda: self.start(process.client.instance_id))

    def change_topics(self) -> None:
        name = self.random.choice(["orders", "clicks", "orders-eu"])
        shape = self.topics.get(name)
        if shape is None:
            self.topics_made += 1
            self.topics[name] = topic(self.topics_made, self.random.randrange(1, 12))
        elif name == "orders-eu" and self.random.random() < 0.5:
            del self.topics[name]
        else:
            self.topics[name] = shape._replace(partition_count=shape.partition_count + self.random.randrange(1, 4))
        self.topics_changed()

    def restart_coordinator(self) -> None:
        self.group = ConsumerGroup.restore(self.stored, self.now_ms, LIMITS)
        self.topics_changed()

    def topics_changed(self) -> None:
        if self.group.topics_changed(self.topics, self.now_ms):
            self.stored = self.group.stored()

    def tick(self) -> None:
        deadline = self.group.next_deadline_ms()
        if deadline is not None and deadline <= self.now_ms and self.group.tick(self.now_ms):
            self.stored = self.group.stored()
        self.most_members = max(self.most_members, len(self.stored.members))
        self.after(500, self.tick)

    # The whole

    def run(self) -> None:
        for number in range(CLIENTS):
            self.start(instance_id=f"i{number}" if number < 5 else None)
        self.tick()
        self.after(10_000, self.fault)
        self.run_until(STORM_MS)
        self.storm = False
        for process in self.processes:
            process.paused_until_ms = 0
            self.after(1, lambda process=process: self.beat(process))  # type: ignore[misc]
        # What is under way arrives, and those that crashed are given up.
        self.run_until(self.now_ms + 2 * REBALANCE_TIMEOUT_MS + LIMITS.session_timeout_ms)
        for process in self.processes:
            process.heartbeats = 0
        while self.group.state is not ConsumerState.STABLE or any(
            process.client.must_report or process.client.to_revoke for process in self.processes
        ):
            self.run_until(self.now_ms + 100)
            assert max(process.heartbeats for process in self.processes) <= HEARTBEATS_TO_SETTLE
        check_settled(self.group, [process.client for process in self.processes], self.topics)


@pytest.mark.parametrize("seed", range(10))
def test_after_a_storm_every_partition_has_one_owner_and_during_it_never_two(seed: int) -> None:
    simulation = Simulation(seed)
    simulation.run()
    assert simulation.most_members >= CLIENTS  # the storm was one: it had everybody in the group,
    assert simulation.fenced > 0  # and threw somebody out
    assert simulation.highest_epoch > CLIENTS
