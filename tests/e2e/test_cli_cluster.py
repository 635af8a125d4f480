"""`streamhouse agent`, `partition` and `cluster` on PostgreSQL: two real agents, moved partitions, a drain, a death."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from node.admin import create_topic
from node.process import Node
from node.wait import HUNG_SECONDS, eventually
from stored_cluster.shell import ClusterShell, meanwhile
from streamhouse.cli.main import run

PARTITIONS = 4
RECORDS = 40
ROUNDS = 50
# Short, so that the death of an agent is noticed soon.
TIMINGS = ("--lease-ttl", "3s", "--lease-renewal", "1s", "--heartbeat", "1s", "--liveness", "4s", "--rebalance", "1s")


@pytest.fixture
def agents(
    tmp_path: Path, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, durability: str
) -> Iterator[dict[str, Node]]:
    monkeypatch.setenv("STREAMHOUSE_LIVENESS", "4s")
    monkeypatch.setenv("STREAMHOUSE_HEARTBEAT", "1s")
    monkeypatch.setenv("STREAMHOUSE_LEASE_TTL", "3s")
    monkeypatch.setenv("STREAMHOUSE_LEASE_RENEWAL", "1s")
    stores = ("--metadata", postgres_dsn, "--objects", f"file://{tmp_path / 'objects'}")
    with ExitStack() as stack:
        yield {
            agent_id: stack.enter_context(
                Node(
                    tmp_path / agent_id,
                    *stores,
                    *TIMINGS,
                    *("--agent-id", agent_id, "--grpc-port", "0", "--durability", durability),
                    command="agent",
                )
            )
            for agent_id in ("a1", "a2")
        }


@pytest.fixture
def shell(
    agents: dict[str, Node], tmp_path: Path, postgres_dsn: str, capsys: pytest.CaptureFixture[str]
) -> ClusterShell:
    """With a topic that has leaders and records."""
    shell = ClusterShell(postgres_dsn, tmp_path / "objects", capsys)
    bootstrap = ",".join(node.bootstrap for node in agents.values())
    create_topic(bootstrap, "orders", PARTITIONS)
    eventually(lambda: None not in leaders(shell).values(), "leaders of all partitions", pause=0.2)
    produce(bootstrap)
    return shell


def produce(bootstrap: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce("orders", f"{number}", partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def leaders(shell: ClusterShell) -> dict[int, str | None]:
    return {one["partition"]: one["leader"] for one in shell.json("partition", "list")}


def names_leader(agent: Node, partition: int) -> bool:
    """Whether clients are told of one there."""
    metadata = AdminClient({"bootstrap.servers": agent.bootstrap}).list_topics("orders", timeout=HUNG_SECONDS)
    return bool(metadata.topics["orders"].partitions[partition].leader >= 0)


def verify(shell: ClusterShell) -> str:
    return shell.ok("cluster", "verify", "--deep", "--objects", f"file://{shell.objects}")


@pytest.mark.parametrize("durability", ["object"])
def test_partitions_are_moved_and_drained_and_nothing_is_wrong(shell: ClusterShell, agents: dict[str, Node]) -> None:
    listed = shell.json("agent", "list")
    assert [(one["agent_id"], one["state"]) for one in listed] == [("a1", "live"), ("a2", "live")]
    assert sum(one["partitions"] for one in listed) == PARTITIONS
    assert listed[0]["kafka_address"] == agents["a1"].bootstrap

    target = "a2" if leaders(shell)[0] == "a1" else "a1"
    shell.ok("partition", "move", "orders", "0", "--to", target)
    assert leaders(shell)[0] == target
    assert "0 violations" in verify(shell)

    assert "leads nothing any more" in shell.ok("agent", "drain", target)
    assert target not in leaders(shell).values()
    shell.ok("partition", "move", "orders", "0", "--unpin")
    assert "is draining" in shell.fails("partition", "move", "orders", "1", "--to", target)
    verified = 0
    with meanwhile(lambda: [produce(agents["a1"].bootstrap) for _ in range(ROUNDS)]) as is_busy:
        while is_busy():
            assert f"checked {PARTITIONS} partitions" in verify(shell)
            verified += 1
    assert verified > 0


@pytest.mark.parametrize("durability", ["object"])
def test_any_address_of_any_node_is_as_good_as_the_database(
    shell: ClusterShell, agents: dict[str, Node], capsys: pytest.CaptureFixture[str]
) -> None:
    addresses = [address for node in agents.values() for address in (node.bootstrap, node.http)]

    def ask(address: str, *command: str) -> Any:
        capsys.readouterr()
        code = run([*command, "--bootstrap", address, "--json"])
        said = capsys.readouterr()
        assert code == 0, said.err
        return lasting(json.loads(said.out))

    first, second = addresses[0], addresses[-1]
    target = "a2" if leaders(shell)[0] == "a1" else "a1"
    assert ask(first, "partition", "move", "orders", "0", "--to", target)["leader"] == target
    other = "a2" if target == "a1" else "a1"
    assert ask(second, "agent", "drain", other)["partitions_left"] == 0
    assert set(leaders(shell).values()) == {target}
    for command in (
        ("agent", "list"),
        ("partition", "list"),
        ("partition", "list", "orders"),
        ("cluster", "verify"),
        ("cluster", "verify", "--deep"),
    ):
        objects = ("--objects", f"file://{shell.objects}") if command[0] == "cluster" else ()

        def is_the_same(command: tuple[str, ...] = command, objects: tuple[str, ...] = objects) -> bool:
            """Uploads go on meanwhile, and then are done."""
            stored = lasting(shell.json(*command, *objects))
            return [ask(address, *command) for address in addresses] == [stored] * len(addresses)

        eventually(is_the_same, f"the same of {command} from everybody", pause=0.2)
    topics = [ask(address, "topic", "describe", "orders") for address in addresses]
    assert topics == topics[:1] * len(addresses)


def lasting(shown: Any) -> Any:
    """Without what changes while one looks."""
    if isinstance(shown, list):
        return [lasting(each) for each in shown]
    return {name: value for name, value in shown.items() if name not in ("silent_ms", "lease_left_ms")}


@pytest.mark.parametrize("durability", ["wal"])
def test_the_records_of_a_dead_agent_are_waited_for_until_they_are_given_up(
    shell: ClusterShell, agents: dict[str, Node]
) -> None:
    shell.ok("partition", "move", "orders", "0", "--to", "a1")
    produce(agents["a1"].bootstrap)
    agents["a1"].kill9()

    eventually(lambda: leaders(shell)[0] is None, "the end of its lease", pause=0.2)
    assert "waits for agent a1" in shell.ok("partition", "list", "orders")
    eventually(lambda: not names_leader(agents["a2"], 0), "the other agent to know of it", pause=0.2)
    described = ("topic", "describe", "orders", "--bootstrap", agents["a2"].bootstrap)
    assert "waits for agent a1, whose disk may hold acknowledged records" in shell.ok(*described)
    first = shell.json(*described)["partitions"][0]
    assert (first["leader"], first["waits_for"]) == (None, "a1")
    assert "--unclean gives these records up" in shell.fails("partition", "elect", "orders", "0")
    assert "gave up what agent a1" in shell.ok("partition", "elect", "orders", "0", "--unclean", "--yes")

    eventually(lambda: leaders(shell)[0] == "a2", "another leader", pause=0.2)
    assert "0 violations" in verify(shell)
