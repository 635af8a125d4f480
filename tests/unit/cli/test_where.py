"""Where commands look: what was named counts, and a node of this machine is asked if nothing was."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from node.wait import eventually
from rest_parts.sending import send
from stored_cluster.shell import ClusterShell
from streamhouse.cli import where
from streamhouse.cli.main import run
from streamhouse.metadata.cluster import AgentInfo
from streamhouse.metadata.store import EpochStart
from streamhouse.model.names import TopicPartition
from streamhouse.testing import Broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """With its database where commands find it."""
    with Broker(http=True, data_dir=tmp_path_factory.mktemp("node"), default_partitions=2) as broker:
        broker.create_topic("orders", 2)
        yield broker


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("METADATA", "CONFIG", "DATA_DIR", "OBJECTS", "BOOTSTRAP"):
        monkeypatch.delenv(f"STREAMHOUSE_{variable}", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Taken, and nobody listens there: as if it were the default address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(where, "DEFAULT_BOOTSTRAP", address)
        yield address


class Said:
    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        capsys.readouterr()
        self.code = run(list(arguments))
        self.out, self.err = capsys.readouterr()

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


def timeless(text: str) -> str:
    """Without what changes while one looks."""
    return re.sub(r"(silent_ms|lease_left_ms)(\W+)\d+|\d+(ms|s) ago|\b\d+s\b|\s+|─+", r" \1", text)


COMMANDS = (["agent", "list"], ["partition", "list"], ["partition", "list", "orders"])


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_a_node_and_its_database_say_the_same(
    broker: Broker, capsys: pytest.CaptureFixture[str], command: list[str], form: list[str]
) -> None:
    data_dir = str(broker.node.settings.data_dir)
    stored = Said(capsys, *command, *form, "--data-dir", data_dir)
    assert (stored.code, stored.err) == (0, "")
    assert "agent" in stored.out
    for address in (broker.bootstrap, broker.endpoint, broker.endpoint.removeprefix("http://")):
        asked = Said(capsys, *command, *form, "--bootstrap", address)
        assert (asked.code, asked.err) == (0, "")
        assert timeless(asked.out) == timeless(stored.out)


@pytest.mark.parametrize("command", [["list", "order"], ["move", "order", "0", "--to", "a1"]], ids=" ".join)
def test_a_misspelt_topic_is_told_the_one_that_is_like_it(
    broker: Broker, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    for place in (
        ("--data-dir", str(broker.node.settings.data_dir)),
        ("--bootstrap", broker.bootstrap),
        ("--bootstrap", broker.endpoint),
    ):
        said = Said(capsys, "partition", *command, *place)
        assert (said.code, said.err) == (1, "error: there is no topic 'order' (did you mean 'orders'?)\n")


@pytest.mark.parametrize("depth", [[], ["--deep"]], ids=["shallow", "deep"])
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_a_node_verifies_as_who_has_the_stores_does(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, depth: list[str], form: list[str]
) -> None:
    with Broker(http=True, data_dir=tmp_path / "node", default_partitions=1) as broker:
        broker.create_topic("orders", 1)
        for count in (3, 4):
            send(broker, "orders", partition=0, count=count)
            broker.flush()
        command = ("cluster", "verify", *depth, *form)
        for is_sound in (True, False):
            stored = Said(capsys, *command, "--data-dir", str(tmp_path / "node"))
            assert stored.code == (0 if is_sound else 1)
            for address in (broker.bootstrap, broker.endpoint):
                asked = Said(capsys, *command, "--bootstrap", address)
                assert (asked.code, asked.out, asked.err) == (stored.code, stored.out, stored.err)
            for segment in (tmp_path / "node" / "objects" / "segments").rglob("*.strm"):
                segment.write_bytes(segment.read_bytes() + b"x")
    assert "bytes instead of" in stored.out


def test_a_node_shows_segments_as_who_has_the_stores_does(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with Broker(http=True, data_dir=tmp_path / "node", default_partitions=2) as broker:
        broker.create_topic("orders", 2)
        for partition in (0, 1):
            send(broker, "orders", partition=partition, count=3)
            broker.flush()
        here = ("--data-dir", str(tmp_path / "node"))
        key = Said(capsys, "segment", "list", "--json", *here).json[0]["key"]
        for command in (
            ["list"],
            ["list", "orders"],
            ["list", "orders", "--partition", "1"],
            ["list", "orders", "--partition", "7"],
            ["list", "order"],
            ["list", key.rpartition("/")[0] + "/"],
            ["show", key, "--records"],
            ["show", key.replace("00000001", "00000002")],
        ):
            for form in ([], ["--json"]):
                stored = Said(capsys, "segment", *command, *form, *here)
                for address in (broker.bootstrap, broker.endpoint):
                    asked = Said(capsys, "segment", *command, *form, "--bootstrap", address)
                    assert (asked.code, asked.out) == (stored.code, stored.out), command
                    assert bool(asked.err) == bool(stored.err)


def test_a_drain_and_a_move_go_through_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(http=True, default_partitions=1) as broker:
        broker.create_topic("orders", 1)
        me = broker.node.broker.identity.agent_id
        at = ("--bootstrap", broker.bootstrap)
        moved = Said(capsys, "partition", "move", "orders", "0", "--to", me, *at)
        assert (moved.code, moved.out) == (0, f"orders/0 is led by {me}, in epoch 1, and pinned to it\n")
        assert Said(capsys, "partition", "list", *at, "--json").json[0]["note"] == f"pinned to {me}"
        freed = Said(capsys, "partition", "move", "orders", "0", "--unpin", *at, "--json")
        assert freed.json == {"topic": "orders", "partition": 0, "pinned_to": None, "leader": me}
        assert "has no partition 7" in Said(capsys, "partition", "move", "orders", "7", "--to", me, *at).err
        assert "there is no agent 'a9'" in Said(capsys, "agent", "drain", "a9", *at).err
        drained = Said(capsys, "agent", "drain", me, "--timeout", "1ms", *at)
        assert drained.code == 1
        assert drained.err.startswith("no other agent is alive")
        assert f"agent '{me}' still leads 1 partition (orders/0) after 1ms" in drained.err
        assert Said(capsys, "agent", "list", *at, "--json").json[0]["state"] == "draining"
        refused = Said(capsys, "partition", "move", "orders", "0", "--to", me, *at)
        assert refused.err == f"error: agent '{me}' is draining (start it again to make it take part)\n"


@pytest.mark.parametrize("http", [True, False])
def test_a_topic_without_a_leader_says_whom_it_waits_for_if_the_node_can_be_asked(
    capsys: pytest.CaptureFixture[str], http: bool
) -> None:
    with Broker(http=http, default_partitions=1) as broker:
        store = broker._metadata
        info = AgentInfo(agent_id="a9", address="", kafka_address="127.0.0.1:1", zone="", agent_group="other")

        async def lead_from_its_disk() -> None:
            await store.register_agent(info, 0)
            topic = await store.create_topic("kept", uuid4(), 1, {"streamhouse.agent.group": "other"})
            (lease,) = await store.acquire_leases("a9", [TopicPartition(topic.topic_id, 0)], 60_000)
            assert lease is not None
            await store.begin_epochs("a9", [EpochStart(lease=lease, offset=0, in_local_wal=True)])
            await store.release_leases("a9", [lease], drained=False)

        broker._run(lead_from_its_disk())
        addresses = [broker.bootstrap, broker.endpoint] if http else [broker.bootstrap]
        for address in addresses:
            described = eventually(lambda address=address: leaderless(capsys, address), "the topic to be known")
            assert ("waits for agent a9, whose disk may hold acknowledged records" in described) is http
            assert re.search(r"^offsets held +-$", described, re.MULTILINE)


def leaderless(capsys: pytest.CaptureFixture[str], address: str) -> str:
    said = Said(capsys, "topic", "describe", "kept", "--bootstrap", address)
    return said.out if "a9" in said.out or "no leader" in said.out else ""


def test_what_flags_name_counts_before_variables(
    broker: Broker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, nowhere: str
) -> None:
    data_dir = str(broker.node.settings.data_dir)
    monkeypatch.setenv("STREAMHOUSE_BOOTSTRAP", nowhere)
    assert f"nothing answers at {nowhere}" in Said(capsys, "agent", "list").err
    assert Said(capsys, "agent", "list", "--data-dir", data_dir).code == 0
    assert Said(capsys, "agent", "list", "--bootstrap", broker.bootstrap).code == 0
    monkeypatch.setenv("STREAMHOUSE_DATA_DIR", data_dir)
    assert f"nothing answers at {nowhere}" in Said(capsys, "agent", "list").err
    monkeypatch.delenv("STREAMHOUSE_BOOTSTRAP")
    assert Said(capsys, "agent", "list").code == 0
    monkeypatch.setenv("STREAMHOUSE_DATA_DIR", "elsewhere")
    assert Said(capsys, "agent", "list", "--bootstrap", broker.endpoint).code == 0


def test_a_settings_file_says_where_to_look(
    broker: Broker, capsys: pytest.CaptureFixture[str], tmp_path: Path, nowhere: str
) -> None:
    config = tmp_path / "streamhouse.toml"
    config.write_text(f'data_dir = "{broker.node.settings.data_dir}"\n')
    assert Said(capsys, "agent", "list", "--config", str(config)).code == 0
    config.write_text('liveness = "1h"\n')
    assert f"nothing answers at {nowhere}" in Said(capsys, "agent", "list", "--config", str(config)).err


def test_without_an_address_the_node_of_this_machine_is_asked_and_then_its_directory(
    broker: Broker,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    nowhere: str,
) -> None:
    silent = Said(capsys, "partition", "list")
    assert (silent.code, silent.out) == (1, "")
    assert silent.err.startswith(f"error: nothing answers at {nowhere} (give --bootstrap")
    (tmp_path / "streamhouse-data").symlink_to(broker.node.settings.data_dir)
    stored = Said(capsys, "partition", "list")
    assert stored.code == 0
    assert stored.err == f"nothing answers at {nowhere}: this is what ./streamhouse-data holds\n"
    monkeypatch.setattr(where, "DEFAULT_BOOTSTRAP", broker.bootstrap)
    asked = Said(capsys, "partition", "list")
    assert (asked.code, asked.err) == (0, "")
    assert timeless(asked.out) == timeless(stored.out)


def test_both_a_node_and_a_store_are_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--metadata", "--data-dir", "--metadata-file"):
        refused = Said(capsys, "agent", "list", "--bootstrap", "127.0.0.1:1", option, "sqlite:x")
        assert refused.code == 2
        assert "give either --bootstrap, to ask a node, or --" in refused.err


@pytest.mark.parametrize("address", ["", "one two", "127.0.0.1:99999", "http://", "127.0.0.1:1,"])
def test_what_is_no_address_is_refused_before_anything_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    for command in (["agent", "list"], ["topic", "list"]):
        assert Said(capsys, *command, "--bootstrap", address).code == 2
    if address:
        monkeypatch.setenv("STREAMHOUSE_BOOTSTRAP", address)
        assert Said(capsys, "agent", "list").code == 2


@pytest.mark.parametrize(
    "command", [["agent", "forget", "a1"], ["partition", "elect", "orders", "0", "--unclean", "--yes"]], ids=" ".join
)
def test_what_only_the_database_may_do_says_so(
    broker: Broker, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    refused = Said(capsys, *command, "--bootstrap", broker.bootstrap)
    assert refused.code == 2
    assert (
        "is for who has the database, and no node does it: give --metadata or --data-dir; not --bootstrap"
        in refused.err
    )
    told = Said(capsys, *command[:2], "--help")
    assert "for who has the database" in " ".join(told.out.split())


@pytest.mark.parametrize(
    "command", [["agent", "forget", "a1"], ["partition", "elect", "orders", "0", "--unclean", "--yes"]], ids=" ".join
)
def test_what_only_the_database_may_do_is_not_done_to_the_one_in_this_directory_for_another_cluster(
    broker: Broker,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: list[str],
) -> None:
    (tmp_path / "streamhouse-data").symlink_to(broker.node.settings.data_dir)
    assert Said(capsys, *command).code == 1
    monkeypatch.setenv("STREAMHOUSE_BOOTSTRAP", "a1.example.com:9092")
    refused = Said(capsys, *command)
    assert refused.code == 2
    assert "give --metadata or --data-dir; STREAMHOUSE_BOOTSTRAP names nodes only" in refused.err
    assert Said(capsys, *command, "--data-dir", "streamhouse-data").code == 1


def test_a_cluster_in_a_database_is_left_to_who_named_it(shell: ClusterShell) -> None:
    shell.register("a1")
    assert [agent["agent_id"] for agent in shell.json("agent", "list")] == ["a1"]


def test_a_message_for_a_port_that_is_no_flume_port_is_said_to_be_refused_and_not_to_be_lost(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    address = broker.endpoint.removeprefix("http://")
    refused = Said(capsys, "flume", "produce", "--broker", address, "--topic", "orders", "--message", "hello")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith(f"error: what answers at {address} is no Flume broker: it is an HTTP server")


def test_of_several_addresses_the_one_that_answers_is_asked(
    broker: Broker, capsys: pytest.CaptureFixture[str], nowhere: str
) -> None:
    for given in (
        f"{nowhere},{broker.bootstrap}",
        f"http://{nowhere},{broker.endpoint}",
        f"{broker.bootstrap},{nowhere}",
    ):
        for command in (["agent", "list"], ["cluster", "verify"], ["topic", "list"]):
            assert Said(capsys, *command, "--bootstrap", given).code == 0, (command, given)
