"""The real command against a real node, as somebody at a terminal uses it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from node.process import Node, NodeDied, clean_environment
from node.wait import HUNG_SECONDS, eventually

COMMAND = [sys.executable, "-m", "streamhouse"]


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Terminal:
    """Runs `streamhouse` with a bootstrap address in its environment."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.environment = {**clean_environment(), "STREAMHOUSE_BOOTSTRAP": node.bootstrap}

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*COMMAND, *arguments], input=stdin, capture_output=True, env=self.environment, timeout=HUNG_SECONDS
        )

    def ok(self, *arguments: str, stdin: bytes = b"") -> str:
        result = self.run(*arguments, stdin=stdin)
        assert result.returncode == 0, result.stderr.decode()
        return result.stdout.decode()

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def fails(self, *arguments: str, stdin: bytes = b"", code: int = 1) -> str:
        """The one line that says why."""
        result = self.run(*arguments, stdin=stdin)
        assert result.returncode == code, result.stdout.decode()
        message = result.stderr.decode()
        assert message.startswith("error: ")
        assert message.count("\n") == 1
        return message

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        # Who runs the tests in the background has SIGINT ignored, and children inherit that.
        return subprocess.Popen([*COMMAND, *arguments], env=self.environment, preexec_fn=_heed_interrupts, **options)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with Node(tmp_path_factory.mktemp("node"), "--no-auto-create-topics") as node:
        yield Terminal(node)


@pytest.fixture
def topic(terminal: Terminal, request: pytest.FixtureRequest) -> str:
    """A topic of this test's own, with two partitions."""
    name = request.node.name.partition("[")[0][-60:]
    terminal.ok("topic", "create", name, "--partitions", "2")
    return name


def test_a_topic_lives_from_create_to_delete(terminal: Terminal) -> None:
    created = terminal.json("topic", "create", "life", "--partitions", "3", "--config", "retention.ms=7d")
    assert created["created"] is True
    assert len(created["partitions"]) == 3
    assert created["configs"]["retention.ms"] == {"value": "604800000", "is_default": False, "has_effect": True}
    assert "exists" in terminal.fails("topic", "create", "life")
    assert terminal.json("topic", "create", "life", "--if-not-exists")["created"] is False
    assert "life" in [found["name"] for found in terminal.json("topic", "list")]

    altered = terminal.json(
        "topic", "alter", "life", "--config", "segment.bytes=2MiB", "--delete-config", "retention.ms"
    )
    assert altered["configs"]["segment.bytes"]["value"] == "2097152"
    assert altered["configs"]["retention.ms"]["is_default"] is True
    described = terminal.ok("topic", "describe", "life")
    assert "segment.bytes" in described
    assert "2097152" in described

    assert "4 partitions" in terminal.ok("topic", "alter", "life", "--partitions", "4")
    assert "not be an increase" in terminal.fails("topic", "alter", "life", "--partitions", "2")
    assert len(terminal.json("topic", "alter", "life", "--partitions", "5")["partitions"]) == 5

    declined = terminal.run("topic", "delete", "life", stdin=b"n\n")
    assert declined.returncode == 1
    terminal.ok("topic", "delete", "life", stdin=b"y\n")
    assert "no topic 'life'" in terminal.fails("topic", "describe", "life")


