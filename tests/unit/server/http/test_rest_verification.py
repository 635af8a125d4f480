"""A verification over REST: what it finds, that there is one at a time, and that it ends with whoever asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from node.wait import HUNG_SECONDS, eventually
from rest_parts.caller import API, RestCaller
from rest_parts.sending import send
from streamhouse.client.rest import RestClient
from streamhouse.model.errors import Unavailable
from streamhouse.objects.faulty import Hold, Operation
from streamhouse.server.http.rest import verification
from streamhouse.testing import Broker

VERIFY = "cluster/verify"


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """With a segment in each of two partitions."""
    with Broker(http=True, default_partitions=2) as broker:
        broker.create_topic("orders", 2)
        for partition in range(2):
            send(broker, "orders", partition=partition, count=10)
        broker.flush()
        yield broker


@pytest.fixture
def rest(own_broker: Broker) -> RestCaller:
    return RestCaller(own_broker.endpoint)


@pytest.fixture
def held(own_broker: Broker) -> Iterator[Hold]:
    """A store whose reads come to nothing until they are let go."""
    loop = own_broker._loop
    hold = own_broker._objects.hold(Operation.READ)
    yield hold
    loop.call_soon_threadsafe(own_broker._objects.heal)


def lines_of(rest: RestCaller, order: object) -> list[Any]:
    answer = rest.call("POST", VERIFY, order)
    assert (answer.status, answer.content_type) == (200, "application/x-ndjson"), answer
    return [json.loads(line) for line in answer.body.splitlines()]


def begun(broker: Broker) -> HTTPConnection:
    """A verification under way, of which a line was read."""
    connection = HTTPConnection(urlsplit(broker.endpoint).netloc, timeout=HUNG_SECONDS)
    connection.request("POST", f"{API}/{VERIFY}", b'{"deep": true}', {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200
    assert json.loads(answer.readline()) == {"progress": {"checked_offsets": 0, "offsets": 20}}
    return connection


def test_a_sound_cluster_is_progress_and_a_report(rest: RestCaller) -> None:
    *progress, last = lines_of(rest, {})
    assert progress
    assert {tuple(line) for line in progress} == {("progress",)}
    assert last["report"] | {"segments": 0} == {
        "partitions": 2, "segments": 0, "wal_objects": 0, "bytes_read": 0, "violations": 0, "notes": 0
    }  # fmt: skip
    assert last["report"]["segments"] >= 2
    assert lines_of(rest, {"deep": True})[-1]["report"]["bytes_read"] > 0


def test_what_is_wrong_is_told_before_the_report(own_broker: Broker, rest: RestCaller) -> None:
    segment = rest.get("topics/orders/partitions/1/segments")["segments"][0]
    own_broker._run(own_broker._objects.delete([segment["object_key"]]))
    *_, found, last = lines_of(rest, {})
    assert found["finding"] == {
        "severity": "violation",
        "invariant": "I7",
        "subject": "orders/1",
        "message": f"segment {segment['base_offset']} to {segment['end_offset'] - 1}:"
        f" object {segment['object_key']} is not there",
    }
    assert last["report"]["violations"] == 1


def test_of_many_findings_the_first_are_told_and_all_are_counted(
    own_broker: Broker, rest: RestCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "_MOST_FINDINGS", 1)
    keys = [
        segment["object_key"]
        for partition in range(2)
        for segment in rest.get(f"topics/orders/partitions/{partition}/segments")["segments"]
    ]
    own_broker._run(own_broker._objects.delete(keys))
    lines = lines_of(rest, {})
    assert sum("finding" in line for line in lines) == 1
    assert lines[-1]["report"]["violations"] == len(keys) > 1


def test_an_object_that_nothing_refers_to_is_noted_once_it_is_old_enough(own_broker: Broker, rest: RestCaller) -> None:
    topic_id = rest.get("topics/orders")["topic_id"]
    key = f"segments/{topic_id}/00000/00000000000000000099-00000009-{'a' * 32}.strm"
    own_broker._run(own_broker._objects.create(key, [b"x"]))
    own_broker.faults.pass_time(1_000)
    assert lines_of(rest, {})[-1]["report"]["notes"] == 0
    assert lines_of(rest, {"garbage_grace_ms": 0})[-1]["report"]["notes"] == 1
    rest.refused(400, "malformed-request", "POST", VERIFY, {"garbage_grace_ms": -1})


def test_a_node_does_one_at_a_time_and_ends_it_when_its_client_hangs_up(
    own_broker: Broker, rest: RestCaller, held: Hold
) -> None:
    connection = begun(own_broker)
    assert "verifying already" in rest.refused(503, "unavailable", "POST", VERIFY, {})["detail"]
    connection.close()
    # Without a word to the store, which still holds back what was asked.
    eventually(lambda: rest.call("POST", VERIFY, {}).status == 200, "the place of the one that ended")


def test_a_store_that_fails_is_the_last_line(own_broker: Broker) -> None:
    own_broker.faults.fail_reads(times=None)
    with RestClient(own_broker.endpoint) as client, pytest.raises(Unavailable):
        list(client.verify(deep=True))


def test_a_node_that_ends_finishes_none(own_broker: Broker, held: Hold) -> None:
    ended: list[Unavailable] = []

    def verify() -> None:
        with RestClient(own_broker.endpoint) as client:
            lines = client.verify(deep=True)
            next(lines)
            has_begun.set()
            try:
                list(lines)
            except Unavailable as problem:
                ended.append(problem)

    has_begun = threading.Event()
    thread = threading.Thread(target=verify)
    thread.start()
    assert has_begun.wait(HUNG_SECONDS)
    own_broker.stop()
    thread.join(HUNG_SECONDS)
    assert [problem.message for problem in ended] == ["this node is ending"]


@pytest.mark.parametrize("headers", [{"Origin": "http://elsewhere.example"}, {"Host": "elsewhere.example"}])
def test_a_page_of_another_site_makes_a_node_read_nothing(rest: RestCaller, headers: dict[str, str]) -> None:
    assert rest.call("POST", VERIFY, {"deep": True}, headers=headers).status in (403, 421)
    assert rest.call("GET", VERIFY).status == 405
