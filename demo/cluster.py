"""The demo's cluster: three agents in two zones on shared stores, one of which can be lost."""

from __future__ import annotations

import time  # noqa: TID251 - how long real processes take
from collections import Counter
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from demo.agent import Agent
from demo.failure import DemoFailed
from demo.quiet import QUIET
from demo.services import Stores

_ZONES = ("a", "b", "a")
# Small segments, so that they are written while one watches; short leases, so that one need not watch for long.
_OPTIONS = (
    *("--segment-bytes", "512KiB", "--segment-age", "5s"),
    *("--lease-ttl", "3s", "--lease-renewal", "1s", "--heartbeat", "1s", "--liveness", "5s", "--rebalance", "2s"),
)
_ADMIN_SECONDS = 60


class Cluster:
    """`start_seconds` is from the first process until all are ready. `close` leaves nothing running."""

    def __init__(self, stores: Stores, data_dir: Path, state_dir: Path) -> None:
        self._stores = stores
        self._data_dir = data_dir
        # Where the pipeline registers, so that the console can show it.
        self._environment = {"STREAMHOUSE_STATE_DIR": str(state_dir)}
        count = len(_ZONES) if stores.is_shared else 1
        began = time.perf_counter()
        self.agents = [self._start(f"agent-{number}", _ZONES[number - 1]) for number in range(1, count + 1)]
        try:
            for agent in self.agents:
                agent.wait_ready()
        except BaseException:
            self.close()
            raise
        self.start_seconds = time.perf_counter() - began

    def _start(self, name: str, zone: str, *more: str) -> Agent:
        options = ("--zone", zone, *self._stores.options, *_OPTIONS, *more)
        return Agent(name, self._data_dir / name, *options, environment=self._environment)

    @property
    def running(self) -> list[Agent]:
        return [agent for agent in self.agents if agent.is_running]

    @property
    def bootstrap(self) -> str:
        return ",".join(agent.bootstrap for agent in self.running)

    @property
    def endpoints(self) -> str:
        return ",".join(agent.endpoint for agent in self.running)

    @property
    def console(self) -> str:
        """Of the first agent, which is not the one that is killed."""
        return self.agents[0].endpoint + "/"

    def create_topics(self, *topics: NewTopic) -> None:
        # It must outlive what it was asked for.
        admin = self._admin()
        try:
            for created in admin.create_topics(list(topics), operation_timeout=_ADMIN_SECONDS).values():
                created.result(_ADMIN_SECONDS)
        except KafkaException as problem:
            raise DemoFailed(f"cannot create the topic: {problem.args[0].str()}") from None

    def partitions_led(self, topic: str) -> Counter[str]:
        """How many partitions of the topic each agent leads, by its name."""
        metadata = self._admin().list_topics(topic, timeout=_ADMIN_SECONDS)
        addresses = {number: f"{broker.host}:{broker.port}" for number, broker in metadata.brokers.items()}
        names = {agent.bootstrap: agent.name for agent in self.agents}
        leaders = (addresses.get(each.leader, "") for each in metadata.topics[topic].partitions.values())
        return Counter(names[address] for address in leaders if address in names)

    def kill_one(self, topic: str) -> tuple[str, int]:
        """The agent that leads most of the topic, the first one aside; returns its name and how many it led.

        An agent that is alone is started again, since nobody could take over."""
        led = self.partitions_led(topic)
        victim = max(self.agents[1:] or self.agents, key=lambda agent: led[agent.name])
        victim.kill()
        if len(self.agents) == 1:
            self._start_again(victim)
        return victim.name, led[victim.name]

    def _start_again(self, killed: Agent) -> None:
        """Where clients know it to be."""
        self.agents = [self._start(killed.name, _ZONES[0], *killed.same_ports)]
        self.agents[0].wait_ready()

    def wait_until_all_led(self, topic: str, partitions: int) -> None:
        deadline = time.monotonic() + _ADMIN_SECONDS
        while sum((led := self.partitions_led(topic))[agent.name] for agent in self.running) < partitions:
            if time.monotonic() > deadline:
                raise DemoFailed(f"the agents that are left lead only {dict(led)} of {partitions} partitions")
            time.sleep(0.1)

    def drain(self) -> float:
        """Stop all that run, as an operator would; returns the seconds it took."""
        began = time.perf_counter()
        agents = self.running
        for agent in agents:
            agent.ask_to_stop()
        for agent in agents:
            agent.wait_stopped()
        return time.perf_counter() - began

    def close(self) -> None:
        for agent in self.agents:
            agent.kill()

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
