"""Commands on Spark ask the node first: on a machine without Java, what is wrong is said all the same."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamhouse.cli import maintain, pipeline_run, spark_node
from streamhouse.cli.main import run
from streamhouse.client.node import http_endpoints
from streamhouse.spark.pipelines import checking
from streamhouse.spark.pipelines.model import Pipeline
from streamhouse.spark.pipelines.problems import Problems
from streamhouse.testing import Broker

JOBS = (
    ["compact"],
    ["merge", "orders"],
    ["export", "orders", "--to", "/nowhere"],
    ["verify"],
    ["verify", "--dry-run"],
)
PIPELINE = """\
name: copies
endpoint: {endpoint}
checkpoint: {directory}/checkpoint
sources:
  - name: orders
    topic: {topic}
    format: raw
sinks:
  - name: copies
    from: orders
    topic: copies
"""


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker(http=True, default_partitions=1) as broker:
        for topic in ("orders", "copies"):
            broker.create_topic(topic, 1)
        yield broker


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("ENDPOINT", "BOOTSTRAP", "CONFIG", "METADATA", "OBJECTS"):
        monkeypatch.delenv(f"STREAMHOUSE_{variable}", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    monkeypatch.setenv("STREAMHOUSE_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def nowhere() -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert run(list(arguments)) == 1
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1
    return said.err


def pipeline_file(directory: Path, endpoint: str, topic: str = "orders") -> str:
    file = directory / "copies.yaml"
    file.write_text(PIPELINE.format(endpoint=endpoint, topic=topic, directory=directory))
    return str(file)


@pytest.mark.parametrize("job", JOBS, ids=" ".join)
def test_a_job_does_not_start_spark_for_a_node_that_is_not_there(
    capsys: pytest.CaptureFixture[str], nowhere: str, job: list[str]
) -> None:
    for option, address in (("--bootstrap", nowhere), ("--endpoint", f"http://{nowhere}")):
        assert f"nothing answers at {address}" in failure(capsys, "maintain", *job, option, address)


def test_without_an_address_this_machines_node_is_meant(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, nowhere: str, node: Broker
) -> None:
    monkeypatch.setattr(spark_node, "DEFAULT_BOOTSTRAP", nowhere)
    monkeypatch.setattr(spark_node, "_DEFAULT_ENDPOINT", f"http://{nowhere}")
    assert f"nothing answers at {nowhere}; nothing answers at http://{nowhere}" in failure(capsys, "maintain", "merge")
    for port, address in (("DEFAULT_BOOTSTRAP", node.bootstrap), ("_DEFAULT_ENDPOINT", node.endpoint)):
        with monkeypatch.context() as changed:
            changed.setattr(spark_node, port, address)
            assert spark_node.endpoints_of(None) == node.endpoint


@pytest.mark.parametrize("job", [["compact"], ["merge"], ["verify"], ["export", "--to", "/nowhere"]], ids=" ".join)
def test_a_job_does_not_start_spark_for_a_topic_that_is_not_there(
    capsys: pytest.CaptureFixture[str], node: Broker, job: list[str]
) -> None:
    name, *options = job
    said = failure(capsys, "maintain", name, "misspelt", *options, "--bootstrap", node.bootstrap)
    assert "there is no topic 'misspelt' (`streamhouse topic list` shows" in said
    said = failure(capsys, "maintain", name, "order", *options, "--bootstrap", node.bootstrap)
    assert "there is no topic 'order' (did you mean 'orders'?)" in said


def test_a_topic_that_is_not_compacted_is_refused_without_spark(
    capsys: pytest.CaptureFixture[str], node: Broker
) -> None:
    said = failure(capsys, "maintain", "compact", "orders", "--bootstrap", node.bootstrap)
    assert "topic 'orders' has cleanup.policy=delete, so it is not compacted" in said


def test_a_sound_job_does_start_spark(
    capsys: pytest.CaptureFixture[str], node: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which shows that the others did not try to."""
    started: list[str] = []

    class Started(Exception):
        pass

    def session(job: str, master: str, conf: tuple[str, ...]) -> None:
        started.append(job)
        raise Started

    monkeypatch.setattr(maintain, "_session", session)
    assert run(["maintain", "merge", "orders", "--bootstrap", node.bootstrap]) == 1
    assert started == ["merge"]


