"""`produce` to topics that are not there, `consume` from offsets that are not there, and as a member of a group."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from node.process import clean_environment
from node.wait import HUNG_SECONDS, eventually
from streamhouse.cli.main import run
from streamhouse.testing import Broker

COMMAND = [sys.executable, "-m", "streamhouse"]


class Shell:
    """Runs the command in this process, as the console script does, or as one of its own."""

    def __init__(self, broker: Broker, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        self.broker = broker
        self._captured = capfdbinary

    def run(self, *arguments: str) -> tuple[int, str, str]:
        address = () if "--bootstrap" in arguments else ("--bootstrap", self.broker.bootstrap)
        code = run([*arguments, *address])
        sys.stdout.flush()
        out, err = self._captured.readouterr()
        return code, out.decode(), err.decode()

    def ok(self, *arguments: str) -> tuple[str, str]:
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return out, err

    def records(self, *arguments: str) -> list[str]:
        return self.ok("consume", *arguments)[0].split()

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """A process of its own, which is gone at the end of the block."""
        environment = {**clean_environment(), "STREAMHOUSE_BOOTSTRAP": self.broker.bootstrap}
        with subprocess.Popen(
            [*COMMAND, *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Who runs the tests in the background has SIGINT ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def group(self, name: str) -> dict[str, Any]:
        """Of one that there is not yet, nothing."""
        code, out, _ = self.run("group", "describe", name, "--json")
        described: dict[str, Any] = {"members": [], "partitions": []} if code else json.loads(out)
        return described

    def committed(self, name: str) -> dict[int, int]:
        return {place["partition"]: place["committed_offset"] for place in self.group(name)["partitions"]}

    def shares(self, name: str) -> list[int]:
        """How many partitions each member has."""
        return sorted(len(member["partitions"]) for member in self.group(name)["members"])


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(http=True, default_partitions=3, group_consumer_heartbeat_interval=100) as broker:
        yield broker


@pytest.fixture
def shell(broker: Broker, capfdbinary: pytest.CaptureFixture[bytes]) -> Shell:
    return Shell(broker, capfdbinary)


@pytest.fixture
def topic(broker: Broker, shell: Shell, request: pytest.FixtureRequest) -> str:
    """A topic of this test's own: 0 to 4 in partition 0, 5 to 7 in partition 1."""
    name: str = request.node.name.replace("[", "-").replace("]", "")[-60:]
    broker.create_topic(name, 2)
    for number in range(8):
        shell.ok("produce", name, "--partition", str(number // 5), "--message", str(number))
    return name


# Topics that were not there


def test_a_topic_that_was_made_for_a_mistyped_name_is_said_so(broker: Broker, shell: Shell) -> None:
    broker.create_topic("deliveries", 1)

    out, err = shell.ok("produce", "delivreies", "--key", "k", "--message", "x", "--json")

    assert json.loads(out)["offset"] == 0
    assert err == "there was no topic 'delivreies': made it, with 3 partitions; did you mean 'deliveries'?\n"
    assert shell.ok("produce", "delivreies", "--message", "x")[1] == ""


def test_a_topic_that_was_made_and_is_like_no_other_is_said_so(shell: Shell) -> None:
    assert shell.ok("produce", "zzz", "--message", "x")[1] == "there was no topic 'zzz': made it, with 3 partitions\n"


def test_a_topic_that_was_made_for_a_benchmark_and_stays_is_said_so(broker: Broker, shell: Shell) -> None:
    broker.create_topic("measured", 2)
    quickly = ("bench", "--records", "10", "--probes", "1", "--partitions", "2", "--topic")
    made = "there was no topic 'meausred': made it, with 2 partitions; did you mean 'measured'?"

    assert shell.ok(*quickly, "meausred")[1].splitlines()[0] == made
    assert "there was no topic" not in shell.ok(*quickly, "meausred")[1]
    assert "there was no topic" not in shell.ok(*quickly[:-1])[1]


def test_a_topic_that_cannot_be_found_is_told_the_one_that_is_like_it(broker: Broker, shell: Shell) -> None:
    broker.create_topic("invoices", 1)

    for command in (
        ("consume", "invioces"),
        ("consume", "invioces", "--group", "g"),
        ("topic", "describe", "invioces"),
        ("topic", "alter", "invioces", "--partitions", "9"),
        ("topic", "delete", "invioces", "--yes"),
    ):
        code, out, err = shell.run(*command)
        assert (code, out) == (1, "")
        assert err == "error: there is no topic 'invioces' (did you mean 'invoices'?)\n"


# Offsets that are not there


def test_an_offset_beyond_the_end_says_where_the_log_ends(shell: Shell, topic: str) -> None:
    out, err = shell.ok("consume", topic, "--offset", "7")

    assert out == ""
    assert err.splitlines() == [
        f"{topic}/0 ends at offset 5: there is no offset 7 yet",
        f"{topic}/1 ends at offset 3: there is no offset 7 yet",
    ]


def test_a_time_after_the_last_record_is_told_of(shell: Shell, topic: str) -> None:
    said = "has no record of 2099-01-01T00:00:00.000Z or later yet\n"
    for time in ("@2099-01-01T00:00:00Z", "@4070908800000"):
        assert shell.ok("consume", topic, "--offset", time) == ("", f"{topic} {said}")
        assert shell.ok("consume", topic, "--offset", time, "--partition", "1") == ("", f"{topic}/1 {said}")


def test_a_time_that_one_partition_reaches_is_nothing_to_tell_of(broker: Broker, shell: Shell) -> None:
    broker.create_topic("half", 2)
    shell.ok("produce", "half", "--partition", "1", "--message", "there")

    assert shell.ok("consume", "half", "--offset", "@1000") == ("there\n", "")


def test_of_each_partition_is_said_what_holds_of_it(shell: Shell, topic: str) -> None:
    out, err = shell.ok("consume", topic, "--offset", "4")

    assert out == "4\n"
    assert err == f"{topic}/1 ends at offset 3: there is no offset 4 yet\n"
    assert shell.ok("consume", topic, "--offset", "0")[1] == ""
    assert "ends at offset 5: there is no offset 5 yet" in shell.ok("consume", topic, "-p", "0", "--offset", "5")[1]


def test_an_offset_before_the_first_one_held_says_where_the_log_begins(
    broker: Broker, shell: Shell, topic: str
) -> None:
    import asyncio

    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster

    async def delete() -> None:
        async with Cluster.connect(broker.bootstrap) as cluster:
            await Admin(cluster).delete_records(topic, {0: 3})

    asyncio.run(delete())
    out, err = shell.ok("consume", topic, "--offset", "1")

    assert sorted(out.split()) == ["3", "4", "6", "7"]
    assert err == f"{topic}/0 begins at offset 3: what was before it is no longer held\n"


def test_who_follows_from_beyond_the_end_waits_for_that_offset(shell: Shell, topic: str) -> None:
    with shell.started("consume", topic, "--partition", "1", "--offset", "5", "--follow", "-n", "2") as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert following.stderr.readline().decode() == f"{topic}/1 ends at offset 3: waiting for offset 5\n"
        for number in range(3, 8):
            shell.ok("produce", topic, "--partition", "1", "--message", f"at {number}")
        assert following.stdout.read() == b"at 5\nat 6\n"
        assert following.wait(HUNG_SECONDS) == 0


# Groups


def test_a_group_goes_on_where_it_was(shell: Shell, topic: str) -> None:
    assert sorted(shell.records(topic, "--group", "again")) == [str(number) for number in range(8)]
    assert shell.committed("again") == {0: 5, 1: 3}
    shell.ok("produce", topic, "--partition", "1", "--message", "new")

    assert shell.records(topic, "--group", "again", "--from-beginning") == ["new"]
    assert shell.group("again")["members"] == []


def test_a_group_is_joined_by_a_nodes_http_address_too(broker: Broker, shell: Shell, topic: str) -> None:
    code, out, err = shell.run("consume", topic, "--group", "by-http", "--bootstrap", broker.endpoint)

    assert (code, err) == (0, "")
    assert len(out.split()) == 8


def test_only_what_was_printed_is_committed(shell: Shell, topic: str) -> None:
    first = shell.records(topic, "--group", "some", "--max-messages", "3")
    assert sum(shell.committed("some").values()) == 3
    rest = shell.records(topic, "--group", "some")

    assert len(first) == 3
    assert sorted(first + rest) == [str(number) for number in range(8)]


def test_a_group_that_follows_begins_with_what_is_new_unless_told_otherwise(shell: Shell, topic: str) -> None:
    with shell.started("consume", topic, "--group", "news", "--follow", "-n", "1") as following:
        assert following.stdout is not None
        eventually(lambda: shell.shares("news") == [2], "the assignment")
        eventually(lambda: _said(shell, topic, following), "a record that came after it had looked where to begin")
    assert shell.records(topic, "--group", "all", "--follow", "--from-beginning", "-n", "8")


def _said(shell: Shell, topic: str, following: subprocess.Popen[bytes]) -> bool:
    shell.ok("produce", topic, "--message", "new")
    if following.poll() is None:
        return False
    assert following.stdout is not None
    assert following.stdout.read() == b"new\n"
    return True


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_is_stopped_has_committed_what_it_printed_and_leaves(
    shell: Shell, topic: str, number: signal.Signals, code: int
) -> None:
    name = f"stopped-{number}"
    with shell.started("consume", topic, "--group", name, "--follow", "--from-beginning") as member:
        assert member.stdout is not None
        assert member.stderr is not None
        printed = sorted(int(member.stdout.readline()) for _ in range(8))
        member.send_signal(number)
        assert member.wait(HUNG_SECONDS) == code
        assert (member.stdout.read(), member.stderr.read()) == (b"", b"")

    assert printed == list(range(8))
    assert shell.committed(name) == {0: 5, 1: 3}
    assert shell.group(name)["members"] == []


def test_members_share_the_partitions_and_one_without_any_says_why_it_waits(shell: Shell, topic: str) -> None:
    arguments = ("consume", topic, "--group", "shared", "--follow", "--from-beginning", "--format", "%p")
    with shell.started(*arguments), shell.started(*arguments):
        eventually(lambda: shell.shares("shared") == [1, 1], "a half each")
        with shell.started(*arguments) as third:
            assert third.stderr is not None
            assert b"other members of 'shared' have all partitions" in third.stderr.readline()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--group", "g", "--offset", "3"), "`streamhouse group reset` moves it"),
        (("--group", "g", "--partition", "0"), "--partition is for reading without one"),
        (("--group", ""), "not a group id"),
    ],
)
def test_what_makes_no_sense_for_a_group_is_wrong_usage(shell: Shell, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = shell.run("consume", "any", *arguments)

    assert (code, out) == (2, "")
    assert said in err


def test_a_reader_that_leaves_early_has_committed_nothing_that_it_did_not_get(shell: Shell, topic: str) -> None:
    with shell.started("consume", topic, "--group", "left", "--follow", "--from-beginning") as member:
        assert member.stdout is not None
        assert member.stderr is not None
        member.stdout.close()
        assert member.wait(HUNG_SECONDS) == 141
        assert member.stderr.read() == b""
    assert set(shell.committed("left").values()) <= {None}
