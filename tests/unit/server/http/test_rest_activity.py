"""What has been going on, over REST: an hour of samples, and each topic's size, rates, last write and readers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from node.wait import eventually
from rest_parts.caller import RestCaller
from streamhouse.core import rise
from streamhouse.server.http.rest import alerts, sampler
from streamhouse.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One that measures all the time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sampler, "PERIOD_MS", 100)
        patched.setattr(sampler, "_LAG_PERIOD_MS", 100)
        patched.setattr(sampler, "_LOOK_AGE_MS", 50)
        patched.setattr(sampler, "_POSITIONS_AGE_MS", 50)
        with Broker(http=True, group_initial_rebalance_delay=0, segment_age="100ms") as broker:
            yield broker


def store(rest: RestCaller, topic: str, count: int) -> None:
    rest.post(f"topics/{topic}/records", {"records": [{"value": number} for number in range(count)]})


def series(rest: RestCaller, name: str) -> list[float]:
    """What was known."""
    return [value for value in rest.get("metrics/history")["series"][name] if value is not None]


def of_topic(rest: RestCaller, name: str) -> Any:
    [found] = [each for each in rest.get("topic-activity")["topics"] if each["name"] == name]
    return found


def test_the_history_has_what_was_done_before_anybody_asked(broker: Broker, rest: RestCaller) -> None:
    broker.create_topic("measured", 1)
    eventually(lambda: series(rest, "records_in"), "a first rate")
    store(rest, "measured", 1_000)
    eventually(lambda: max(series(rest, "records_in")) > 0, "what was stored")
    eventually(lambda: max(series(rest, "bytes_in")) > 0, "its bytes")
    eventually(lambda: series(rest, "produce_p99_ms"), "how long it took")
    history = rest.get("metrics/history")
    assert history["times_ms"] == sorted(history["times_ms"])
    assert {len(values) for values in history["series"].values()} == {len(history["times_ms"])}
    last = history["times_ms"][-1]
    assert all(at >= last for at in rest.get(f"metrics/history?since_ms={last}")["times_ms"])


def test_producers_that_wait_far_longer_than_in_the_hour_before_are_an_alert(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "PERIOD_MS", 50)
    monkeypatch.setattr(sampler, "_LOOK_AGE_MS", 20)
    monkeypatch.setattr(rise, "FEWEST", 3)
    monkeypatch.setattr(rise, "HELD_MS", 200)
    monkeypatch.setattr(alerts, "SLOW_PRODUCE_MS", 10**9)
    with Broker(http=True) as broker, ThreadPoolExecutor(1) as thread:
        rest = RestCaller(broker.endpoint)
        broker.create_topic("usual", 1)
        broker.create_topic("slow", 1, {"streamhouse.durability": "object"})
        store(rest, "usual", 10)
        eventually(lambda: len(series(rest, "produce_p99_ms")) > 5, "what is usual")
        assert rest.get("overview")["alerts"] == []
        broker.faults.fail_puts(times=None)
        sending = thread.submit(store, rest, "slow", 1)
        try:
            eventually(lambda: rest.get("wal")["object"]["in_flight"], "records on their way")
            broker.faults.pass_time(20_000)
            found = eventually(
                lambda: [each for each in rest.get("overview")["alerts"] if each["code"] == "produce_slower"],
                "the alert",
            )
            assert found[0]["agents"] == [broker.node.broker.identity.agent_id]
            assert rest.get("cluster/health")["status"] == "degraded"
        finally:
            broker.faults.heal()
            sending.result()


def test_a_topic_says_how_much_it_holds_and_when_it_was_written(broker: Broker, rest: RestCaller) -> None:
    broker.create_topic("written", 2)
    fresh = of_topic(rest, "written")
    assert (fresh["records"], fresh["groups"], fresh["last_write_ms"]) == (0, 0, None)
    before_ms = time.time_ns() // 1_000_000
    store(rest, "written", 500)
    eventually(lambda: of_topic(rest, "written")["last_write_ms"] is not None, "the last write")
    found = of_topic(rest, "written")
    assert found["records"] == 500
    assert found["partition_count"] == 2
    assert found["last_write_ms"] >= before_ms
    eventually(lambda: (of_topic(rest, "written")["written_per_s"] or 0) > 0, "the rate")


def test_a_topic_says_who_reads_it_and_how_fast(broker: Broker, rest: RestCaller) -> None:
    broker.create_topic("read", 1)
    store(rest, "read", 100)
    joined = rest.post("groups/readers/members", {"topics": ["read"], "reset": "earliest"}, status=201)
    member = f"groups/readers/members/{joined['member_id']}"
    seen = 0
    while seen < 100:
        seen += len(rest.post(f"{member}/poll", {"limit": 50, "max_wait_ms": 1000})["records"])
        rest.post(f"{member}/commit", {}, status=204)
        eventually(lambda: of_topic(rest, "read")["groups"] == 1, "the group")
    eventually(lambda: (of_topic(rest, "read")["read_per_s"] or 0) > 0, "how fast it is read")
    rest.delete(member)


def test_topics_come_in_pages(broker: Broker, rest: RestCaller) -> None:
    for name in ("page-a", "page-b"):
        broker.create_topic(name, 1)
    first = rest.get("topic-activity?limit=1&after=page-")
    assert [each["name"] for each in first["topics"]] == ["page-a"]
    assert rest.get(f"topic-activity?limit=1&after={first['next']}")["topics"][0]["name"] == "page-b"


def consumer(rest: RestCaller, topic: str, group: str) -> Any:
    found = [each for each in rest.get(f"topics/{topic}/consumers")["groups"] if each["group_id"] == group]
    return found[0] if found else None


def test_a_topic_says_how_far_behind_its_groups_are_in_records_and_in_time(broker: Broker, rest: RestCaller) -> None:
    broker.create_topic("consumed", 2)
    now_ms = time.time_ns() // 1_000_000
    old_ms = now_ms - 600_000
    rest.post(
        "topics/consumed/records",
        {"records": [{"value": number, "partition": 0, "timestamp_ms": old_ms} for number in range(10)]},
    )
    reset = {"to": "earliest", "topics": ["consumed"], "dry_run": False}
    rest.post("groups/behind/reset", reset)
    rest.post("groups/at-end/reset", reset | {"to": "latest"})

    behind = eventually(lambda: (found := consumer(rest, "consumed", "behind")) and found["lag"] and found, "its lag")
    first, second = behind["partitions"]
    assert (first["committed_offset"], first["end_offset"], first["lag"]) == (0, 10, 10)
    assert 600_000 <= first["lag_ms"] < 600_000 + 300_000
    assert (second["lag"], second["lag_ms"]) == (0, 0)
    assert (behind["lag"], behind["lag_ms"], behind["state"]) == (10, first["lag_ms"], "Empty")
    assert (consumer(rest, "consumed", "at-end")["lag"], consumer(rest, "consumed", "at-end")["lag_ms"]) == (0, 0)
    eventually(lambda: 10 in consumer(rest, "consumed", "behind")["lag_history"], "the lag in its history")
    kept = rest.get("groups/behind/history")
    assert (kept["group_id"], kept["lag"][-1], len(kept["lag"])) == ("behind", 10, len(kept["times_ms"]))
    lines = {(each["topic"], each["partition"]): each["lag"] for each in kept["partitions"]}
    assert (lines["consumed", 0][-1], lines["consumed", 1][-1]) == (10, 0)
    assert rest.get("groups/nobody/history")["times_ms"] == []
    eventually(lambda: consumer(rest, "consumed", "behind")["trend"] == "steady", "the trend of a group that stands")


def test_a_group_that_reads_and_has_committed_nothing_is_a_consumer(broker: Broker, rest: RestCaller) -> None:
    broker.create_topic("read-only", 1)
    store(rest, "read-only", 5)
    joined = rest.post("groups/silent/members", {"topics": ["read-only"], "client_id": "listener"}, status=201)
    member = f"groups/silent/members/{joined['member_id']}"

    def found() -> Any:
        rest.post(f"{member}/poll", {"limit": 1, "max_wait_ms": 0})
        return consumer(rest, "read-only", "silent")

    [partition] = eventually(found, "the group", pause=0.2)["partitions"]
    assert (partition["client_id"], partition["committed_offset"], partition["lag"]) == ("listener", None, None)
    rest.delete(member)
    rest.refused(404, "not-found", "GET", "topics/nowhere/consumers")
