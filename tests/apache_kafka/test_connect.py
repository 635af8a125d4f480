"""A Connect worker keeps its connectors, their offsets and its group on a node, across a stop and a kill."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from apache_kafka import topics
from apache_kafka.jvm import Jvm
from node.process import Node
from node.wait import eventually
from services.ports import free_port

WORKER_SECONDS = 240
_REBALANCING = 409
_SETTINGS = """
bootstrap.servers = {bootstrap}
group.id = connect
key.converter = org.apache.kafka.connect.storage.StringConverter
value.converter = org.apache.kafka.connect.storage.StringConverter
offset.storage.topic = connect-offsets
config.storage.topic = connect-configs
status.storage.topic = connect-status
offset.storage.replication.factor = 1
config.storage.replication.factor = 1
status.storage.replication.factor = 1
offset.flush.interval.ms = 500
listeners = http://127.0.0.1:{port}
"""


def test_a_worker_goes_on_where_it_stopped(jvm: Jvm, shared_node: Node, tmp_path: Path) -> None:
    port = free_port()
    settings, lines, copy = tmp_path / "worker.properties", tmp_path / "lines", tmp_path / "copy"
    settings.write_text(_SETTINGS.format(bootstrap=shared_node.bootstrap, port=port))
    topics.make_topic(shared_node.bootstrap, "lines", 1)
    file = "org.apache.kafka.connect.file.FileStream"
    source = {"connector.class": f"{file}SourceConnector", "file": str(lines), "topic": "lines"}
    sink = {"connector.class": f"{file}SinkConnector", "file": str(copy), "topics": "lines"}
    expected: list[str] = []

    def write(new: Iterable[str]) -> None:
        with lines.open("a") as output:
            for line in new:
                expected.append(line)
                output.write(f"{line}\n")

    def copied() -> list[str]:
        return copy.read_text().splitlines() if copy.exists() else []

    write(f"first-{n}" for n in range(50))
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    with jvm.start(main, str(settings), name="worker") as first:
        eventually(lambda: _answers(port), "the worker's REST port", timeout=WORKER_SECONDS, pause=0.5)
        _configure(port, "source", source)
        _configure(port, "sink", sink)
        eventually(lambda: copied() == expected, "the first lines", timeout=WORKER_SECONDS, pause=0.5)
        first.stop()

    write(f"second-{n}" for n in range(50))
    with jvm.start(main, str(settings), name="worker") as second:
        eventually(lambda: copied() == expected, "the lines written meanwhile", timeout=WORKER_SECONDS, pause=0.5)
        write(f"third-{n}" for n in range(50))
        eventually(lambda: set(copied()) >= set(expected), "the third lines", timeout=WORKER_SECONDS, pause=0.5)
        second.kill()

    write(f"fourth-{n}" for n in range(50))
    with jvm.start(main, str(settings), name="worker"):
        eventually(
            lambda: set(copied()) >= set(expected), "all lines, at least once", timeout=WORKER_SECONDS, pause=0.5
        )
        assert list(dict.fromkeys(copied())) == expected


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/connectors", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _configure(port: int, name: str, config: dict[str, str]) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/connectors/{name}/config",
        json.dumps({**config, "tasks.max": "1"}).encode(),
        {"content-type": "application/json"},
        method="PUT",
    )

    def is_taken() -> bool:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return bool(answer.status in (200, 201))
        except urllib.error.HTTPError as problem:
            if problem.code != _REBALANCING:
                raise
            return False

    eventually(is_taken, f"connector {name}", timeout=WORKER_SECONDS, pause=0.5)
