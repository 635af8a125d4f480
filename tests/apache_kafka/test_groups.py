"""Java consumers of both protocols in one group, and the admin client that removes them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from apache_kafka import topics
from apache_kafka.jvm import Jvm, Program
from node.process import Node
from node.wait import eventually

PARTITIONS = 4
SECONDS = 120
_SOURCE = Path(__file__).with_name("Reading.java")


@pytest.fixture(scope="module")
def classes(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("classes")
    subprocess.run(
        ["javac", "-cp", f"{jars.absolute()}/*", "-d", str(built), str(_SOURCE)], check=True, timeout=SECONDS
    )
    return built


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with Node(tmp_path / "data", "--group-consumer-heartbeat-interval", "300ms") as node:
        yield node


class Members:
    def __init__(self, jvm: Jvm, classes: Path, bootstrap: str, ending: ExitStack) -> None:
        self._jvm = jvm
        self._classes = classes
        self._bootstrap = bootstrap
        self._ending = ending
        self.all: list[Program] = []

    def join(self, protocol: str) -> Program:
        arguments = ("Reading", self._bootstrap, "readers", protocol, "numbers")
        name = f"{protocol}-{len(self.all)}"
        member = self._ending.enter_context(self._jvm.start(*arguments, name=name, classes=self._classes))
        self.all.append(member)
        return member

    def remove_all(self) -> None:
        command = self._jvm.command("Reading", self._bootstrap, "readers", "remove", classes=self._classes)
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stderr

    def read(self) -> set[str]:
        return {value for member in self.all for value in re.findall(r"^read (\w+)$", member.output(), re.MULTILINE)}


@pytest.fixture
def members(jvm: Jvm, classes: Path, node: Node) -> Iterator[Members]:
    topics.make_topic(node.bootstrap, "numbers", PARTITIONS)
    with ExitStack() as ending:
        yield Members(jvm, classes, node.bootstrap, ending)


def owned(member: Program) -> list[int]:
    told = re.findall(r"^owns \[(.*)\]$", member.output(), re.MULTILINE)
    return [int(number) for number in told[-1].split(", ") if number] if told else []


def wait_for_one_owner_each(*members: Program) -> None:
    def settled() -> bool:
        shares = [owned(member) for member in members]
        return all(shares) and sorted(number for share in shares for number in share) == list(range(PARTITIONS))

    eventually(settled, "each partition to have one owner", timeout=SECONDS, pause=0.2)


def sender(node: Node) -> tuple[set[str], Callable[[], None]]:
    sent: set[str] = set()

    def send() -> None:
        for partition in range(PARTITIONS):
            values = [f"n{len(sent) + number}" for number in range(25)]
            topics.produce(node.bootstrap, "numbers", values, partition=partition)
            sent.update(values)

    return sent, send


def test_a_group_is_rolled_to_the_newer_protocol_and_back(members: Members, node: Node) -> None:
    sent, send = sender(node)
    send()
    live = [members.join("classic"), members.join("classic")]
    wait_for_one_owner_each(*live)
    for protocol in ("consumer", "consumer", "classic", "classic"):
        send()
        live.append(members.join(protocol))
        wait_for_one_owner_each(*live)
        send()
        leaves = live.pop(0)
        leaves.stop()
        assert "left" in leaves.output(), leaves.output()
        wait_for_one_owner_each(*live)
    send()
    eventually(lambda: members.read() == sent, "everything that was sent", timeout=SECONDS, pause=0.2)
    assert all(member.running for member in live)


def test_an_administrator_removes_all_members_and_those_who_live_come_back(members: Members, node: Node) -> None:
    live = [members.join("consumer"), members.join("classic")]
    wait_for_one_owner_each(*live)
    members.remove_all()
    sent, send = sender(node)
    send()
    eventually(lambda: members.read() == sent, "everything that was sent", timeout=SECONDS, pause=0.2)
    wait_for_one_owner_each(*live)
