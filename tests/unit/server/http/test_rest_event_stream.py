"""Following by server-sent events: nothing is missed, nothing twice, and who does not read disturbs nobody."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from node.wait import HUNG_SECONDS, eventually
from rest_parts.caller import API, RestCaller
from rest_parts.following import EventReader, wait_for_readers, waiting_readers
from rest_parts.sending import send
from streamhouse.server.http.rest import following
from streamhouse.testing import Broker


@pytest.fixture
def topic(broker: Broker) -> str:
    """With two partitions."""
    name = f"topic-{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def store(rest: RestCaller, topic: str, *values: object, partition: int = 0, **more: Any) -> None:
    records = [{"value": value, "partition": partition, **more} for value in values]
    rest.post(f"topics/{topic}/records", {"records": records})


def test_what_is_stored_from_now_on_is_an_event_each(broker: Broker, rest: RestCaller, topic: str) -> None:
    store(rest, topic, "before")
    with EventReader(broker.endpoint, topic) as reader:
        assert reader.response.headers["content-type"].startswith("text/event-stream")
        store(rest, topic, {"n": 1}, key="k", timestamp_ms=1234)
        first = reader.next_event()
        store(rest, topic, 2, partition=1)  # only now: what is in two partitions comes in any order
        second = reader.next_event()

    assert first.data == {
        "partition": 0,
        "offset": 1,
        "timestamp_ms": 1234,
        "key": "k",
        "key_format": "text",
        "value": {"n": 1},
        "value_format": "json",
        "headers": [],
    }
    assert (first.id, second.id) == ("0:2,1:0", "0:2,1:1")
    assert second.data["value"] == 2


def test_the_last_events_id_goes_on_where_it_was_wherever_that_is(broker: Broker, rest: RestCaller, topic: str) -> None:
    send(broker, topic, partition=0, count=10)
    send(broker, topic, partition=1, count=10)
    seen: list[tuple[int, int]] = []
    last_id = ""
    for _ in range(20):
        headers = {"Last-Event-ID": last_id} if last_id else {}
        with EventReader(broker.endpoint, topic, "from=earliest", headers) as reader:
            event = reader.next_event()
        seen.append((event.data["partition"], event.data["offset"]))
        last_id = event.id

    assert sorted(seen) == [(partition, offset) for partition in (0, 1) for offset in range(10)]
    assert last_id == "0:10,1:10"


def test_who_connects_again_before_the_first_event_misses_nothing(broker: Broker, rest: RestCaller, topic: str) -> None:
    with EventReader(broker.endpoint, topic) as reader:
        last_id = reader.last_id
    store(rest, topic, "between")

    with EventReader(broker.endpoint, topic, headers={"Last-Event-ID": last_id}) as reader:
        assert reader.values(1) == ["between"]


def test_a_partition_that_the_last_id_does_not_know_is_read_from_its_beginning(
    broker: Broker, rest: RestCaller, topic: str
) -> None:
    store(rest, topic, "a", "b")
    store(rest, topic, "new", partition=1)

    with EventReader(broker.endpoint, topic, "positions=0:2") as reader:
        assert reader.values(1) == ["new"]


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("from=earliest&partitions=0", [1000, 2000, 3000]),
        ("from=earliest&partitions=1", [9000]),
        ("from_ms=2000&partitions=0", [2000, 3000]),
        ("positions=0:2&partitions=0", [3000]),
        ("from=earliest&key=a", [2000]),
        ("from=earliest&field=&equals=", None),
    ],
)
def test_a_follower_chooses_where_to_begin_and_what_to_see(
    broker: Broker, rest: RestCaller, topic: str, query: str, values: list[int] | None
) -> None:
    for time in (1000, 2000, 3000):
        store(rest, topic, time, timestamp_ms=time, key="a" if time == 2000 else "b")
    store(rest, topic, 9000, timestamp_ms=9000, partition=1)
    if values is None:
        rest.refused(400, "invalid-input", "GET", f"topics/{topic}/stream?{query}")
        return

    with EventReader(broker.endpoint, topic, query) as reader:
        assert reader.values(len(values)) == values


def test_json_with_line_ends_is_one_event(broker: Broker, rest: RestCaller, topic: str) -> None:
    store(rest, topic, '{\n "a": 1,\r "b": [\r\n2]\n}', value_format="text")

    with EventReader(broker.endpoint, topic, "from=earliest") as reader:
        assert reader.values(1) == [{"a": 1, "b": [2]}]


def test_silence_is_broken_by_comments_that_tell_where_to_go_on(
    broker: Broker, rest: RestCaller, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "HEARTBEAT_S", 0.01)
    store(rest, topic, 1, 2, 3, key="other")

    with EventReader(broker.endpoint, topic, "from=earliest&key=mine") as reader:
        eventually(lambda: reader.next_block() and reader.last_id == "0:3,1:0", "what was passed over to be told")
        assert reader.comments > 0


def test_a_position_that_is_no_longer_or_not_yet_there_is_moved_to_the_nearest(
    broker: Broker, rest: RestCaller, topic: str
) -> None:
    store(rest, topic, "a", "b")

    with EventReader(broker.endpoint, topic, "positions=0:99&partitions=0") as reader:
        store(rest, topic, "c")
        # Where the end was when it was looked is before or after this record.
        store(rest, topic, "d")
        assert reader.values(1)[0] in ("c", "d")


def test_the_end_of_a_topic_is_the_end_of_the_stream(broker: Broker, rest: RestCaller, topic: str) -> None:
    with EventReader(broker.endpoint, topic) as reader:
        rest.delete(f"topics/{topic}")
        event = reader.next_event()

        assert (event.type, event.data["code"]) == ("problem", "not-found")
        assert reader.next_block() is None


def test_a_reader_that_leaves_gives_its_place_back(broker: Broker, topic: str) -> None:
    wait_for_readers(broker, 0)
    readers = [EventReader(broker.endpoint, topic) for _ in range(3)]
    assert waiting_readers(broker) == 3
    for reader in readers:
        reader.close()

    wait_for_readers(broker, 0)


def test_to_ask_only_for_the_headers_follows_nothing(broker: Broker, rest: RestCaller, topic: str) -> None:
    wait_for_readers(broker, 0)
    answer = rest.call("HEAD", f"topics/{topic}/stream")

    assert (answer.status, answer.body, waiting_readers(broker)) == (200, b"", 0)


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("partitions=2", 404, "not-found"),
        ("partitions=0,x", 400, "invalid-input"),
        ("partitions=", 400, "invalid-input"),
        ("positions=7:1", 400, "invalid-input"),
        ("positions=nonsense", 400, "invalid-input"),
        ("from=middle", 400, "invalid-input"),
        ("field=a", 400, "invalid-input"),
    ],
)
def test_a_query_that_is_none_is_refused(rest: RestCaller, topic: str, query: str, status: int, code: str) -> None:
    rest.refused(status, code, "GET", f"topics/{topic}/stream?{query}")


def test_what_is_too_wide_to_follow_at_once_is_followed_in_parts(broker: Broker, rest: RestCaller) -> None:
    broker.create_topic("wide", 65)
    store(rest, "wide", "last", partition=64)
    rest.refused(400, "invalid-input", "GET", "topics/wide/stream")
    rest.refused(404, "not-found", "GET", "topics/nowhere/stream")

    with EventReader(broker.endpoint, "wide", "from=earliest&partitions=3,64") as reader:
        assert reader.values(1) == ["last"]


def test_a_node_that_ends_ends_its_streams_and_is_not_held_up() -> None:
    with Broker(http=True, default_partitions=1) as broker:
        broker.create_topic("orders")
        reader = EventReader(broker.endpoint, "orders")
        broker.stop()

        assert reader.next_block() is None


@pytest.fixture
def impatient() -> Iterator[Broker]:
    with Broker(http=True, request_timeout=2_000, default_partitions=1) as broker:
        broker.create_topic("orders")
        yield broker


def test_who_does_not_read_is_hung_up_on_and_others_go_on(impatient: Broker) -> None:
    rest = RestCaller(impatient.endpoint)
    for _ in range(24):
        store(rest, "orders", "x" * 900_000)
    assert impatient.node.doors.http is not None
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.settimeout(HUNG_SECONDS)
        lazy.connect(("127.0.0.1", impatient.node.doors.http.port))
        lazy.sendall(f"GET {API}/topics/orders/stream?from=earliest HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert lazy.recv(12) == b"HTTP/1.1 200"

        # It reads from its first moment on, or it would be hung up on as well.
        with EventReader(impatient.endpoint, "orders", "from=earliest") as reader:
            assert len(reader.values(24)) == 24
            wait_for_readers(impatient, 1)


def test_partitions_that_are_added_are_followed_from_their_beginning(
    broker: Broker, rest: RestCaller, topic: str
) -> None:
    with EventReader(broker.endpoint, topic) as reader:
        broker.create_partitions(topic, 4)
        store(rest, topic, "in a new one", partition=3)
        store(rest, topic, "what a reader wakes up for", partition=0)

        first, second = reader.next_event(), reader.next_event()

    assert (first.data["partition"], first.id) == (0, "0:1,1:0,2:0,3:0")
    assert (second.data["partition"], second.data["offset"], second.id) == (3, 0, "0:1,1:0,2:0,3:1")


def test_who_follows_some_partitions_follows_no_others(broker: Broker, rest: RestCaller, topic: str) -> None:
    with EventReader(broker.endpoint, topic, "partitions=1") as reader:
        broker.create_partitions(topic, 3)
        store(rest, topic, "not asked for", partition=2)
        store(rest, topic, "asked for", partition=1)

        assert reader.next_event().data["value"] == "asked for"
