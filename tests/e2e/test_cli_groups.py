"""`streamhouse group …` against a real node and the groups that a real consumer makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest

from node.wait import eventually
from streamhouse.cli.main import run
from streamhouse.testing import Broker

RECORDS = 10
READ = 4


class Shell:
    """Runs the command in this process, as the console script does."""

    def __init__(self, bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.bootstrap = bootstrap
        self._capsys = capsys

    def run(self, *arguments: str) -> tuple[int, str, str]:
        code = run(["group", *arguments, "--bootstrap", self.bootstrap])
        captured = self._capsys.readouterr()
        return code, captured.out, captured.err

    def ok(self, *arguments: str) -> str:
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def fails(self, *arguments: str) -> str:
        code, _, err = self.run(*arguments)
        assert code == 1
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        return err


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def shell(broker: Broker, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(broker.bootstrap, capsys)


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A topic of this test's own, with ten records in partition 0 and none in partition 1."""
    name: str = request.node.name.replace("[", "-").replace("]", "")[-60:]
    broker.create_topic(name, 2)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for index in range(RECORDS):
        producer.produce(name, f"{index}", partition=0, timestamp=1_700_000_000_000 + index)
    assert producer.flush(60) == 0
    return name


@contextmanager
def consumer_of(
    bootstrap: str, group: str, topic: str, protocol: str = "classic"
) -> Iterator[confluent_kafka.Consumer]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": f"client-of-{group}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        yield consumer
    finally:
        consumer.close()


@contextmanager
def member(bootstrap: str, group: str, topic: str, protocol: str = "classic") -> Iterator[None]:
    """A consumer that has joined and has committed that it read four records."""
    with consumer_of(bootstrap, group, topic, protocol) as consumer:
        eventually(lambda: consumer.poll(0.1), "the first record")
        consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, READ)], asynchronous=False)
        yield


def committed(shell: Shell, group: str) -> dict[int, int | None]:
    return {one["partition"]: one["committed_offset"] for one in shell.json("describe", group)["partitions"]}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_listed_and_described_with_members_and_lag(shell: Shell, topic: str, protocol: str) -> None:
    group = f"described-{protocol}"
    with member(shell.bootstrap, group, topic, protocol):
        assert {"group": group, "state": "Stable", "type": protocol} in shell.json("list")
        of_type = shell.json("list", "--type", protocol, "--state", "stable")
        assert group in [found["group"] for found in of_type]
        assert group not in [found["group"] for found in shell.json("list", "--state", "empty")]

        described = shell.json("describe", group)
        assert (described["state"], described["type"], described["lag"]) == ("Stable", protocol, RECORDS - READ)
        assert described["assignor"] != ""
        (joined,) = described["members"]
        assert joined["client_id"] == f"client-of-{group}"
        assert "127.0.0.1" in joined["host"]
        assert joined["partitions"] == [{"topic": topic, "partition": 0}, {"topic": topic, "partition": 1}]
        first, second = described["partitions"]
        assert (first["committed_offset"], first["end_offset"], first["lag"]) == (READ, RECORDS, RECORDS - READ)
        assert first["member_id"] == joined["member_id"]
        assert (second["committed_offset"], second["end_offset"], second["lag"]) == (None, 0, None)
        assert f"{topic}/0,1" in shell.ok("describe", group)

    assert {"group": group, "state": "Empty", "type": protocol} in shell.json("list")
    assert shell.json("describe", group)["members"] == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_reset_is_refused_while_there_are_members_and_done_when_they_left(
    shell: Shell, topic: str, protocol: str
) -> None:
    group = f"reset-{protocol}"
    with member(shell.bootstrap, group, topic, protocol):
        for dry_run in ([], ["--dry-run"]):
            refusal = shell.fails("reset", group, "--topic", topic, "--to-earliest", *dry_run)
            assert "has members (stop its consumers first" in refusal
        assert "has members" in shell.fails("delete", group, "--yes")
        assert committed(shell, group) == {0: READ, 1: None}

    planned = shell.json("reset", group, "--all-topics", "--to-latest", "--dry-run")
    assert planned["dry_run"] is True
    assert [(move["old_offset"], move["new_offset"]) for move in planned["partitions"]] == [(READ, RECORDS), (None, 0)]
    assert "nothing was changed" in shell.ok("reset", group, "--topic", topic, "--to-latest", "--dry-run")
    assert committed(shell, group) == {0: READ}

    assert "moved 2 partitions" in shell.ok("reset", group, "--topic", topic, "--to-latest")
    assert committed(shell, group) == {0: RECORDS, 1: 0}


def test_a_moved_group_reads_on_from_where_it_was_put(shell: Shell, topic: str) -> None:
    with member(shell.bootstrap, "moved", topic):
        pass
    shell.ok("reset", "moved", "--topic", topic, "--to-offset", "7")

    with consumer_of(shell.bootstrap, "moved", topic) as consumer:
        message = eventually(lambda: consumer.poll(0.1), "a record")

    assert message is not None
    assert (message.error(), message.offset(), message.value()) == (None, 7, b"7")


def test_every_target_moves_a_group_that_did_not_exist(shell: Shell, topic: str) -> None:
    def moved(*options: str) -> int | None:
        shell.ok("reset", "fresh", "--topic", topic, *options)
        return committed(shell, "fresh")[0]

    assert moved("--to-earliest") == 0
    assert moved("--shift-by", "3") == 3
    assert moved("--shift-by", "-2") == 1
    assert moved("--shift-by", "1000") == RECORDS
    assert moved("--to-offset", "1000") == RECORDS
    assert moved("--to-time", "@1700000000006") == 6
    assert moved("--to-time", "2023-11-14T22:13:20.002Z") == 2
    assert moved("--to-time", "2033-01-01T00:00:00Z") == RECORDS


def test_a_deleted_group_is_gone_with_its_offsets(shell: Shell, topic: str) -> None:
    shell.ok("reset", "doomed", "--topic", topic, "--to-latest")

    assert shell.ok("delete", "doomed", "--yes") == "deleted doomed\n"

    assert "doomed" not in [found["group"] for found in shell.json("list")]
    assert "there is no group 'doomed' (`streamhouse group list`" in shell.fails("describe", "doomed")
    assert "there is no group 'doomed'" in shell.fails("delete", "doomed", "--yes")
    assert "committed nothing" in shell.fails("reset", "doomed", "--all-topics", "--to-latest")


def test_a_topic_that_does_not_exist_is_named_with_the_one_that_is_like_it(shell: Shell, topic: str) -> None:
    assert "there is no topic 'nowhere'" in shell.fails("reset", "any", "--topic", "nowhere", "--to-latest")
    misspelt = f"{topic}x"
    refusal = shell.fails("reset", "any", "--topic", topic, "--topic", misspelt, "--to-latest")
    assert f"there is no topic {misspelt!r} (did you mean {topic!r}?)" in refusal
