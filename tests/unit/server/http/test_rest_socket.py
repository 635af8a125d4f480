"""Following over a WebSocket, with a real client."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from node.wait import HUNG_SECONDS, eventually
from rest_parts.caller import API, RestCaller
from rest_parts.following import wait_for_readers
from rest_parts.sending import send
from streamhouse.testing import Broker


@pytest.fixture
def topic(broker: Broker) -> str:
    """With two partitions."""
    name = f"topic-{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def url(broker: Broker, topic: str, query: str = "") -> str:
    return f"{broker.endpoint.replace('http:', 'ws:')}{API}/topics/{topic}/ws?{query}"


def received(connection: ClientConnection) -> Any:
    return json.loads(connection.recv(timeout=HUNG_SECONDS))


def close_code(connection: ClientConnection) -> int | None:
    """Waits for the end."""
    try:
        while True:
            connection.recv(timeout=HUNG_SECONDS)
    except ConnectionClosed as ended:
        return None if ended.rcvd is None else ended.rcvd.code


def test_records_come_as_they_are_stored(broker: Broker, rest: RestCaller, topic: str) -> None:
    with connect(url(broker, topic)) as connection:
        rest.post(
            f"topics/{topic}/records", {"records": [{"key": "k", "value": {"n": 1}, "partition": 1, "timestamp_ms": 7}]}
        )

        assert received(connection) == {
            "positions": "0:0,1:1",
            "record": {
                "partition": 1,
                "offset": 0,
                "timestamp_ms": 7,
                "key": "k",
                "key_format": "text",
                "value": {"n": 1},
                "value_format": "json",
                "headers": [],
            },
        }


def test_positions_go_on_where_it_was(broker: Broker, topic: str) -> None:
    send(broker, topic, partition=0, count=5)
    send(broker, topic, partition=1, count=5)
    query = "from=earliest"
    seen: list[tuple[int, int]] = []
    for _ in range(10):
        with connect(url(broker, topic, query)) as connection:
            message = received(connection)
        seen.append((message["record"]["partition"], message["record"]["offset"]))
        query = f"positions={message['positions']}"

    assert sorted(seen) == [(partition, offset) for partition in (0, 1) for offset in range(5)]


def test_what_a_client_says_is_ignored_within_limits(broker: Broker, rest: RestCaller, topic: str) -> None:
    with connect(url(broker, topic)) as connection:
        for number in range(100):
            connection.send(f"hello {number}")
            connection.send(b"\xff")
        rest.post(f"topics/{topic}/records", {"records": [{"value": "still there"}]})
        assert received(connection)["record"]["value"] == "still there"

        connection.send("x" * 100_000)
        assert close_code(connection) == 1009


@pytest.mark.parametrize("origin", ["http://elsewhere.example", "null", "http://127.0.0.1"])
def test_a_page_of_another_site_cannot_connect(broker: Broker, topic: str, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused, connect(url(broker, topic), origin=Origin(origin)):
        pass

    assert refused.value.response.status_code == 403
    assert json.loads(refused.value.response.body)["code"] == "foreign-origin"


def test_a_page_of_this_port_can_connect(broker: Broker, rest: RestCaller, topic: str) -> None:
    with connect(url(broker, topic), origin=Origin(broker.endpoint)) as connection:
        rest.post(f"topics/{topic}/records", {"records": [{"value": 1}]})
        assert received(connection)["record"]["value"] == 1


@pytest.mark.parametrize(
    ("name", "query", "status", "code"),
    [
        ("nowhere", "", 404, "not-found"),
        ("{topic}", "partitions=9", 404, "not-found"),
        ("{topic}", "positions=nonsense", 400, "invalid-input"),
        ("{topic}", "form=earliest", 400, "invalid-input"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_a_reason(
    broker: Broker, topic: str, name: str, query: str, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(url(broker, name.format(topic=topic), query)),
    ):
        pass

    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["code"] == code
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_path_without_a_socket_refuses_one(broker: Broker, rest: RestCaller) -> None:
    with pytest.raises(InvalidStatus) as refused, connect(broker.endpoint.replace("http:", "ws:") + "/openapi.json"):
        pass

    assert refused.value.response.status_code == 403
    assert rest.call("GET", "/openapi.json").status == 200


def test_the_end_of_a_topic_is_the_end_of_the_connection(broker: Broker, rest: RestCaller, topic: str) -> None:
    with connect(url(broker, topic)) as connection:
        rest.delete(f"topics/{topic}")
        assert close_code(connection) == 1011


def test_a_client_that_leaves_gives_its_place_back(broker: Broker, topic: str) -> None:
    wait_for_readers(broker, 0)
    politely = connect(url(broker, topic)).__enter__()
    at_once = connect(url(broker, topic)).__enter__()
    wait_for_readers(broker, 2)
    politely.close()
    at_once.socket.shutdown(socket.SHUT_RDWR)

    wait_for_readers(broker, 0)


def test_a_node_that_ends_closes_its_sockets_and_is_not_held_up() -> None:
    with Broker(http=True, default_partitions=1) as broker:
        broker.create_topic("orders")
        with connect(url(broker, "orders")) as connection:
            broker.stop()
            assert close_code(connection) in (1001, 1012)


@pytest.fixture
def impatient() -> Iterator[Broker]:
    with Broker(http=True, request_timeout=500, default_partitions=1) as broker:
        broker.create_topic("orders")
        yield broker


def test_who_does_not_read_is_hung_up_on(impatient: Broker) -> None:
    rest = RestCaller(impatient.endpoint)
    for _ in range(24):
        rest.post("topics/orders/records", {"records": [{"value": "x" * 900_000}]})
    assert impatient.node.doors.http is not None
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.settimeout(HUNG_SECONDS)
        lazy.connect(("127.0.0.1", impatient.node.doors.http.port))
        lazy.sendall(
            f"GET {API}/topics/orders/ws?from=earliest HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )
        assert lazy.recv(12) == b"HTTP/1.1 101"
        wait_for_readers(impatient, 0)


def test_bytes_that_are_no_frames_end_the_connection_and_nothing_else(
    broker: Broker, rest: RestCaller, topic: str
) -> None:
    with connect(url(broker, topic)) as connection:
        connection.socket.sendall(b"\xff" * 64)
        assert close_code(connection) == 1002
    eventually(lambda: rest.call("GET", "/openapi.json").status == 200, "the node to answer others")
