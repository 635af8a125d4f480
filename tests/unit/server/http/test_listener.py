"""The HTTP port against clients that send nonsense, too much, too slowly, or leave."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any

import pytest

from node.wait import HUNG_SECONDS, eventually
from services.ports import free_port
from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import StorageUnavailable
from streamhouse.objects.faulty import Operation
from streamhouse.testing import Broker

RANGES = "/v1/planning/ranges"
JSON = {"Content-Type": "application/json"}
Connect = Callable[[], socket.socket]


def ask(
    broker: Broker, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[HTTPResponse, Any]:
    host, _, port = broker.endpoint.removeprefix("http://").rpartition(":")
    connection = HTTPConnection(host, int(port), timeout=HUNG_SECONDS)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        content = answer.read()
        return answer, json.loads(content) if answer.headers["content-type"] == "application/json" else content
    finally:
        connection.close()


def is_closed(connection: socket.socket) -> bool:
    """Waits for the node's next word; true if it is the end."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_a_node_says_that_it_is_well(broker: Broker) -> None:
    answer, content = ask(broker, "GET", "/health")

    assert (answer.status, content) == (200, {"status": "ok"})
    assert answer.headers["server"] is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"questions": 5}',
        b'{"questions": [{"topic": "t"}]}',
        b'{"questions": [{"topic": "t", "partition": "0", "start": 0, "end": 1}]}',
        b'{"questions": [{"topic": "t", "partition": 0, "start": 1e99, "end": 1}]}',
        b"[" * 100_000,
    ],
)
def test_a_body_that_is_not_the_message_is_refused_with_a_reason(broker: Broker, body: bytes) -> None:
    answer, content = ask(broker, "POST", RANGES, body, JSON)

    assert (answer.status, content["error"]) == (400, "malformed-request")
    assert content["message"].startswith("the body is not what this call takes")


def test_a_body_that_is_not_said_to_be_json_is_refused(broker: Broker) -> None:
    for headers in ({}, {"Content-Type": "text/plain"}):
        answer, content = ask(broker, "POST", RANGES, b'{"questions": []}', headers)
        assert (answer.status, content["error"]) == (400, "malformed-request")

    answer, content = ask(
        broker, "POST", RANGES, b'{"questions": []}', {"Content-Type": "application/json; charset=utf-8"}
    )
    assert (answer.status, content) == (200, {"ranges": []})


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/v1/planning/nothing", 404, "not-found"),
        ("GET", RANGES, 405, "unsupported"),
        ("DELETE", "/v1/planning/topics", 405, "unsupported"),
    ],
)
def test_what_there_is_not_is_said_in_json(broker: Broker, method: str, path: str, status: int, kind: str) -> None:
    answer, content = ask(broker, method, path)

    assert (answer.status, content["error"]) == (status, kind)
    assert path in content["message"]


def test_a_body_that_is_too_large_is_refused_by_its_length_and_by_its_bytes(broker: Broker) -> None:
    def parts() -> Any:
        for _ in range(20):
            yield b" " * 2**20

    for body, headers in ((b" " * (16 * 2**20 + 1), JSON), (parts(), JSON)):
        answer, content = ask(broker, "POST", RANGES, body, headers)
        assert (answer.status, content["error"]) == (413, "batch-too-large")


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET /" + b"x" * 100_000,
        b"POST /v1/planning/ranges HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/planning/ranges HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_bytes_that_are_not_http_end_the_connection_and_nothing_else(
    broker: Broker, connect: Connect, nonsense: bytes
) -> None:
    connection = connect()
    connection.sendall(nonsense)

    answer = b""
    while chunk := _received(connection):
        answer += chunk
    assert answer.startswith(b"HTTP/1.1 400") or not answer
    assert ask(broker, "GET", "/health")[0].status == 200


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(2**16)
    except ConnectionError:
        return b""


