"""Records over REST: stored one or many at a time, read from an offset or a time on, and waited for."""

from __future__ import annotations

import socket
import threading
from base64 import b64encode
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from node.wait import eventually
from rest_parts.caller import API, RestCaller
from rest_parts.sending import send
from streamhouse.server.http.rest import waiting
from streamhouse.testing import Broker

JSON = {"Content-Type": "application/json"}
Connect = Callable[[], socket.socket]


@pytest.fixture
def topic(broker: Broker) -> str:
    """With two partitions."""
    name = f"topic-{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def store(rest: RestCaller, topic: str, *records: dict[str, Any], status: int = 200, **formats: str) -> list[Any]:
    return list(rest.post(f"topics/{topic}/records", {"records": records, **formats}, status=status)["records"])


def read(rest: RestCaller, topic: str, query: str = "", partition: int = 0) -> Any:
    return rest.get(f"topics/{topic}/partitions/{partition}/records?{query}")


def test_a_record_comes_back_with_all_that_it_was_given(rest: RestCaller, topic: str) -> None:
    headers = [
        {"name": "trace", "value": "é", "format": "text"},
        {"name": "trace", "value": "/w==", "format": "base64"},
        {"name": "empty", "value": None, "format": "text"},
    ]
    (stored,) = store(
        rest, topic, {"key": "k", "value": {"a": [1, None]}, "headers": headers, "partition": 1, "timestamp_ms": 1234}
    )
    assert stored == {"partition": 1, "offset": 0, "timestamp_ms": 1234}

    answer = read(rest, topic, partition=1)

    assert answer == {
        "records": [
            {
                "partition": 1,
                "offset": 0,
                "timestamp_ms": 1234,
                "key": "k",
                "key_format": "text",
                "value": {"a": [1, None]},
                "value_format": "json",
                "headers": headers,
            }
        ],
        "next_offset": 1,
        "log_start_offset": 0,
        "high_watermark": 1,
    }


def test_formats_are_the_requests_or_the_records_own(rest: RestCaller, topic: str) -> None:
    store(
        rest,
        topic,
        {"partition": 0, "key": "AAEC", "value": "plain"},
        {"partition": 0, "key": "name", "key_format": "text", "value": {"n": 1}, "value_format": "json"},
        {"partition": 0, "key": {"id": 7}, "key_format": "json", "value": "/w==", "value_format": "base64"},
        {"partition": 0},
        key_format="base64",
        value_format="text",
    )

    as_bytes = read(rest, topic, "key_format=base64&value_format=base64")["records"]

    def encoded(data: bytes) -> str:
        return b64encode(data).decode()

    assert [(record["key"], record["value"]) for record in as_bytes] == [
        (encoded(b"\x00\x01\x02"), encoded(b"plain")),
        (encoded(b"name"), encoded(b'{"n": 1}')),
        (encoded(b'{"id": 7}'), encoded(b"\xff")),
        (None, None),
    ]
    assert [record["value_format"] for record in read(rest, topic)["records"]] == ["text", "json", "base64", None]


def test_a_key_has_one_partition_and_records_without_one_stay_together(rest: RestCaller, topic: str) -> None:
    keyed = store(rest, topic, *({"key": "same", "value": number} for number in range(5)))
    keyless = store(rest, topic, *({"value": number} for number in range(5)))

    assert len({record["partition"] for record in keyed}) == 1
    assert [record["offset"] for record in keyed] == list(range(5))
    assert len({record["partition"] for record in keyless}) == 1


def test_each_record_that_is_refused_says_why_and_the_others_are_stored(rest: RestCaller, topic: str) -> None:
    first, second, third, fourth = store(
        rest,
        topic,
        {"partition": 0, "value": 1},
        {"partition": 0, "value": "?", "value_format": "base64"},
        {"partition": 7, "value": 2},
        {"partition": 0, "value": 3},
        status=207,
    )

    assert (first["offset"], fourth["offset"]) == (0, 1)
    assert (second["error"]["code"], second["error"]["status"]) == ("invalid-input", 400)
    assert (third["error"]["code"], third["error"]["status"]) == ("not-found", 404)
    assert "offset" not in third
    assert [record["value"] for record in read(rest, topic)["records"]] == [1, 3]


def test_when_all_are_refused_for_one_reason_that_is_the_answer(rest: RestCaller, topic: str) -> None:
    path = f"topics/{topic}/records"
    wrong = {"partition": 9, "value": 1}
    rest.refused(404, "not-found", "POST", path, {"records": [wrong, wrong]})
    large = {"partition": 0, "value": "x" * 2_000_000}
    rest.refused(413, "batch-too-large", "POST", path, {"records": [large, {"partition": 0, "value": 1}]})
    several = rest.post(path, {"records": [wrong, {"value": "?", "value_format": "base64"}]}, status=207)
    assert [record["error"]["status"] for record in several["records"]] == [404, 400]
    assert read(rest, topic)["records"] == []


