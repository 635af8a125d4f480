"""What has been going on, over REST: an hour of samples, and each topic's size, rates, last write and readers."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from node.wait import HUNG_SECONDS, eventually
from rest_parts.caller import RestCaller
from streamhouse.broker.records import RecordDoor
from streamhouse.client.groups_admin import GroupsAdmin
from streamhouse.core import rise
from streamhouse.model.errors import MetadataUnavailable, Unavailable
from streamhouse.server.http.rest import alerts, consumers, sampler
from streamhouse.server.http.rest.known_ends import KnownEnds
from streamhouse.server.http.rest.next_record_times import NextRecordTimes
from streamhouse.testing import Broker


def measure_all_the_time(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(sampler, "PERIOD_MS", 100)
    patched.setattr(sampler, "_LAG_PERIOD_MS", 100)
    patched.setattr(sampler, "_LOOK_AGE_MS", 50)
    patched.setattr(sampler, "_POSITIONS_AGE_MS", 50)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One that measures all the time."""
    with pytest.MonkeyPatch.context() as patched:
        measure_all_the_time(patched)
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
    monkeypatch.setattr(rise, "TIMES", 2)  # what is usual on a busy machine may be seconds
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
    found = eventually(lambda: (found := of_topic(rest, "written"))["records"] == 500 and found, "what was written")
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

    behind = eventually(
        lambda: (found := consumer(rest, "consumed", "behind")) and found["lag_ms"] and found, "its lag in time"
    )
    first, second = behind["partitions"]
    assert (first["committed_offset"], first["end_offset"], first["lag"]) == (0, 10, 10)
    assert 600_000 <= first["lag_ms"] < 600_000 + 300_000
    assert (second["lag"], second["lag_ms"]) == (0, 0)
    assert (behind["lag"], behind["lag_ms"], behind["state"]) == (10, first["lag_ms"], "Empty")
    at_end = consumer(rest, "consumed", "at-end")
    assert (at_end["lag"], at_end["lag_ms"]) == (0, 0)
    eventually(lambda: 10 in consumer(rest, "consumed", "behind")["lag_history"], "the lag in its history")
    kept = eventually(
        lambda: (kept := rest.get("groups/behind/history"))["lag"][-1:] == [10] and kept, "the lag as the last there"
    )
    assert (kept["group_id"], len(kept["lag"])) == ("behind", len(kept["times_ms"]))
    lines = {(each["topic"], each["partition"]): each["lag"] for each in kept["partitions"]}
    assert (lines["consumed", 0][-1], lines["consumed", 1][-1]) == (10, 0)
    assert rest.get("groups/nobody/history")["times_ms"] == []
    eventually(lambda: consumer(rest, "consumed", "behind")["trend"] == "steady", "the trend of a group that stands")


def test_groups_of_a_topic_with_very_many_partitions_come_in_smaller_pages_and_all_of_them_come(
    broker: Broker, rest: RestCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "_MOST_POSITIONS", 4)
    broker.create_topic("wide", 2)
    store(rest, "wide", 10)
    names = [f"wide-{number}" for number in range(5)]
    for name in names:
        rest.post(f"groups/{name}/reset", {"to": "earliest", "topics": ["wide"]})
    eventually(lambda: consumer(rest, "wide", names[0])["lag"] == 10, "where its partitions end")
    pages = [rest.get("topics/wide/consumers")]
    while pages[-1]["next"] is not None:
        pages.append(rest.get(f"topics/wide/consumers?after={pages[-1]['next']}"))
    assert [[(each["group_id"], each["lag"]) for each in page["groups"]] for page in pages] == [
        [("wide-0", 10), ("wide-1", 10)],
        [("wide-2", 10), ("wide-3", 10)],
        [("wide-4", 10)],
    ]
    rest.refused(400, "invalid-input", "GET", "topics/wide/consumers?after=%00")


