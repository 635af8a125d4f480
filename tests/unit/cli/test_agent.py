"""`streamhouse agent …`: who is there, what a drain says and waits for, and that without a verb an agent runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from node.wait import eventually
from stored_cluster.logs import execute
from stored_cluster.shell import ClusterShell, meanwhile
from streamhouse.app import run as app
from streamhouse.cli.main import run
from streamhouse.cli.time_span import show_span
from streamhouse.model.settings import Settings


def silence(database: Path, agent_id: str) -> None:
    """As if it had died long ago."""
    execute(database, "UPDATE agents SET last_heartbeat = 1 WHERE agent_id = ?", [agent_id])


def states(shell: ClusterShell) -> dict[str, str]:
    return {agent["agent_id"]: agent["state"] for agent in shell.json("agent", "list")}


def test_agents_are_listed_with_what_they_lead(shell: ClusterShell) -> None:
    shell.register("a1", zone="eu-1a")
    shell.register("a2")
    first, second, third = shell.create(partitions=3)
    shell.lead("a1", first, second)
    shell.release("a1", *shell.lead("a1", third))

    one, two = shell.json("agent", "list")

    assert one["silent_ms"] < 60_000
    assert one | {"started_at_ms": 0, "silent_ms": 0} == {
        "agent_id": "a1",
        "node_id": 1,
        "zone": "eu-1a",
        "agent_group": "default",
        "kafka_address": "a1:9092",
        "address": "a1:50051",
        "partitions": 2,
        "coordinator_shards": 0,
        "started_at_ms": 0,
        "silent_ms": 0,
        "state": "live",
    }
    assert (two["agent_id"], two["node_id"], two["partitions"]) == ("a2", 2, 0)
    table = shell.ok("agent", "list")
    assert "kafka address" in table
    assert "eu-1a" in table


def test_a_cluster_without_agents_says_so(shell: ClusterShell) -> None:
    assert "no agents yet" in shell.ok("agent", "list")


def test_agents_are_live_draining_or_silent(shell: ClusterShell, database: Path) -> None:
    for agent_id in ("a1", "a2", "a3", "a4", "a5"):
        shell.register(agent_id)
    shell.ok("agent", "drain", "a2", "--no-wait")
    shell.ok("agent", "drain", "a4", "--no-wait")
    for agent_id in ("a3", "a4"):
        silence(database, agent_id)
    (partition,) = shell.create()
    shell.lead("a5", partition)
    execute(database, "UPDATE agents SET last_heartbeat = last_heartbeat - 20000 WHERE agent_id = 'a5'")
    execute(database, "UPDATE partition_leases SET lease_expires_at = (SELECT last_heartbeat + 10000 FROM agents"
            " WHERE agent_id = 'a5')")  # fmt: skip

    assert states(shell) == {"a1": "live", "a2": "draining", "a3": "silent", "a4": "silent", "a5": "silent"}


def test_liveness_is_a_setting(shell: ClusterShell, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.register("a1")
    execute(database, "UPDATE agents SET last_heartbeat = last_heartbeat - 120000")

    assert states(shell) == {"a1": "silent"}
    monkeypatch.setenv("STREAMHOUSE_LIVENESS", "1h")
    assert states(shell) == {"a1": "live"}


def test_a_drain_waits_until_the_agent_leads_nothing(shell: ClusterShell) -> None:
    shell.register("a1")
    shell.register("a2")
    partitions = shell.create(partitions=2)
    leases = shell.lead("a1", *partitions)

    def hand_over() -> None:
        eventually(lambda: states_of_agents(shell)["a1"], "the drain")
        shell.release("a1", *leases)
        shell.lead("a2", *partitions)

    with meanwhile(hand_over):
        said = shell.ok("agent", "drain", "a1")

    assert said == "agent a1 leads nothing any more, of 2 partitions before; it can be stopped\n"
    assert states(shell) == {"a1": "draining", "a2": "live"}


def states_of_agents(shell: ClusterShell) -> dict[str, bool]:
    agents = shell.change(lambda store: store.list_agents())
    return {agent.info.agent_id: agent.is_draining for agent in agents}


def test_a_drain_without_waiting_says_what_is_left(shell: ClusterShell) -> None:
    shell.register("a1")
    shell.register("a2")
    shell.lead("a1", *shell.create(partitions=2))

    assert shell.ok("agent", "drain", "a1", "--no-wait") == "agent a1 is draining; it leads 2 partitions of 2 still\n"
    assert shell.json("agent", "drain", "a1", "--no-wait") == {
        "agent_id": "a1",
        "partitions_before": 2,
        "partitions_left": 2,
        "partitions_waiting": 0,
    }


def test_a_drain_that_takes_too_long_names_what_is_left(shell: ClusterShell) -> None:
    shell.register("a1")
    shell.lead("a1", *shell.create(partitions=7))

    code, _, err = shell.run("agent", "drain", "a1", "--timeout", "1ms")

    assert code == 1
    nowhere, reason = err.splitlines()
    assert nowhere.startswith("no other agent is alive")
    assert "'a1' still leads 7 partitions (orders/0, orders/1, orders/2, orders/3, orders/4, …) after 1ms" in reason


def test_a_drain_waits_for_coordinators_too(shell: ClusterShell) -> None:
    shell.register("a1")
    shell.change(lambda store: store.acquire_shards("a1", [3], 600_000))

    assert shell.json("agent", "list")[0]["coordinator_shards"] == 1
    assert "still leads 1 shard of group coordinators" in shell.fails("agent", "drain", "a1", "--timeout", "1ms")


def test_a_drained_dead_agent_may_be_the_only_one_to_have_records(shell: ClusterShell, database: Path) -> None:
    shell.register("a1")
    shell.lead("a1", *shell.create(), in_local_wal=True)
    execute(database, "UPDATE partition_leases SET lease_expires_at = 1")

    code, out, err = shell.run("agent", "drain", "a1")

    assert code == 0
    assert "leads nothing any more, of 0 partitions" in out
    assert "1 partition without a leader: agent a1 alone can lead them" in err


def test_an_agent_that_is_not_there_cannot_be_drained(shell: ClusterShell) -> None:
    assert "there is no agent 'a9' (`streamhouse agent list`" in shell.fails("agent", "drain", "a9")


def test_an_agent_that_is_gone_for_good_is_forgotten(shell: ClusterShell, database: Path) -> None:
    shell.register("a1")
    shell.register("a2")
    execute(database, "UPDATE agents SET last_heartbeat = 1 WHERE agent_id = 'a1'")

    assert shell.ok("agent", "forget", "a1") == "agent a1 is forgotten\n"
    assert states(shell) == {"a2": "live"}
    assert "there is no agent 'a1'" in shell.fails("agent", "forget", "a1")


@pytest.mark.parametrize("agent_id", ["", "a b"])
@pytest.mark.parametrize("command", ["drain", "forget"])
def test_an_id_that_no_agent_can_have_is_wrong_usage(shell: ClusterShell, command: str, agent_id: str) -> None:
    code, _, err = shell.run("agent", command, agent_id)

    assert code == 2
    assert f"{agent_id!r} is not an agent id" in err


def test_an_agent_that_is_alive_is_not_forgotten(shell: ClusterShell) -> None:
    shell.register("a1")

    assert "agent 'a1' is alive" in shell.fails("agent", "forget", "a1")
    assert states(shell) == {"a1": "live"}


def test_an_agent_that_may_have_the_only_copy_of_records_is_not_forgotten(shell: ClusterShell, database: Path) -> None:
    shell.register("a1")
    shell.lead("a1", *shell.create(), in_local_wal=True)
    execute(database, "UPDATE partition_leases SET lease_expires_at = 1")
    execute(database, "UPDATE agents SET last_heartbeat = 1")

    refused = shell.fails("agent", "forget", "a1")

    assert "1 partition (orders/0) may have acknowledged records on the disk of agent 'a1' only" in refused
    assert "--unclean" in refused
    assert list(states(shell)) == ["a1"]


def test_without_a_verb_an_agent_runs_with_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[Settings, frozenset[str]]] = []

    def run_agent(settings: Settings, announce: object, *, given: frozenset[str]) -> int:
        ran.append((settings, given))
        return 3

    monkeypatch.setattr(app, "run_agent", run_agent)

    assert run(["agent", "--agent-id", "a1", "--zone", "eu-1a", "--metadata", "postgresql://host/db"]) == 3
    ((settings, given),) = ran
    assert (settings.agent_id, settings.zone, settings.metadata) == ("a1", "eu-1a", "postgresql://host/db")
    assert given == {"agent_id", "zone", "metadata"}


def test_help_shows_how_to_run_one_and_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agent", "--help"]) == 0

    shown = capsys.readouterr().out
    assert "streamhouse agent --agent-id a1 --metadata" in shown
    assert "--lease-ttl" in shown
    assert "  drain  " in shown
    assert "  list  " in shown


def test_options_before_the_verb_are_refused_instead_of_ignored(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agent", "--metadata", "postgresql://host/db", "list"]) == 2
    assert "go behind it" in capsys.readouterr().err


@pytest.mark.parametrize("where", [["--metadata", "sqlite:///no/such/file.db"], ["--data-dir", "/no/such/dir"]])
def test_looking_for_a_cluster_makes_none(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agent", "list", *where]) == 2
    assert "there is no metadata store '/no/such/" in capsys.readouterr().err
    assert not Path("/no/such").exists()


@pytest.mark.parametrize(
    ("span_ms", "shown"),
    [(0, "0ms"), (-5, "0ms"), (1999, "1999ms"), (2000, "2s"), (119_999, "119s"), (7_200_000, "2h"), (10**9, "11d")],
)
def test_a_span_of_time_is_shown_coarsely(span_ms: int, shown: str) -> None:
    assert show_span(span_ms) == shown
