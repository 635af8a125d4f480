"""The planning client against nodes that refuse, hang up, come back, or are something else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest

from services.ports import free_port
from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import (
    InvalidInput,
    MetadataUnavailable,
    NotFound,
    NotLeader,
    OutcomeUnknown,
    StreamHouseError,
    Unavailable,
)
from streamhouse.wire.http import planning as api
from streamhouse.wire.http.error_statuses import error_answer, status_of

CLUSTER = api.ClusterAnswer(cluster_id="c", kafka=["k:9092"], objects=api.ObjectsLocation(url="s3://b"))
WELL = (200, msgspec.json.encode(CLUSTER))
HANG_UP = None
Answer = tuple[int, bytes] | None


class Scripted:
    """A server that gives these answers in turn, the last forever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, bytes, int]] = []
        """Method, path, body, and the connection's number."""
        self._connections: list[object] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(b"")

            def do_POST(self) -> None:
                self._answer(self.rfile.read(int(self.headers["Content-Length"])))

            def _answer(self, body: bytes) -> None:
                if self.connection not in script._connections:
                    script._connections.append(self.connection)
                script.asked.append((self.command, self.path, body, script._connections.index(self.connection)))
                answer = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
                if answer is None:
                    self.close_connection = True
                    return
                status, content = answer
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def scripted() -> Iterator[Callable[..., Scripted]]:
    servers: list[Scripted] = []

    def start(*answers: Answer) -> Scripted:
        servers.append(Scripted(*answers))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def refusal(problem: StreamHouseError) -> Answer:
    return status_of(problem), msgspec.json.encode(error_answer(problem))


def test_calls_share_a_connection(scripted: Callable[..., Scripted]) -> None:
    server = scripted(WELL)
    with PlanningClient(server.endpoint) as client:
        assert [client.cluster() for _ in range(3)] == [CLUSTER] * 3

    assert [(path, connection) for _, path, _, connection in server.asked] == [("/v1/planning/cluster", 0)] * 3


@pytest.mark.parametrize(
    "problem", [Unavailable("not now"), MetadataUnavailable("no database"), NotLeader("moved"), OutcomeUnknown("what?")]
)
def test_what_may_succeed_later_is_asked_again(scripted: Callable[..., Scripted], problem: StreamHouseError) -> None:
    server = scripted(refusal(problem), refusal(problem), WELL)
    with PlanningClient(server.endpoint) as client:
        assert client.cluster() == CLUSTER

    assert len(server.asked) == 3


def test_what_would_fail_again_is_not_asked_again_and_raised_as_what_it_was(scripted: Callable[..., Scripted]) -> None:
    server = scripted(refusal(NotFound("there is no topic 't'", hint="make it")))
    with PlanningClient(server.endpoint) as client, pytest.raises(NotFound) as caught:
        client.segments("t", 0)

    assert (caught.value.message, caught.value.hint) == ("there is no topic 't'", "make it")
    assert len(server.asked) == 1


def test_a_request_whose_connection_breaks_is_sent_again_as_it_was(scripted: Callable[..., Scripted]) -> None:
    request = api.AdoptRequest(sink_id="s", batch_id=7, objects=[])
    answer = api.AdoptAnswer(is_repeat=True, record_count=3)
    server = scripted(HANG_UP, HANG_UP, (200, msgspec.json.encode(answer)))
    with PlanningClient(server.endpoint) as client:
        assert client.adopt(request) == answer

    assert [msgspec.json.decode(body, type=api.AdoptRequest) for _, _, body, _ in server.asked] == [request] * 3


def test_a_kept_connection_that_the_node_closed_is_made_again(scripted: Callable[..., Scripted]) -> None:
    server = scripted(WELL, HANG_UP, WELL)
    with PlanningClient(server.endpoint) as client:
        assert (client.cluster(), client.cluster()) == (CLUSTER, CLUSTER)

    assert [connection for *_, connection in server.asked] == [0, 0, 1]