def test_the_lost_nodes_of_several_are_kept_for_when_they_are_back(node: Broker, nowhere: str) -> None:
    given = f"{nowhere},http://{nowhere},{node.bootstrap},{node.endpoint}/"
    assert asyncio.run(http_endpoints(given)) == f"{node.endpoint},http://{nowhere}"


def test_a_rebuild_looks_at_both_stores_before_it_starts_spark(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, nowhere: str
) -> None:
    (tmp_path / "objects").mkdir()
    assert run(["maintain", "rebuild", "--data-dir", str(tmp_path / "none")]) == 2
    assert "there is no object store" in capsys.readouterr().err
    database = f"postgresql://streamhouse@{nowhere}/streamhouse"
    place = ("--data-dir", str(tmp_path), "--metadata", database)
    assert "cannot connect to PostgreSQL" in failure(capsys, "maintain", "rebuild", *place)


@pytest.mark.parametrize("command", [["run"], ["run", "--once"], ["validate"]], ids=" ".join)
def test_a_pipeline_does_not_start_spark_for_a_node_that_is_not_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, nowhere: str, node: Broker, command: list[str]
) -> None:
    name, *options = command
    file = pipeline_file(tmp_path, f"http://{nowhere}")
    assert run(["pipeline", name, file, *options]) == 1
    said = capsys.readouterr()
    (line,) = (said.out + said.err).splitlines()
    assert f"{file}:2: cannot ask http://{nowhere} for its topics: nothing answers at http://{nowhere}" in line
    assert run(["pipeline", name, pipeline_file(tmp_path, node.endpoint), *options, "--bootstrap", nowhere]) == 1
    said = capsys.readouterr()
    assert f"nothing answers at {nowhere}" in said.out + said.err


def test_a_pipeline_is_not_run_for_a_topic_that_is_not_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, node: Broker
) -> None:
    file = pipeline_file(tmp_path, "http://127.0.0.1:1", topic="order")
    for address in (node.bootstrap, node.endpoint):
        said = failure(capsys, "pipeline", "run", file, "--bootstrap", address)
        assert f"{file}:6: there is no topic 'order'; did you mean 'orders'?" in said


class FakeSpark:
    """In the place of a session and of what it finds wrong: what had been said when it was started."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.said_before = ""
        self._capsys = capsys
        monkeypatch.setattr(pipeline_run, "open_pipeline_session", self._open)
        monkeypatch.setattr(checking, "_Analysis", self._analysis)

    @contextmanager
    def _open(self, pipeline: Pipeline) -> Iterator[object]:
        self.said_before = self._capsys.readouterr().out
        yield object()

    def _analysis(self, session: object, pipeline: Pipeline, problems: Problems) -> FakeSpark:
        self._problems = problems
        return self

    def run(self) -> None:
        self._problems.add(5, "a mistake that only Spark finds")


def test_what_a_node_says_of_topics_is_told_before_spark_is_started(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, node: Broker
) -> None:
    spark = FakeSpark(capsys, monkeypatch)
    file = pipeline_file(tmp_path, node.endpoint, topic="order")
    of_node = f"{file}:6: there is no topic 'order'; did you mean 'orders'?\n"
    of_spark = f"{file}:5: a mistake that only Spark finds\n"

    assert run(["pipeline", "validate", file]) == 1
    assert (spark.said_before, capsys.readouterr().out) == (of_node, of_spark)

    assert run(["pipeline", "validate", file, "--json"]) == 1
    assert spark.said_before == ""
    assert [problem["line"] for problem in json.loads(capsys.readouterr().out)["problems"]] == [5, 6]

    assert run(["pipeline", "validate", file, "--offline"]) == 1
    assert (spark.said_before, capsys.readouterr().out) == ("", of_spark)


def test_a_problem_of_a_pipeline_is_json_where_json_is_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, nowhere: str
) -> None:
    file = pipeline_file(tmp_path, nowhere)
    assert run(["pipeline", "validate", file, "--json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["line"] == 2
    assert f"nothing answers at {nowhere}" in problem["message"]