def test_where_there_are_too_many_positions_nothing_is_said_of_lag_and_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    measure_all_the_time(monkeypatch)
    with Broker(http=True, default_partitions=1) as broker:
        rest = RestCaller(broker.endpoint)
        broker.create_topic("orders", 1)
        store(rest, "orders", 10)
        rest.post("groups/readers/reset", {"to": "earliest", "topics": ["orders"]})
        eventually(lambda: of_topic(rest, "orders")["read_per_s"] == 0, "how fast it is read")
        eventually(lambda: 10 in consumer(rest, "orders", "readers")["lag_history"], "the lag in its history")

        monkeypatch.setattr(sampler, "_MOST_POSITIONS", 0)
        eventually(lambda: of_topic(rest, "orders")["read_per_s"] is None, "that nobody knows")
        found = eventually(
            lambda: (found := consumer(rest, "orders", "readers"))["lag_history"][-1] is None and found, "no more lag"
        )
        assert 10 in found["lag_history"]


def test_what_was_measured_before_a_pause_is_neither_the_last_hour_nor_a_trend(monkeypatch: pytest.MonkeyPatch) -> None:
    measure_all_the_time(monkeypatch)
    with Broker(http=True, default_partitions=1) as broker:
        rest = RestCaller(broker.endpoint)
        broker.create_topic("orders", 1)
        rest.post("groups/readers/reset", {"to": "earliest", "topics": ["orders"]})
        eventually(lambda: consumer(rest, "orders", "readers")["trend"] == "steady", "a trend")

        # From now on lag is not measured, and the rest goes on.
        monkeypatch.setattr(sampler, "_LAG_PERIOD_MS", 24 * 3_600_000)
        before = consumer(rest, "orders", "readers")["lag_times_ms"]
        broker.faults.jump_clock(600_000)
        found = consumer(rest, "orders", "readers")
        assert found["trend"] is None
        assert found["lag_times_ms"][: len(before)] == before
        last_ms = rest.get("metrics/history")["times_ms"][-1]
        broker.faults.jump_clock(3 * 3_600_000)
        assert all(at_ms > last_ms for at_ms in rest.get("metrics/history")["times_ms"])
        assert consumer(rest, "orders", "readers")["lag_times_ms"] == []