def test_the_next_endpoint_is_tried_where_one_does_not_answer(scripted: Callable[..., Scripted]) -> None:
    refusing, well = scripted(refusal(Unavailable("draining"))), scripted(WELL)
    nobody = f"http://127.0.0.1:{free_port()}"
    with PlanningClient(f"{nobody}, {refusing.endpoint},{well.endpoint}/") as client:
        assert (client.cluster(), client.cluster()) == (CLUSTER, CLUSTER)

    questions = [[path for _, path, _, _ in server.asked if path != "/health/live"] for server in (refusing, well)]
    assert [len(asked) for asked in questions] == [1, 2], "what works is kept"


def test_nobody_there_is_unavailable_in_the_end() -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    with PlanningClient(endpoint, timeout_seconds=0.2) as client, pytest.raises(Unavailable, match=endpoint):
        client.topics()


def test_nobody_who_has_ever_answered_is_told_of_long_before_the_time_out(scripted: Callable[..., Scripted]) -> None:
    endpoints = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    client = PlanningClient(",".join(endpoints), timeout_seconds=3600, reach_seconds=0.05)
    with client, pytest.raises(Unavailable, match=endpoints[1]):
        client.topics()

    with PlanningClient(f"{endpoints[0]},{scripted(WELL).endpoint}", reach_seconds=0) as client:
        assert client.cluster() == CLUSTER, "every endpoint is tried"


def test_who_has_answered_once_is_waited_for(scripted: Callable[..., Scripted]) -> None:
    server = scripted(WELL, *[refusal(Unavailable("starting"))] * 4, HANG_UP, HANG_UP, WELL)
    with PlanningClient(server.endpoint, reach_seconds=0) as client:
        assert (client.cluster(), client.cluster()) == (CLUSTER, CLUSTER)

    assert len(server.asked) == 8


def test_long_waiting_is_told_of_while_it_lasts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamhouse.client.http._TELL_AFTER_MS", 0)
    endpoint = f"127.0.0.1:{free_port()}"
    with PlanningClient(endpoint, timeout_seconds=0.5) as client, pytest.raises(Unavailable):
        client.topics()

    (told,) = caplog.messages
    assert told.startswith(f"{endpoint} does not answer: ")
    assert "asking again" in told


def test_a_node_that_never_can_is_unavailable_in_the_end_with_its_reason(scripted: Callable[..., Scripted]) -> None:
    server = scripted(refusal(NotLeader("nobody leads t/0")))
    client = PlanningClient(server.endpoint, timeout_seconds=3)
    with client, pytest.raises(Unavailable, match="nobody leads t/0"):
        client.tail("t", 0, 0, 1)

    assert len(server.asked) > 1


def test_a_node_that_does_not_answer_is_unavailable_after_the_time_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = PlanningClient(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_seconds=0.2)
        with client, pytest.raises(Unavailable, match="does not answer"):
            client.topics()


@pytest.mark.parametrize("answer", [(200, b"<html>"), (200, b'{"cluster_id": 5}'), (404, b"<html>"), (418, b"\xff")])
def test_a_server_of_another_kind_is_told_from_a_node(scripted: Callable[..., Scripted], answer: Answer) -> None:
    with PlanningClient(scripted(answer).endpoint) as client, pytest.raises(StreamHouseError, match="is it a StreamH"):
        client.cluster()


@pytest.mark.parametrize("endpoint", ["", "http://", "ftp://host:1", "http://host:port", "http://host:99999", "a b,"])
def test_what_is_no_endpoint_is_refused_at_once(endpoint: str) -> None:
    with pytest.raises(InvalidInput, match="is not an endpoint"):
        PlanningClient(endpoint)


def test_a_path_before_the_api_is_kept(scripted: Callable[..., Scripted]) -> None:
    server = scripted(WELL)
    with PlanningClient(f"{server.endpoint}/behind/a/proxy/") as client:
        client.cluster()

    assert server.asked[0][1] == "/behind/a/proxy/v1/planning/cluster"
