"""A node, and Apache Kafka's programs to run against it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apache_kafka.jvm import Jvm, fetch_kafka
from node.process import Node

_DOWNLOADS = Path(__file__).parents[2] / "build" / "peers"


@pytest.fixture(scope="session")
def jars() -> Path:
    """No jars, no test: this folder is run by those who want to know."""
    return fetch_kafka(_DOWNLOADS)


@pytest.fixture
def jvm(jars: Path, tmp_path: Path) -> Jvm:
    return Jvm(jars, tmp_path)


@pytest.fixture(scope="module")
def shared_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """For tests that use topics of their own."""
    with Node(tmp_path_factory.mktemp("node") / "data") as node:
        yield node


@pytest.fixture
def new_node(tmp_path: Path) -> Iterator[Callable[[str], Node]]:
    """Makes started nodes, by name."""
    nodes: list[Node] = []

    def start(name: str) -> Node:
        node = Node(tmp_path / name)
        nodes.append(node)
        node.start()
        return node

    yield start
    for node in nodes:
        node.close()
