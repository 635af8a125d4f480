"""A Kafka Streams application counts at least once, across a stop and a kill, with its topics on a node."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from apache_kafka import topics
from apache_kafka.jvm import Jvm
from node.process import Node
from node.wait import eventually

SECONDS = 240
_SOURCE = Path(__file__).with_name("Counting.java")


def test_an_application_counts_everything(jvm: Jvm, shared_node: Node, tmp_path: Path) -> None:
    bootstrap, classes = shared_node.bootstrap, tmp_path / "classes"
    subprocess.run(
        ["javac", "-cp", f"{jvm.jars.absolute()}/*", "-d", str(classes), str(_SOURCE)], check=True, timeout=SECONDS
    )
    topics.make_topic(bootstrap, "orders", 2)
    topics.make_topic(bootstrap, "counts", 1)
    fruits = [f"fruit-{n}" for n in range(10)]

    def order(each: int) -> None:
        for partition in (0, 1):
            topics.produce(bootstrap, "orders", fruits * each, partition=partition)

    def counts() -> dict[str, int]:
        found: dict[str, int] = {}
        for key, value in topics.read(bootstrap, "counts"):
            assert key is not None
            assert value is not None
            (found[key.decode()],) = struct.unpack(">q", value)
        return found

    arguments = ("Counting", bootstrap, str(tmp_path / "state"))
    order(50)
    with jvm.start(*arguments, name="first", classes=classes) as first:
        eventually(lambda: counts() == dict.fromkeys(fruits, 100), "the first counts", timeout=SECONDS, pause=1)
        first.stop()

    order(50)
    with jvm.start(*arguments, name="second", classes=classes) as second:
        eventually(lambda: counts() == dict.fromkeys(fruits, 200), "the second counts", timeout=SECONDS, pause=1)
        order(50)
        second.kill()

    with jvm.start(*arguments, name="third", classes=classes):
        eventually(
            lambda: all(counts().get(fruit, 0) >= 300 for fruit in fruits), "all counts", timeout=SECONDS, pause=1
        )