def test_configs_that_do_nothing_are_shown_on_request_and_when_they_are_set(terminal: Terminal, topic: str) -> None:
    def shown(*arguments: str) -> dict[str, list[str]]:
        printed = terminal.ok("topic", "describe", topic, *arguments)
        lines = (line.split("  ") for line in printed.partition("config ")[2].splitlines()[2:])
        return {line[0]: [part.strip() for part in line[1:] if part.strip()] for line in lines}

    assert shown()["retention.ms"] == ["604800000 (7d)", "default"]
    assert shown()["retention.bytes"] == ["-1 (no limit)", "default"]
    assert "flush.ms" not in shown()
    assert b"configs without an effect here, which --all shows" in terminal.run("topic", "describe", topic).stderr
    assert shown("--all")["flush.ms"][1:] == ["default", "no effect here"]
    assert shown("--all")["retention.ms"] == ["604800000 (7d)", "default"]
    assert set(terminal.json("topic", "describe", topic)["configs"]) == shown("--all").keys()

    terminal.ok("topic", "alter", topic, "--config", "flush.ms=1s")

    assert shown()["flush.ms"] == ["1000 (1s)", "topic", "no effect here"]
    assert terminal.json("topic", "describe", topic)["configs"]["flush.ms"] == {
        "value": "1000",
        "is_default": False,
        "has_effect": False,
    }


def test_a_config_that_makes_no_sense_is_wrong_usage(terminal: Terminal) -> None:
    assert "write 7d, 12h," in terminal.fails("topic", "create", "wrong", "--config", "retention.ms=soon", code=2)
    assert "perhaps retention.ms" in terminal.fails("topic", "alter", "any", "--delete-config", "retention.m", code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("topic", "create", "wrong", "--config", "segment.bytes=2KiB"), "segment.bytes"),
        (("topic", "delete", "missing", "--yes"), "missing"),
        (("topic", "alter", "missing", "--config", "retention.ms=1"), "missing"),
        (("produce", "missing", "--message", "x"), "no topic 'missing'"),
        (("consume", "missing"), "no topic 'missing'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_refusal_says_what_is_wrong(terminal: Terminal, arguments: tuple[str, ...], message: str) -> None:
    assert message in terminal.fails(*arguments)


def test_a_single_record_comes_back_as_it_was_sent(terminal: Terminal, topic: str) -> None:
    said = terminal.ok(
        "produce",
        topic,
        "--key",
        "k\u00e9y",
        "--message",
        "hello",
        "--header",
        "a=1",
        "--header",
        "b=",
        "--partition",
        "1",
    )
    assert said == "partition 1 offset 0\n"

    record = json.loads(terminal.ok("consume", topic, "--json"))

    assert record.pop("timestamp_ms") > 0
    assert record == {
        "topic": topic,
        "partition": 1,
        "offset": 0,
        "key": "k\u00e9y",
        "value": "hello",
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "value": ""}],
    }


def test_lines_of_stdin_become_records_with_keys(terminal: Terminal, topic: str) -> None:
    lines = b"".join(b"%d=value %d\n" % (number % 7, number) for number in range(500))

    said = terminal.ok("produce", topic, "--key-separator", "=", "--compression", "lz4", stdin=lines)
    consumed = terminal.ok("consume", topic, "--format", "%k=%v")

    assert "offsets 0 to" in said
    assert sorted(consumed.encode().splitlines()) == sorted(lines.splitlines())
    for key in range(7):
        values = [line for line in consumed.splitlines() if line.startswith(f"{key}=")]
        assert values == [f"{key}=value {number}" for number in range(500) if number % 7 == key]


def test_bytes_that_are_no_text_pass_through_a_pipe_unchanged(terminal: Terminal, topic: str) -> None:
    values = b"\xff\xfe\x00\x1b[31m\n\r\n\t\n"

    terminal.ok("produce", topic, "--partition", "0", stdin=values)

    assert terminal.run("consume", topic).stdout == values


def test_a_line_without_the_separator_is_refused_and_named(terminal: Terminal, topic: str) -> None:
    assert "no separator here" in terminal.fails("produce", topic, "--key-separator", "=", stdin=b"no separator here\n")