def test_reads_for_a_client_that_has_left_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def hang(*_: object, **__: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(RecordDoor, "read", hang)
    monkeypatch.setitem(NextRecordTimes.__init__.__kwdefaults__, "patience_ms", 10**9)
    with Broker(http=True, default_partitions=1) as broker:
        rest = RestCaller(broker.endpoint)
        broker.create_topic("orders", 1)
        store(rest, "orders", 10)
        rest.post("groups/readers/reset", {"to": "earliest", "topics": ["orders"]})
        eventually(lambda: of_topic(rest, "orders")["records"] == 10, "where its partition ends")
        assert broker.node.doors.http is not None
        with socket.create_connection(("127.0.0.1", broker.node.doors.http.port), timeout=HUNG_SECONDS) as connection:
            connection.sendall(b"GET /api/v1/topics/orders/consumers HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert begun.wait(HUNG_SECONDS)
            assert not ended.is_set()
        assert ended.wait(HUNG_SECONDS)


def test_of_very_many_partitions_each_group_has_some_looked_at() -> None:
    first, second = [(0, 5), (1, 5), (2, 5)], [(0, 9)]
    assert list(consumers._in_turn([first, second])) == [(0, 5), (0, 9), (1, 5), (2, 5)]


def test_how_far_behind_a_group_is_is_not_known_where_the_agent_was_never_heard_that_may_have_records(
    broker: Broker, rest: RestCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = ("committed_offset", "end_offset", "lag", "lag_ms")
    broker.create_topic("unheard", 2)
    rest.post("groups/waiting/reset", {"to": "latest", "topics": ["unheard"]})
    eventually(lambda: (consumer(rest, "unheard", "waiting") or {}).get("lag") == 0, "its lag")
    monkeypatch.setattr(KnownEnds, "unheard", lambda _, placement: "a2" if placement.partition.partition else None)
    told = eventually(lambda: (told := consumer(rest, "unheard", "waiting"))["lag"] is None and told, "no more lag")
    heard, unheard = [[each[name] for name in progress] for each in told["partitions"]]
    assert (heard, unheard) == ([0, 0, 0, 0], [0, None, None, None])
    assert told["lag_ms"] is None


@contextmanager
def silent_metadata_store(broker: Broker) -> Iterator[None]:
    """One that takes questions and does not answer, and loses them in the end."""
    is_back = asyncio.Event()

    async def hang(*_: object, **__: object) -> None:
        await is_back.wait()
        raise MetadataUnavailable("the connection was lost")

    async def come_back() -> None:
        is_back.set()

    with pytest.MonkeyPatch.context() as patched:
        for asked in (
            "list_topics",
            "list_placements",
            "list_group_positions",
            "list_topic_positions",
            "list_agents",
            "list_groups",
        ):
            patched.setattr(broker._metadata, asked, hang)
        try:
            yield
        finally:
            broker._run(come_back())


def test_while_the_metadata_store_is_silent_what_is_known_is_told_and_nobody_waits_for_the_rest() -> None:
    with Broker(http=True, default_partitions=1) as broker:
        rest = RestCaller(broker.endpoint)
        broker.create_topic("orders", 1)
        store(rest, "orders", 10)
        rest.post("groups/readers/reset", {"to": "earliest", "topics": ["orders"]})
        known = eventually(
            lambda: (found := rest.get("topics/orders/consumers"))["groups"][0]["lag"] == 10 and found, "the lag"
        )
        assert known["metadata_silent_since_ms"] is None
        assert rest.get("topic-activity")["metadata_silent_since_ms"] is None

        with silent_metadata_store(broker):
            activity = rest.get("topic-activity")
            assert [(each["name"], each["records"]) for each in activity["topics"]] == [("orders", 10)]
            assert activity["metadata_silent_since_ms"] is not None
            told = rest.get("topics/orders/consumers")
            assert [(each["group_id"], each["lag"]) for each in told["groups"]] == [("readers", 10)]
            assert told["metadata_silent_since_ms"] is not None
            rest.refused(503, "metadata-unavailable", "GET", "topics/orders/consumers?after=never-asked")
            rest.refused(503, "metadata-unavailable", "GET", "placements")

        eventually(lambda: rest.call("GET", "placements").status == 200, "the metadata store to be heard again")


def test_while_the_metadata_store_is_silent_groups_are_told_of_as_they_were_and_no_coordinator_is_blamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object) -> None:
        raise Unavailable("who coordinates it is not known")

    with Broker(http=True, default_partitions=1) as broker:
        rest = RestCaller(broker.endpoint)
        broker.create_topic("orders", 1)
        rest.post("groups/readers/reset", {"to": "earliest", "topics": ["orders"]})
        assert rest.get("groups")["metadata_silent_since_ms"] is None
        assert rest.get("groups/readers")["metadata_silent_since_ms"] is None

        with silent_metadata_store(broker):
            listed = eventually(
                lambda: (listed := rest.get("groups"))["metadata_silent_since_ms"] is not None and listed, "the silence"
            )
            assert [each["group_id"] for each in listed["groups"]] == ["readers"]
            described = rest.get("groups/readers")
            assert (described["lag"], described["metadata_silent_since_ms"] is None) == (0, False)

            monkeypatch.setattr(GroupsAdmin, "describe_group", fail)
            refused = rest.refused(503, "metadata-unavailable", "GET", "groups/readers")
            assert refused["detail"].startswith("the metadata store does not answer")


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
    told = eventually(lambda: (told := found())["partitions"][0]["end_offset"] == 5 and told, "where it ends")
    assert (told["lag"], told["lag_ms"]) == (None, None)
    rest.delete(member)
    rest.refused(404, "not-found", "GET", "topics/nowhere/consumers")
