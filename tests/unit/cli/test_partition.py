"""`streamhouse partition …`: what is listed, what a move checks and waits for, what an unclean election gives up."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from node.wait import eventually
from stored_cluster.logs import StoredLogs, execute
from stored_cluster.shell import ClusterShell, meanwhile
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.names import TopicPartition

WAITS = "waits for agent a1, whose disk may hold acknowledged records"


def expire_leases(database: Path) -> None:
    execute(database, "UPDATE partition_leases SET lease_expires_at = 1")


def lost(shell: ClusterShell, database: Path) -> TopicPartition:
    """A partition with three records in segments, whose agent died with a WAL of its own."""

    async def write(logs: StoredLogs) -> TopicPartition:
        (partition,) = await logs.create()
        await logs.add_segment(await logs.lead(partition))
        return partition

    partition = shell.change_logs(write)
    shell.register("a1")
    shell.lead("a1", partition, in_local_wal=True)
    execute(database, "UPDATE agents SET last_heartbeat = 1 WHERE agent_id = 'a1'")
    expire_leases(database)
    return partition


def test_partitions_are_listed_with_leader_offsets_and_lease(shell: ClusterShell) -> None:
    async def write(logs: StoredLogs) -> None:
        first, _ = await logs.create(partitions=2)
        lease = await logs.lead(first)
        for _ in range(2):
            await logs.add_segment(lease)
        await logs.add_wal_object(lease)
        await logs.metadata.advance_log_start(first, "a1", lease.epoch, 4)
        await logs.create("payments")

    shell.change_logs(write)

    led, free = shell.json("partition", "list", "orders")

    assert 0 < led.pop("lease_left_ms") <= 60_000
    assert led.pop("topic_id") == free["topic_id"]
    assert led == {
        "topic": "orders",
        "partition": 0,
        "leader": "a1",
        "epoch": 1,
        "log_start_offset": 4,
        "high_watermark": 9,
        "committed_end": 6,
        "waits_for": None,
        "pinned_to": None,
        "note": "",
    }
    assert (free["partition"], free["leader"], free["epoch"], free["lease_left_ms"]) == (1, None, 0, 0)
    assert [(one["topic"], one["partition"]) for one in shell.json("partition", "list")] == [
        ("orders", 0),
        ("orders", 1),
        ("payments", 0),
    ]
    assert "high watermark" in shell.ok("partition", "list")
    assert "there is no topic 'nowhere'" in shell.fails("partition", "list", "nowhere")


def test_a_cluster_without_topics_says_so(shell: ClusterShell) -> None:
    assert "no partitions yet" in shell.ok("partition", "list")


def test_a_partition_that_waits_for_its_agent_says_so(shell: ClusterShell, database: Path) -> None:
    lost(shell, database)

    (waiting,) = shell.json("partition", "list")

    assert (waiting["leader"], waiting["waits_for"], waiting["note"]) == (None, "a1", WAITS)
    assert WAITS in shell.ok("partition", "list", "orders")


def test_a_partition_does_not_wait_while_its_agent_leads_it(shell: ClusterShell) -> None:
    shell.lead("a1", *shell.create(), in_local_wal=True)

    (led,) = shell.json("partition", "list")

    assert (led["leader"], led["waits_for"], led["note"]) == ("a1", None, "")


def test_a_move_waits_until_the_agent_leads(shell: ClusterShell) -> None:
    for agent_id in ("a1", "a2"):
        shell.register(agent_id)
    (partition,) = shell.create()
    leases = shell.lead("a1", partition)

    def hand_over() -> None:
        eventually(lambda: pinned_to(shell) == "a2", "the pin")
        shell.release("a1", *leases)
        shell.lead("a2", partition)

    with meanwhile(hand_over):
        code, out, err = shell.run("partition", "move", "orders", "0", "--to", "a2")

    assert (code, out) == (0, "orders/0 is led by a2, in epoch 2, and pinned to it\n")
    assert err.splitlines()[0] == "orders/0: a1 leads in epoch 1, waiting for a2"
    assert "pinned to a2" in shell.ok("partition", "list")


def pinned_to(shell: ClusterShell) -> str:
    (placement,) = shell.change(lambda store: store.list_placements())
    return placement.pinned_to


def test_a_partition_that_is_there_already_is_only_pinned(shell: ClusterShell) -> None:
    shell.register("a1")
    shell.lead("a1", *shell.create())

    code, _, err = shell.run("partition", "move", "orders", "0", "--to", "a1")

    assert (code, err) == (0, "")
    assert pinned_to(shell) == "a1"


def test_a_pin_is_taken_back(shell: ClusterShell) -> None:
    shell.register("a1")
    shell.lead("a1", *shell.create())
    shell.ok("partition", "move", "orders", "0", "--to", "a1")

    assert "is its owner's again" in shell.ok("partition", "move", "orders", "0", "--unpin")

    assert pinned_to(shell) == ""


def test_a_pin_to_an_agent_that_is_gone_is_noted(shell: ClusterShell) -> None:
    (partition,) = shell.create()
    shell.change(lambda store: store.pin_partition(partition, "a7"))

    assert shell.json("partition", "list")[0]["note"] == "pinned to a7, which is not alive"


def test_a_move_without_waiting_says_who_leads_until_then(shell: ClusterShell) -> None:
    for agent_id in ("a1", "a2"):
        shell.register(agent_id)
    shell.lead("a1", *shell.create())

    said = shell.ok("partition", "move", "orders", "0", "--to", "a2", "--no-wait")

    assert said == "orders/0 is pinned to a2; a1 leads it until it is moved\n"


def test_a_move_that_takes_too_long_says_how_far_it_is(shell: ClusterShell) -> None:
    for agent_id in ("a1", "a2"):
        shell.register(agent_id)
    (partition,) = shell.create()
    shell.lead("a1", partition)
    command = ("partition", "move", "orders", "0", "--to", "a2", "--timeout", "1ms")

    assert "a1 still leads orders/0 after 1ms; no transfer of it was begun (it stays pinned to a2" in shell.fails(
        *command
    )

    async def reject(store: MetadataStore) -> None:
        (transfer,) = await store.begin_transfers("a1", [(partition, "a2")], 60_000)
        assert transfer is not None
        await store.reject_transfers("a2", [transfer.transfer_id], "no room")

    shell.change(reject)
    assert "the last transfer, to a2, is rejected: no room" in shell.fails(*command)


def test_a_move_to_where_it_cannot_go_is_refused_before_anything_changes(shell: ClusterShell, database: Path) -> None:
    for agent_id in ("dead", "drained", "a2"):
        shell.register(agent_id)
    execute(database, "UPDATE agents SET last_heartbeat = 1 WHERE agent_id = 'dead'")
    shell.ok("agent", "drain", "drained", "--no-wait")
    lost(shell, database)

    def refusal(topic: str, number: str, agent_id: str) -> str:
        return shell.fails("partition", "move", topic, number, "--to", agent_id)

    assert "agent 'dead' is not alive" in refusal("orders", "0", "dead")
    assert "agent 'drained' is draining" in refusal("orders", "0", "drained")
    assert "there is no agent 'a9'" in refusal("orders", "0", "a9")
    assert "there is no topic 'nowhere'" in refusal("nowhere", "0", "a2")
    assert "topic 'orders' has no partition 4 (they are 0 to 0)" in refusal("orders", "4", "a2")
    assert f"orders/0 cannot be moved: it {WAITS} (start agent a1" in refusal("orders", "0", "a2")
    assert pinned_to(shell) == ""


@pytest.mark.parametrize("options", [[], ["--to", "a1", "--unpin"], ["--to", "a1", "--timeout", "soon"]])
def test_a_move_that_does_not_say_one_thing_is_wrong_usage(shell: ClusterShell, options: list[str]) -> None:
    assert shell.run("partition", "move", "orders", "0", *options)[0] == 2


def test_an_election_is_refused_unless_it_is_called_unclean(shell: ClusterShell, database: Path) -> None:
    lost(shell, database)

    refusal = shell.fails("partition", "elect", "orders", "0")

    assert f"orders/0 {WAITS} from offset 3 on" in refusal
    assert "--unclean gives these records up" in refusal
    assert shell.json("partition", "list")[0]["waits_for"] == "a1"


def test_an_unclean_election_says_whose_records_are_given_up(shell: ClusterShell, database: Path) -> None:
    partition = lost(shell, database)

    said = shell.ok("partition", "elect", "orders", "0", "--unclean", "--yes")

    assert said.startswith("gave up what agent a1 may hold of orders/0 from offset 3 on")
    shell.lead("a2", partition)
    assert shell.json("partition", "list")[0]["leader"] == "a2"


@pytest.mark.parametrize(("answer", "given_up"), [("n\n", False), ("y\n", True)])
def test_an_unclean_election_asks_first(
    shell: ClusterShell, database: Path, monkeypatch: pytest.MonkeyPatch, answer: str, given_up: bool
) -> None:
    lost(shell, database)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))

    code, _, err = shell.run("partition", "elect", "orders", "0", "--unclean")

    assert code == (0 if given_up else 1)
    assert "from offset 3 on that agent a1 may hold?" in err
    assert (shell.json("partition", "list")[0]["waits_for"] is None) == given_up


def test_there_is_nothing_to_give_up_where_nobody_is_waited_for(shell: ClusterShell) -> None:
    (partition,) = shell.create()

    assert "waits for no agent" in shell.ok("partition", "elect", "orders", "0", "--unclean")
    shell.lead("a1", partition)
    assert "orders/0 is led by a1" in shell.fails("partition", "elect", "orders", "0", "--unclean")