def test_a_client_that_leaves_in_the_middle_of_a_body_disturbs_nobody(broker: Broker, connect: Connect) -> None:
    connection = connect()
    connection.sendall(b"POST /v1/planning/ranges HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
    connection.sendall(b'Content-Length: 100\r\n\r\n{"questions"')
    connection.close()

    assert ask(broker, "GET", "/health")[0].status == 200


@pytest.fixture
def impatient() -> Any:
    with Broker(http=True, request_timeout=1_000) as broker:
        yield broker


def _connect(broker: Broker) -> socket.socket:
    assert broker.node.doors.http is not None
    return socket.create_connection(("127.0.0.1", broker.node.doors.http.port), timeout=HUNG_SECONDS)


@pytest.mark.parametrize("sent", [b"", b"GET /hea", b"GET /health HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_connection_that_sends_no_request_is_closed(impatient: Broker, sent: bytes) -> None:
    with _connect(impatient) as connection:
        connection.sendall(sent)
        assert is_closed(connection)


def test_a_request_that_comes_byte_by_byte_is_not_waited_for_longer_than_one_that_does_not_come(
    impatient: Broker,
) -> None:
    with _connect(impatient) as connection:
        connection.settimeout(0.02)

        def ended() -> bool:
            try:
                connection.sendall(b"G")
                return connection.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        eventually(ended, "the node to lose its patience")


def test_a_body_that_does_not_come_is_answered_and_the_connection_closed(impatient: Broker) -> None:
    with _connect(impatient) as connection:
        connection.sendall(b"POST /v1/planning/ranges HTTP/1.1\r\nHost: localhost\r\n")
        connection.sendall(b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")

        answer = HTTPResponse(connection)
        answer.begin()
        assert answer.status == 400
        assert b"took too long" in answer.read()
        connection.sendall(b" ")
        assert is_closed(connection)


def test_connections_beyond_the_limit_are_closed_and_others_go_on() -> None:
    with Broker(http=True, max_connections=3) as broker:
        connections = [_connect(broker) for _ in range(3)]
        for connection in connections:
            _ask_for_health(connection)
        with _connect(broker) as one_more:
            assert is_closed(one_more)
        _ask_for_health(connections[0])
        for connection in connections:
            connection.close()

        eventually(lambda: _is_well(broker), "room for another")


def _ask_for_health(connection: socket.socket) -> None:
    connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = HTTPResponse(connection)
    answer.begin()
    assert (answer.status, json.loads(answer.read())) == (200, {"status": "ok"})


def _is_well(broker: Broker) -> bool:
    try:
        return ask(broker, "GET", "/health")[0].status == 200
    except (OSError, HTTPException):
        return False


def test_a_port_that_is_taken_is_said_at_the_start() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(StorageUnavailable, match="--http-port"):
            Broker(http=True, http_port=taken.getsockname()[1]).start()


def test_a_restart_is_on_the_same_port_and_clients_go_on() -> None:
    with Broker(http=True, http_port=free_port()) as broker, PlanningClient(broker.endpoint) as client:
        broker.create_topic("orders")
        before = client.topics()
        broker.restart()

        assert client.topics() == before


def test_a_drain_finishes_what_was_received() -> None:
    with Broker(http=True) as broker:
        http, objects = broker.node.doors.http, broker._objects
        assert http is not None
        broker._run(objects.create("segments/slow", [b"content"]))
        hold = objects.hold(Operation.HEAD)
        answers: list[Any] = []
        reader = threading.Thread(
            target=lambda: answers.append(ask(broker, "GET", "/v1/planning/objects/segments/slow"))
        )
        reader.start()
        eventually(hold.reached.is_set, "the request to be under way")
        stopper = threading.Thread(target=broker.stop)
        stopper.start()
        eventually(lambda: _is_refused(http.port), "no new connections")
        broker._loop.call_soon_threadsafe(hold.release)
        stopper.join()
        reader.join()

    ((answer, content),) = answers
    assert (answer.status, content) == (200, b"content")


def _is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False
