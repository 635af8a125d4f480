"""How long endpoints are waited for that never answered: seconds, whatever they do, unless one is a busy node."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic

import msgspec
import pytest

from services.ports import free_port
from streamhouse.client.http import HttpEndpoints
from streamhouse.model.errors import Unavailable
from streamhouse.wire.http.error_statuses import error_answer, status_of

PATIENCE_S = 60
"""With a node that has answered."""
WELL_BEFORE_S = 20
PATH = "/v1/planning/topics"
Handle = Callable[[BaseHTTPRequestHandler], None]
LISTENING = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
Serve = Callable[[Handle], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Answers as told, at the endpoint that it returns."""
    servers: list[ThreadingHTTPServer] = []

    def start(handle: Handle) -> str:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                handle(self)

            def log_message(self, *_: object) -> None:
                return

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def silent() -> Iterator[str]:
    """Takes connections, by the kernel, and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def answer(handler: BaseHTTPRequestHandler, status: int, content: bytes) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def unreached(*endpoints: str, reach_seconds: float = 0.1) -> HttpEndpoints:
    return HttpEndpoints(",".join(endpoints), timeout_seconds=PATIENCE_S, reach_seconds=reach_seconds)


def patient(*endpoints: str, timeout_seconds: float = PATIENCE_S) -> HttpEndpoints:
    """As Spark's workers are: whoever began the query has reached a node."""
    return HttpEndpoints(",".join(endpoints), timeout_seconds=timeout_seconds)


@contextmanager
def told_soon(match: str) -> Iterator[None]:
    begun = monotonic()
    with pytest.raises(Unavailable, match=match):
        yield
    assert monotonic() - begun < WELL_BEFORE_S


def first_answer_within(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr("streamhouse.client.http._FIRST_ANSWER_S", seconds)
    monkeypatch.setattr("streamhouse.client.http._LEAST_TURN_S", seconds / 20)


def test_silent_endpoints_do_not_add_up(monkeypatch: pytest.MonkeyPatch, silent: str) -> None:
    first_answer_within(monkeypatch, 2)
    with told_soon("does not answer: timed out"):
        unreached(*[silent] * 20).call("GET", PATH)


def test_a_silent_endpoint_leaves_time_for_the_one_behind_it(
    monkeypatch: pytest.MonkeyPatch, serve: Serve, silent: str
) -> None:
    first_answer_within(monkeypatch, 4)
    assert unreached(silent, serve(lambda handler: answer(handler, 200, b"[]"))).call("GET", PATH) == b"[]"


def test_a_silent_endpoint_costs_a_patient_client_its_turn_and_not_its_patience(
    monkeypatch: pytest.MonkeyPatch, serve: Serve, silent: str
) -> None:
    first_answer_within(monkeypatch, 4)
    endpoints = patient(silent, serve(lambda handler: answer(handler, 200, b"[]")))

    begun = monotonic()
    assert endpoints.call("GET", PATH) == b"[]"
    assert monotonic() - begun < WELL_BEFORE_S


def test_one_of_several_that_is_not_known_says_something_before_it_is_asked_and_so_nothing_is_asked_twice(
    serve: Serve,
) -> None:
    asked: list[str] = []

    def busy(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        answer(handler, 200, b"[]")

    endpoints = patient(serve(busy), f"http://127.0.0.1:{free_port()}")
    for _ in range(2):
        endpoints.call("GET", PATH)

    assert asked == ["/health/live", PATH, PATH]


def test_who_is_alone_is_asked_at_once(serve: Serve) -> None:
    asked: list[str] = []

    def only(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        answer(handler, 200, b"[]")

    patient(serve(only)).call("GET", PATH)

    assert asked == [PATH]


def test_nobody_gives_up_before_every_endpoint_was_asked_also_when_one_that_had_answered_takes_all_the_time(
    serve: Serve,
) -> None:
    is_paused, ended = threading.Event(), threading.Event()

    def paused(handler: BaseHTTPRequestHandler) -> None:
        if is_paused.is_set():
            ended.wait()
            handler.close_connection = True
        else:
            answer(handler, 200, b'"first"')

    other = serve(lambda handler: answer(handler, 200, b'"other"'))
    endpoints = patient(serve(paused), other, timeout_seconds=3)
    try:
        assert endpoints.call("GET", PATH) == b'"first"'
        is_paused.set()
        assert endpoints.call("GET", PATH) == b'"other"'
    finally:
        ended.set()


def test_a_proxy_that_answers_for_a_node_that_is_not_there_is_no_node(serve: Serve) -> None:
    proxy = serve(lambda handler: answer(handler, 503, b"<html>no upstream</html>"))
    with told_soon("answered 503: <html>no upstream"):
        unreached(proxy).call("GET", PATH)


def test_a_node_that_says_not_now_is_waited_for(serve: Serve) -> None:
    problem = Unavailable("starting")
    answers = [(status_of(problem), msgspec.json.encode(error_answer(problem)))] * 5 + [(200, b"[]")]
    endpoints = unreached(serve(lambda handler: answer(handler, *answers.pop(0))), reach_seconds=0)

    assert endpoints.call("GET", PATH) == b"[]"
    assert not answers


@pytest.mark.parametrize("said", ["", LISTENING], ids=["headers", "body"])
def test_a_peer_that_says_a_byte_now_and_then_does_not_hold_out(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    first_answer_within(monkeypatch, 1)
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        with connection:
            connection.sendall(said.encode() or b"HTTP/1.1 200 OK\r\nX-Long: ")
            while not ended.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=drip, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            with told_soon("does not answer: timed out"):
                unreached(f"127.0.0.1:{server.getsockname()[1]}").call("GET", PATH)
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)
            accepting.join()


def test_a_busy_node_that_says_that_it_is_alive_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, serve: Serve
) -> None:
    first_answer_within(monkeypatch, 6)
    is_asked = threading.Event()

    def answer_when_asked_for_life(handler: BaseHTTPRequestHandler) -> None:
        if handler.path == "/health/live":
            answer(handler, 200, b'{"status":"ok"}')
            is_asked.set()
        elif is_asked.is_set():
            answer(handler, 200, b"[]")
        else:
            is_asked.wait()
            handler.close_connection = True

    busy = serve(answer_when_asked_for_life)

    assert unreached(busy).call("GET", PATH) == b"[]"
    assert caplog.messages == [f"{busy.removeprefix('http://')} is there and busy; waiting for its answer"]


def test_a_server_of_another_kind_is_not_alive_because_it_answers_something(
    monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    first_answer_within(monkeypatch, 1)
    ended = threading.Event()

    def silent_but_for_its_front_page(handler: BaseHTTPRequestHandler) -> None:
        if handler.path == "/health/live":
            answer(handler, 200, b"<html>welcome</html>")
        else:
            ended.wait()

    other = serve(silent_but_for_its_front_page)
    try:
        with told_soon("does not answer"):
            unreached(other).call("GET", PATH)
    finally:
        ended.set()


def test_a_port_without_anybody_is_told_soon() -> None:
    with told_soon("Connection refused"):
        unreached(f"127.0.0.1:{free_port()}").call("GET", PATH)