def test_a_topic_that_is_first_named_by_a_record_is_made(rest: RestCaller) -> None:
    name = f"topic-{uuid4().hex[:8]}"
    store(rest, name, {"value": 1})

    assert rest.get(f"topics/{name}")["partition_count"] == 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"records": []},
        {"records": [{}], "format": "json"},
        {"records": [{"vaule": 1}]},
        {"records": [{"partition": -1}]},
        {"records": [{"partition": 2**31}]},
        {"records": [{"timestamp_ms": -1}]},
        {"records": [{"timestamp_ms": 2**53 + 1}]},
        {"records": [{"value_format": "avro"}]},
        {"records": [{"headers": {"a": 1}}]},
        {"records": [{"headers": [{"value": "a"}]}]},
        {"records": [{}] * 10_001},
    ],
)
def test_a_request_that_is_not_one_is_refused(rest: RestCaller, topic: str, body: object) -> None:
    rest.refused(400, "malformed-request", "POST", f"topics/{topic}/records", body)
    assert read(rest, topic)["high_watermark"] == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b'{"records": [{"value": "\\ud800"}]}',
        b'{"records": [{"value": nul}]}',
        b'{"records": [{"value": ' + b"[" * 100_000,
    ],
)
def test_a_body_that_is_not_json_is_refused(rest: RestCaller, connect: Connect, topic: str, body: bytes) -> None:
    connection = connect()
    connection.sendall(
        f"POST {API}/topics/{topic}/records HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )

    answer = connection.recv(2**16)

    assert answer.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in answer
    assert read(rest, topic)["high_watermark"] == 0


def test_values_that_are_not_utf8_are_refused_each_for_itself(rest: RestCaller, connect: Connect, topic: str) -> None:
    body = b'{"records": [{"value": "\xff", "partition": 0}, {"value": "a", "partition": 0}]}'
    connection = connect()
    connection.sendall(
        f"POST {API}/topics/{topic}/records HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )

    assert connection.recv(2**16).startswith(b"HTTP/1.1 207")
    assert [record["value"] for record in read(rest, topic)["records"]] == ["a"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": ""},
        JSON | {"Origin": "http://elsewhere.example"},
        JSON | {"Origin": "null"},
    ],
)
def test_a_page_of_another_site_cannot_store_records(rest: RestCaller, topic: str, headers: dict[str, str]) -> None:
    answer = rest.call("POST", f"topics/{topic}/records", {"records": [{"value": 1}]}, headers=headers)

    assert answer.status in (400, 403)
    assert answer.content_type == "application/problem+json"
    assert [read(rest, topic, partition=partition)["high_watermark"] for partition in (0, 1)] == [0, 0]


def test_a_page_of_this_port_may_store_records(broker: Broker, rest: RestCaller, topic: str) -> None:
    answer = rest.call(
        "POST", f"topics/{topic}/records", {"records": [{"value": 1}]}, headers={"Origin": broker.endpoint}
    )

    assert answer.status == 200


def test_many_records_that_are_alike_are_stored_in_their_order_and_told_where(rest: RestCaller, topic: str) -> None:
    values = [{"number": number, "text": "ü"} for number in range(40)]
    records = [{"key": f"k{index}", "value": value, "partition": 1} for index, value in enumerate(values)]
    answer = rest.post(f"topics/{topic}/records", {"records": records})

    assert [(each["partition"], each["offset"]) for each in answer["records"]] == [(1, offset) for offset in range(40)]
    stored = read(rest, topic, partition=1)["records"]
    assert [(record["key"], record["value"]) for record in stored] == [(f"k{i}", v) for i, v in enumerate(values)]
    assert [record["timestamp_ms"] for record in stored] == [each["timestamp_ms"] for each in answer["records"]]


def test_many_records_with_times_of_their_own_are_told_these(rest: RestCaller, topic: str) -> None:
    records = [{"value": index, "partition": 0, "timestamp_ms": 1_000 + index} for index in range(20)]
    answer = rest.post(f"topics/{topic}/records", {"records": records})

    assert [each["timestamp_ms"] for each in answer["records"]] == [1_000 + index for index in range(20)]


def test_many_records_without_key_and_partition_stay_together(rest: RestCaller, topic: str) -> None:
    turns = [rest.post(f"topics/{topic}/records", {"records": [{"value": 1}] * 10})["records"] for _ in range(2)]

    partitions = [{each["partition"] for each in turn} for turn in turns]
    assert [len(each) for each in partitions] == [1, 1]
    assert partitions[0] != partitions[1], "those of the next request go to the next"


def test_many_records_of_a_partition_that_is_not_there_are_refused(rest: RestCaller, topic: str) -> None:
    answer = rest.call("POST", f"topics/{topic}/records", {"records": [{"value": 1, "partition": 9}] * 10})

    assert answer.status == 404


# --- reading ---


def test_records_are_read_page_by_page(broker: Broker, rest: RestCaller, topic: str) -> None:
    send(broker, topic, partition=1, count=25)
    values: list[int] = []
    offset = 0
    while offset < 25:
        page = read(rest, topic, f"offset={offset}&limit=10", partition=1)
        values += [record["value"] for record in page["records"]]
        offset = page["next_offset"]

    assert values == list(range(25))
    assert len(page["records"]) == 5


def test_a_page_has_so_many_bytes_and_at_least_one_record(rest: RestCaller, topic: str) -> None:
    store(rest, topic, *({"partition": 0, "value": "x" * 1_000} for _ in range(10)))

    page = read(rest, topic, "max_bytes=3500")
    assert (len(page["records"]), page["next_offset"]) == (3, 3)
    page = read(rest, topic, "max_bytes=1&offset=4")
    assert [record["offset"] for record in page["records"]] == [4]
    assert page["next_offset"] == 5


def test_reading_begins_at_a_time(rest: RestCaller, topic: str) -> None:
    store(rest, topic, *({"partition": 0, "value": time, "timestamp_ms": time} for time in (1000, 2000, 3000)))

    assert [record["value"] for record in read(rest, topic, "timestamp_ms=1500")["records"]] == [2000, 3000]
    late = read(rest, topic, "timestamp_ms=9000")
    assert (late["records"], late["next_offset"]) == ([], 3)


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("offset=4", 416, "offset-out-of-range"),
        ("offset=-1", 400, "invalid-input"),
        ("offset=null", 400, "invalid-input"),
        ("offset=", 400, "invalid-input"),
        (f"offset={2**63}", 400, "invalid-input"),
        ("offset=0&timestamp_ms=0", 400, "invalid-input"),
        ("offset=0&offset=1", 400, "invalid-input"),
        ("offest=0", 400, "invalid-input"),
        ("limit=0", 400, "invalid-input"),
        ("limit=10001", 400, "invalid-input"),
        ("max_wait_ms=30001", 400, "invalid-input"),
        ("max_bytes=999999999", 400, "invalid-input"),
        ("value_format=avro", 400, "invalid-input"),
    ],
)
def test_a_query_that_cannot_be_answered_is_refused(
    rest: RestCaller, topic: str, query: str, status: int, code: str
) -> None:
    rest.refused(status, code, "GET", f"topics/{topic}/partitions/0/records?{query}")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("nothing/partitions/0/records", 404),
        ("{topic}/partitions/2/records", 404),
        ("{topic}/partitions/-1/records", 400),
        ("{topic}/partitions/x/records", 400),
        ("{topic}/partitions/99999999999/records", 400),
        ("{topic}/partitions/%D9%A0/records", 400),
    ],
)
def test_a_partition_that_there_is_not_is_said(rest: RestCaller, topic: str, path: str, status: int) -> None:
    answer = rest.call("GET", f"topics/{path.format(topic=topic)}")

    assert (answer.status, answer.content_type) == (status, "application/problem+json")