def test_a_tombstone_is_null_and_not_empty(terminal: Terminal, topic: str) -> None:
    terminal.ok("produce", topic, "--key", "gone", "--null")

    record = json.loads(terminal.ok("consume", topic, "--json"))

    assert (record["key"], record["value"]) == ("gone", None)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement_stores_the_record(terminal: Terminal, acks: str) -> None:
    topic = f"acks-{acks}"
    terminal.ok("topic", "create", topic, "--partitions", "1")

    said = terminal.ok("produce", topic, "--message", "x", "--acks", acks)

    assert said == ("partition 0 offset unknown\n" if acks == "0" else "partition 0 offset 0\n")
    eventually(lambda: terminal.ok("consume", topic) == "x\n", "the record")


def test_consuming_starts_where_it_is_told(terminal: Terminal, topic: str) -> None:
    terminal.ok("produce", topic, "--partition", "0", stdin=b"0\n1\n2\n3\n4\n")
    stamps = terminal.ok("consume", topic, "--format", "%T").split()

    def consumed(*arguments: str) -> list[str]:
        return terminal.ok("consume", topic, *arguments).split()

    assert consumed() == consumed("--from-beginning") == ["0", "1", "2", "3", "4"]
    assert consumed("--partition", "0", "--offset", "3") == ["3", "4"]
    assert consumed("--offset", "-2") == ["3", "4"]
    assert consumed("--offset", "latest") == []
    assert consumed("--max-messages", "2") == ["0", "1"]
    assert consumed("--partition", "1") == []
    assert consumed("--offset", f"@{stamps[0]}") == ["0", "1", "2", "3", "4"]
    assert consumed("--offset", f"@{int(stamps[-1]) + 1}") == []
    assert "no partition 9" in terminal.fails("consume", topic, "--partition", "9")


