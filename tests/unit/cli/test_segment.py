"""`segment list TOPIC`: a topic's segments by its name, as the metadata store has them."""

from __future__ import annotations

from stored_cluster.logs import StoredLogs
from stored_cluster.shell import ClusterShell


def fill(shell: ClusterShell) -> list[str]:
    """Two segments in orders/0 and one in orders/1; their keys."""

    async def work(logs: StoredLogs) -> list[str]:
        first, second = await logs.create("orders", 2)
        await logs.create("parcels", 1)
        leases = [await logs.lead(first), await logs.lead(second)]
        rows = [await logs.add_segment(lease, count) for lease, count in ((leases[0], 3), (leases[0], 2))]
        rows.append(await logs.add_segment(leases[1], 4))
        return [row.object_key for row in rows]

    return shell.change_logs(work)


def test_a_topics_segments_are_listed_by_its_name(shell: ClusterShell) -> None:
    keys = fill(shell)

    listed = shell.json("segment", "list", "orders")

    assert [(row["partition"], row["base_offset"], row["end_offset"], row["record_count"]) for row in listed] == [
        (0, 0, 3, 3),
        (0, 3, 5, 2),
        (1, 0, 4, 4),
    ]
    assert [row["key"] for row in listed] == keys
    assert {row["topic"] for row in listed} == {"orders"}
    table = shell.ok("segment", "list", "orders")
    assert "last offset" in table
    assert all(key in table for key in keys)


def test_partitions_may_be_chosen(shell: ClusterShell) -> None:
    keys = fill(shell)

    assert [row["key"] for row in shell.json("segment", "list", "orders", "--partition", "1")] == keys[2:]
    assert "orders has no partition 2 (it has 0 to 1)" in shell.fails("segment", "list", "orders", "-p", "2")


def test_a_topic_without_segments_is_no_error(shell: ClusterShell) -> None:
    fill(shell)

    assert "no segments of parcels yet" in shell.ok("segment", "list", "parcels")
    assert shell.json("segment", "list", "parcels") == []


def test_an_unknown_topic_is_named_with_the_one_that_is_like_it(shell: ClusterShell) -> None:
    fill(shell)

    assert "no topic 'order' (did you mean 'orders'?)" in shell.fails("segment", "list", "order")
    assert "`streamhouse topic list` shows" in shell.fails("segment", "list", "zzz")


def test_a_prefix_of_keys_lists_the_object_store(shell: ClusterShell) -> None:
    keys = fill(shell)
    objects = ("--objects", f"file://{shell.objects}")

    of_one = shell.json("segment", "list", keys[2].rpartition("/")[0] + "/", *objects)

    assert [row["key"] for row in of_one] == keys[2:]
    assert sorted(row["key"] for row in shell.json("segment", "list", *objects)) == sorted(keys)


def test_a_partition_of_a_prefix_is_wrong_usage(shell: ClusterShell) -> None:
    code, _, err = shell.run("segment", "list", "segments/", "--partition", "1")

    assert (code, "--partition is for a TOPIC" in err) == (2, True)