def test_a_wait_ends_with_the_first_record(rest: RestCaller, topic: str) -> None:
    answers: list[Any] = []
    waiting_reader = threading.Thread(target=lambda: answers.append(read(rest, topic, "max_wait_ms=30000")))
    waiting_reader.start()
    store(rest, topic, {"partition": 0, "value": "here"})
    waiting_reader.join()

    assert [record["value"] for record in answers[0]["records"]] == ["here"]


def test_a_wait_for_nothing_ends_with_nothing(rest: RestCaller, topic: str) -> None:
    assert read(rest, topic, "max_wait_ms=50") == {
        "records": [],
        "next_offset": 0,
        "log_start_offset": 0,
        "high_watermark": 0,
    }


def test_a_node_that_ends_answers_those_who_wait() -> None:
    with Broker(http=True, default_partitions=1) as broker:
        broker.create_topic("orders")
        rest = RestCaller(broker.endpoint)
        answers: list[Any] = []
        reader = threading.Thread(target=lambda: answers.append(read(rest, "orders", "max_wait_ms=30000")))
        reader.start()
        api = broker.node.doors.http._rest  # type: ignore[union-attr]
        eventually(lambda: api._waiting._waiting == 1, "the reader to wait")
        broker.stop()
        reader.join()

    assert answers[0]["records"] == []


def test_readers_beyond_the_limit_are_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(waiting.Waiting.__init__.__kwdefaults__, "max_waiting", 1)
    with Broker(http=True, default_partitions=1) as broker:
        broker.create_topic("orders")
        rest = RestCaller(broker.endpoint)
        reader = threading.Thread(target=read, args=(rest, "orders", "max_wait_ms=30000"))
        reader.start()
        api = broker.node.doors.http._rest  # type: ignore[union-attr]
        eventually(lambda: api._waiting._waiting == 1, "the reader to wait")

        rest.refused(503, "unavailable", "GET", "topics/orders/partitions/0/records?max_wait_ms=10")
        assert read(rest, "orders")["records"] == []
        store(rest, "orders", {"value": 1})
        reader.join()
        assert read(rest, "orders", "max_wait_ms=10")["high_watermark"] == 1