def test_following_prints_new_records_and_ends_cleanly_at_ctrl_c(terminal: Terminal, topic: str) -> None:
    terminal.ok("produce", topic, "--message", "before")
    with terminal.start(
        "consume", topic, "--follow", "--from-beginning", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert following.stdout.readline() == b"before\n"
        terminal.ok("produce", topic, "--message", "after")
        assert following.stdout.readline() == b"after\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(HUNG_SECONDS) == 130
        assert following.stderr.read() == b""


def test_ctrl_c_while_waiting_for_input_ends_at_once(terminal: Terminal, topic: str) -> None:
    with terminal.start(
        "produce", topic, "--json", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as producing:
        assert producing.stdin is not None
        producing.stdin.write(b"one\n")
        producing.stdin.flush()
        eventually(lambda: terminal.ok("consume", topic) == "one\n", "the line that was typed")
        producing.send_signal(signal.SIGINT)
        assert producing.wait(HUNG_SECONDS) == 130
        assert producing.stderr is not None
        assert producing.stderr.read() == b""


def test_a_reader_that_leaves_early_causes_no_complaint(terminal: Terminal, topic: str) -> None:
    terminal.ok("produce", topic, stdin=b"x" * 99 + b"\n" + b"\n".join([b"y" * 99] * 20_000))
    with terminal.start("consume", topic, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as consuming:
        assert consuming.stdout is not None
        assert consuming.stderr is not None
        consuming.stdout.readline()
        consuming.stdout.close()
        assert consuming.wait(HUNG_SECONDS) == 141
        assert consuming.stderr.read() == b""


def test_hostile_values_are_escaped_on_a_terminal(terminal: Terminal, topic: str) -> None:
    terminal.ok("produce", topic, "--partition", "0", stdin=b"\x1b]0;owned\x07\n[bold]markup[/bold]\n")
    main, side = pty.openpty()
    with terminal.start("consume", topic, stdout=side) as consuming:
        os.close(side)
        shown = _read_all(main)
        assert consuming.wait(HUNG_SECONDS) == 0
    os.close(main)

    assert shown.splitlines() == [b"\\x1b]0;owned\\x07", b"[bold]markup[/bold]"]


def _read_all(fd: int) -> bytes:
    """Until the other side of the terminal is closed, which Linux reports as an error."""
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


def test_nobody_at_the_address_says_how_to_start_a_broker(terminal: Terminal, tmp_path: Path) -> None:
    assert "start one with `streamhouse serve`" in terminal.fails("topic", "list", "--bootstrap", "127.0.0.1:1")


def test_a_benchmark_measures_and_leaves_nothing_behind(terminal: Terminal) -> None:
    before = terminal.json("topic", "list")

    measured = terminal.json("bench", "--records", "2000", "--partitions", "2", "--probes", "20")

    assert [phase["name"] for phase in measured["result"]["phases"]] == ["produce", "consume"]
    assert all(phase["records_per_second"] > 0 for phase in measured["result"]["phases"])
    assert 0 < measured["result"]["latencies"]["p50"] <= measured["result"]["latencies"]["max"]
    assert terminal.json("topic", "list") == before


def test_segments_can_be_listed_and_looked_into(tmp_path: Path) -> None:
    with Node(tmp_path, "--segment-age", "100ms") as node:
        terminal = Terminal(node)
        where = ("--data-dir", str(node.data_dir))
        assert terminal.json("segment", "list", *where) == []
        terminal.ok("topic", "create", "orders", "--partitions", "1")
        terminal.ok("produce", "orders", stdin=b"one\ntwo\nthree\n")

        (listed,) = eventually(lambda: terminal.json("segment", "list", *where), "the upload")
        key = listed["key"]
        shown = terminal.json("segment", "show", key, "--records", *where)
        assert shown["footer"]["record_count"] == 3
        assert [record["value"] for record in shown["records"]] == ["one", "two", "three"]
        file = node.data_dir / "objects" / key
        assert terminal.ok("segment", "show", str(file), "--records", "--format", "%o:%v").endswith(
            "0:one\n1:two\n2:three\n"
        )
        assert "segment list" in terminal.fails("segment", "show", "segments/none", *where)


def test_the_wal_of_a_crashed_node_can_be_looked_into(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        terminal = Terminal(node)
        terminal.ok("topic", "create", "orders", "--partitions", "1")
        terminal.ok("produce", "orders", "--message", "precious")
        node.kill9()

        files = terminal.json("wal", "show", "--data-dir", str(tmp_path), "--entries")["files"]

    entries = [entry for file in files for entry in file["entries"]]
    assert [(entry["partition"], entry["base_offset"], entry["end_offset"]) for entry in entries] == [(0, 0, 1)]
    assert all(file["problem"] is None for file in files)


def test_a_node_announces_itself_drains_and_exits_with_zero(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        doors = f"grpc={node.grpc_address} flume={node.flume_address}"
        assert node.stdout() == f"ready kafka={node.bootstrap} http={node.host}:{node.http_port} {doors}\n"
        terminal = Terminal(node)
        terminal.ok("topic", "create", "orders", "--partitions", "1")
        terminal.ok("produce", "orders", "--message", "kept")
        assert node.terminate() == 0

        listed = terminal.json("segment", "list", "--data-dir", str(tmp_path))

    assert len(listed) == 1


def test_a_second_node_on_the_same_directory_is_refused(terminal: Terminal) -> None:
    with pytest.raises(NodeDied) as died, Node(terminal.node.data_dir):
        pass

    assert died.value.exit_code == 1
    assert died.value.stderr.splitlines()[-1].startswith("error: ")
    assert str(terminal.node.data_dir) in died.value.stderr
    assert "Traceback" not in died.value.stderr


def test_settings_reach_the_node_from_file_and_variable(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text('segment_age = "3s"\ndefault_partitions = 7\n')
    environment = {"STREAMHOUSE_CONFIG": str(file), "STREAMHOUSE_DEFAULT_PARTITIONS": "5"}
    with Node(tmp_path / "data", env=environment) as node:
        described = Terminal(node).json("topic", "create", "orders")

    assert len(described["partitions"]) == 5
    assert described["configs"]["segment.ms"]["value"] == "3000"
