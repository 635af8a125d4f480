"""Agents as processes on one PostgreSQL database and one S3 bucket, each of which can be killed, paused or cut off."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from node.network import LOOPBACK, Network, Place, Way
from node.process import Node, clean_environment
from node.proxy import TcpProxy
from node.raw import Closed, RawConnection
from node.storage import ServiceStorage, segments_of, service_options
from node.wait import HUNG_SECONDS, eventually
from services.ports import free_port
from services.seams import FIND_SEAMS
from services.seaweed import S3Bucket

TIMINGS = (
    "--lease-ttl", "2s", "--lease-renewal", "500ms", "--heartbeat", "500ms", "--liveness", "3s", "--rebalance", "1s",
)  # fmt: skip
"""Short, so that a fail-over takes seconds; long enough for a busy machine of two cores to renew in time."""

ROLLING = ("--segment-bytes", "16KiB", "--segment-age", "300ms", "--wal-file-bytes", "1MiB")
"""A few records cross every step: WAL, segment, commit, trim."""

_ASKING_PAUSE = 0.05
_NOW_MS = "extract(epoch FROM clock_timestamp()) * 1000"


class Cut(Enum):
    ENDED = "connections end, new ones are refused"
    SILENT = "nothing comes through, and nobody is told"


class Lease(NamedTuple):
    topic: str
    partition: int
    agent: str
    epoch: int
    is_live: bool


class Agent(Node):
    """`streamhouse agent` in a process. Its ways to database and store lead over proxies of its own."""

    def __init__(
        self,
        name: str,
        zone: str,
        data_dir: Path,
        *options: str,
        place: Place,
        proxies: dict[Way, TcpProxy],
        env: dict[str, str] | None = None,
    ) -> None:
        super().__init__(
            data_dir,
            "--agent-id", name, "--zone", zone, "--host", place.host, "--grpc-port", str(free_port()), *options,
            env=env,
            wrapper=place.wrapper,
            command="agent",
            host=place.host,
        )  # fmt: skip
        self.name = name
        self.zone = zone
        self.proxies = proxies
        self._place = place
        self._is_paused = False
        self._cuts: set[Way] = set()

    @property
    def answers(self) -> bool:
        """Whether a client can expect an answer from it."""
        return self.running and not self._is_paused and Way.PEERS not in self._cuts

    @property
    def is_whole(self) -> bool:
        return self.answers and not self._cuts

    def pause(self) -> None:
        super().pause()
        self._is_paused = True

    def resume(self) -> None:
        super().resume()
        self._is_paused = False

    def kill9(self) -> None:
        super().kill9()
        self._is_paused = False

    def cut(self, way: Way, how: Cut = Cut.ENDED) -> None:
        self._cuts.add(way)
        if self._place.links:
            assert how is Cut.SILENT, "a link that is down tells nobody"
            self._place.cut(way)
        elif how is Cut.SILENT:
            self.proxies[way].freeze(True)
        else:
            self.proxies[way].refuse(True)
            self.proxies[way].cut()

    def hold(self, way: Way) -> None:
        """Connections that are there carry nothing more, and nobody is told; new ones work."""
        self.proxies[way].hold()

    def mend(self) -> None:
        """Everything comes through again, also what was on its way."""
        self._cuts.clear()
        self._place.mend()
        for proxy in self.proxies.values():
            proxy.refuse(False)
            proxy.freeze(False)
            proxy.lose_answers_to(b"", 0)


class Cluster:
    """`with Cluster(3, directory, dsn, bucket, durability="object") as cluster:` starts three agents in three zones."""

    def __init__(
        self,
        count: int,
        directory: Path,
        dsn: str,
        bucket: S3Bucket,
        *options: str,
        durability: str,
        endpoint: str = "",
        network: Network | None = None,
        env: dict[str, str] | None = None,
        timings: tuple[str, ...] = TIMINGS,
    ) -> None:
        """`timings` are short unless others are given; () leaves an agent its defaults."""
        self.durability = durability
        self._timings = timings
        self.storage = ServiceStorage(dsn, bucket)
        self.agents: dict[str, Agent] = {}
        self._directory = directory
        self._dsn = dsn
        self._bucket = bucket
        self._endpoint = endpoint or bucket.endpoint
        self._options = (*timings, *ROLLING, "--durability", durability, *options)
        self._network = network
        self._env = env
        self._count = count
        self._topics = 0
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        try:
            for number in range(1, self._count + 1):
                self.add(f"a{number}", f"z{number}", start=False)
            self.start()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            self.explain(error)
        self._ending.close()

    def explain(self, error: BaseException) -> None:
        """Put beside an error what the agents said and who led what."""
        try:
            error.add_note("\n".join(str(lease) for lease in self.leases()))
        except OSError as unreachable:
            error.add_note(f"no database: {unreachable}")
        for agent in self.agents.values():
            state = "running" if agent.running else "ended"
            error.add_note(f"{agent.name} at {agent.bootstrap} says: {self._metadata_of(agent)}")
            error.add_note(f"stderr of {agent.name} ({state}):\n{agent.stderr()}")

    def _metadata_of(self, agent: Agent) -> str:
        try:
            return str(self._named_leaders(agent, {lease.topic for lease in self.leases()}))
        except (OSError, Closed, AssertionError) as problem:
            return repr(problem)

    # -- agents -------------------------------------------------------------------------------------------------

    def add(self, name: str, zone: str, *options: str, start: bool = True, env: dict[str, str] | None = None) -> Agent:
        place = self._network.place() if self._network is not None else LOOPBACK
        proxies = {
            Way.DATABASE: self._proxy(self._dsn, 5432, place.hosts[Way.DATABASE]),
            Way.STORE: self._proxy(self._endpoint, 80, place.hosts[Way.STORE]),
        }
        dsn = _through(self._dsn, place.hosts[Way.DATABASE], proxies[Way.DATABASE].port)
        endpoint = _through(self._endpoint, place.hosts[Way.STORE], proxies[Way.STORE].port)
        agent = Agent(
            name,
            zone,
            self._directory / name,
            *self._options,
            *service_options(dsn, self._bucket, endpoint),
            *options,
            place=place,
            proxies=proxies,
            env={**(self._env or {}), **(env or {})},
        )
        self._ending.callback(agent.close)
        self.agents[name] = agent
        if start:
            agent.start()
        return agent

    def remove(self, agent: Agent) -> None:
        """For good: it drains if it runs, and nobody expects it back."""
        if agent.running:
            assert agent.terminate() == 0, agent.stderr()
        del self.agents[agent.name]

    def start(self) -> None:
        """All that do not run, at the same time."""
        stopped = [agent for agent in self.agents.values() if not agent.running]
        for agent in stopped:
            agent.start(wait=False)
        for agent in stopped:
            agent.wait_ready()

    def heal(self) -> None:
        """Undo all that a test did to it, and wait until every partition is led again, with nobody's help (I8)."""
        for agent in self.agents.values():
            agent.mend()
            if agent.running:
                agent.resume()
        self.start()
        eventually(
            lambda: not any(self.store_access().get(name) for name in self.agents),
            "every agent to have its store as usual",
            pause=_ASKING_PAUSE,
        )
        self.wait_led()

    @property
    def bootstrap(self) -> str:
        return self.bootstrap_of(self.agents.values())

    @staticmethod
    def bootstrap_of(agents: Iterable[Agent]) -> str:
        return ",".join(agent.bootstrap for agent in agents)

    def others(self, *excluded: Agent) -> list[Agent]:
        return [agent for agent in self.agents.values() if agent not in excluded]

    # -- who leads what -----------------------------------------------------------------------------------------

    def new_topic(self) -> str:
        """A name that no test has used on this cluster."""
        self._topics += 1
        return f"topic-{self._topics}"

    def leases(self, topic: str | None = None) -> list[Lease]:
        """As the database has them, by its clock: the truth, whoever answers."""
        rows = self.storage.query(
            f"""SELECT topic, partition_id, leader_agent_id, epoch, lease_expires_at > {_NOW_MS}
                FROM partition_leases ORDER BY topic, partition_id"""
        )
        leases = [Lease(*row) for row in rows]
        return [lease for lease in leases if topic in (None, lease.topic)]

    def lease(self, topic: str, partition: int) -> Lease:
        return next(lease for lease in self.leases(topic) if lease.partition == partition)

    def led_by(self, agent: Agent, topic: str | None = None) -> list[Lease]:
        return [lease for lease in self.leases(topic) if lease.is_live and lease.agent == agent.name]

    def leader_of(self, topic: str, partition: int) -> Agent:
        """Who holds its lease, as soon as somebody does."""

        def leader() -> Agent | None:
            found = [one for one in self.leases(topic) if one.partition == partition and one.is_live]
            return self.agents.get(found[0].agent) if found else None

        return eventually(leader, f"a leader of {topic}/{partition}", pause=_ASKING_PAUSE)

    def leaders(self, topic: str, *, asked: Node | None = None) -> dict[int, str]:
        """The agents that Kafka's Metadata names as leaders; partitions without one are left out."""
        agent = asked or next(agent for agent in self.agents.values() if agent.answers)
        return {number: name for (_, number), name in self._named_leaders(agent, {topic}).items()}

    def _named_leaders(self, asked: Node, topics: set[str]) -> dict[tuple[str, int], str]:
        with RawConnection(asked.address) as raw:
            answer = raw.metadata(*sorted(topics))
        names = {agent.address: agent.name for agent in self.agents.values()}
        nodes = {broker.node_id: names.get((broker.host, broker.port)) for broker in answer.brokers}
        named = {(topic.name, at.partition_index): at.leader_id for topic in answer.topics for at in topic.partitions}
        return {at: name for at, leader_id in named.items() if (name := nodes.get(leader_id)) is not None}

    def wait_led(self, topic: str | None = None) -> None:
        """Until every agent that answers names a leader for every partition, and all name the holder of its lease."""
        eventually(lambda: self._is_led(topic), "every partition to be led, and every agent to know it", pause=0.1)

    def _is_led(self, topic: str | None) -> bool:
        partitions = self.storage.query("SELECT topic, partition_id FROM partitions")
        wanted = {(name, number) for name, number in partitions if topic in (None, name)}
        live = {(lease.topic, lease.partition): lease.agent for lease in self.leases(topic) if lease.is_live}
        whole = {agent.name for agent in self.agents.values() if agent.is_whole}
        if not all(live.get(partition) in whole for partition in wanted):
            return False
        expected = {partition: live[partition] for partition in wanted}
        topics = {name for name, _ in wanted}
        try:
            return all(
                self._named_leaders(agent, topics) == expected for agent in self.agents.values() if agent.answers
            )
        except (OSError, Closed):
            return False

    def store_access(self) -> dict[str, str]:
        """What each agent says of its way to the store; nothing in particular while all is well."""
        rows = self.storage.query("SELECT agent_id, metadata->>'store_access' FROM agents")
        return {agent_id: access or "" for agent_id, access in rows}

    def wait_heartbeats(self, count: int) -> None:
        """Until every agent has sent so many more: it has had time to look around, on any machine."""
        for _ in range(count):
            before = dict(self.storage.query("SELECT agent_id, last_heartbeat FROM agents"))
            eventually(
                lambda: all(
                    last > before.get(agent_id, 0)  # noqa: B023
                    for agent_id, last in self.storage.query("SELECT agent_id, last_heartbeat FROM agents")
                ),
                "a heartbeat of every agent",
                pause=_ASKING_PAUSE,
            )

    def wait_lease_lost(self, agent: Agent) -> None:
        """Until nothing that it held is still its own by the database's clock."""
        eventually(lambda: not self.led_by(agent), f"the leases of {agent.name} to run out", pause=_ASKING_PAUSE)

    def wait_dead(self, agent: Agent) -> None:
        """Until its heartbeat is older than agents take for alive, and others have had time to act on it."""
        silent = f"""SELECT 1 FROM agents WHERE agent_id = '{agent.name}' AND last_heartbeat > {_NOW_MS} - 4500"""
        eventually(lambda: self.storage.query(silent) == [], f"{agent.name} to count as dead", pause=_ASKING_PAUSE)

    # -- the command line ---------------------------------------------------------------------------------------

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`streamhouse …` with everything about this cluster in its environment."""
        options = (*self._timings, *service_options(self._dsn, self._bucket, self._bucket.endpoint))
        settings = {
            f"STREAMHOUSE_{option.removeprefix('--').replace('-', '_').upper()}": value
            for option, value in zip(options[::2], options[1::2], strict=True)
        }
        live = [agent for agent in self.agents.values() if agent.answers]
        environment = {**clean_environment(), **settings, "STREAMHOUSE_BOOTSTRAP": self.bootstrap_of(live)}
        return subprocess.run(
            [sys.executable, "-m", "streamhouse", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            timeout=HUNG_SECONDS,
        )

    def run(self, *arguments: str) -> str:
        done = self.command(*arguments)
        assert done.returncode == 0, f"streamhouse {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def run_json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    # -- invariants ---------------------------------------------------------------------------------------------

    def assert_sound(self) -> None:
        """I3 and I7 while agents run: rows are read before objects, which are there before their rows."""
        assert self.storage.query(FIND_SEAMS) == [], "the log has seams"
        segments = segments_of(self.storage)
        sizes = self.storage.object_sizes()
        for segment in segments:
            assert sizes.get(segment.object_key) == segment.size_bytes, f"row and object disagree: {segment}"

    def assert_verified(self) -> None:
        """The product's own judgement of metadata and bucket."""
        done = self.command("cluster", "verify")
        assert done.returncode == 0, f"cluster verify:\n{done.stdout}{done.stderr}"

    def _proxy(self, url: str, default_port: int, host: str) -> TcpProxy:
        target = urlsplit(url)
        return self._ending.enter_context(TcpProxy((target.hostname or "", target.port or default_port), host=host))


def _through(url: str, host: str, port: int) -> str:
    """The same URL over a proxy."""
    target = urlsplit(url)
    user, at, _ = target.netloc.rpartition("@")
    return target._replace(netloc=f"{user}{at}{host}:{port}").geturl()
