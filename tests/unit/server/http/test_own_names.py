"""An HTTP port is answered under its own names only, whatever is asked for and wherever it is bound to."""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from node.wait import HUNG_SECONDS
from streamhouse.model.settings import Settings
from streamhouse.server.http.own_names import guarded
from streamhouse.testing import Broker

FOREIGN = ["elsewhere.example", "elsewhere.example:8080", "localhost.example", "notlocalhost", "127.0.0.1.example"]


def ask(broker: Broker, path: str, host: str) -> tuple[int, bytes]:
    address, _, port = broker.endpoint.removeprefix("http://").rpartition(":")
    connection = HTTPConnection(address, int(port), timeout=HUNG_SECONDS)
    try:
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/topics", "/v1/planning/ranges"])
def test_a_page_whose_name_was_made_to_mean_this_machine_reads_nothing(broker: Broker, path: str, host: str) -> None:
    status, content = ask(broker, path, host)

    assert status == 421
    problem = json.loads(content)
    assert problem["code"] == "foreign-host"
    assert host in problem["detail"]
    assert "--http-names" in problem["hint"]


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "console.localhost:80", "127.0.0.1", "127.0.0.2:99", "[::1]", "[::1]:8080", ""]
)
def test_every_name_of_this_machine_will_do(broker: Broker, host: str) -> None:
    for _ in range(2):  # the second time it is known
        assert ask(broker, "/health", host)[0] == 200


def test_a_web_socket_is_refused_as_well(broker: Broker) -> None:
    broker.create_topic("guarded")
    address, _, port = broker.endpoint.removeprefix("http://").rpartition(":")
    opened = socket.create_connection((address, int(port)), timeout=HUNG_SECONDS)
    url = "ws://elsewhere.example/api/v1/topics/guarded/ws"
    with pytest.raises(InvalidStatus) as refused, connect(url, sock=opened):
        pass

    assert refused.value.response.status_code == 421
    assert json.loads(refused.value.response.body)["code"] == "foreign-host"


def test_the_names_that_clients_are_told_are_the_nodes_own() -> None:
    with Broker(http=True, advertise="Streams.example:9092") as broker:
        assert ask(broker, "/health", "streams.example")[0] == 200
        assert ask(broker, "/health", "other.example")[0] == 421


def test_a_port_that_is_open_to_a_network_is_called_by_its_own_names_too() -> None:
    with Broker(http=True, host="0.0.0.0", advertise="127.0.0.1") as broker:
        port = broker.endpoint.rpartition(":")[2]
        for host, status in {
            "evil.example": 421,
            f"evil.example:{port}": 421,
            f"127.0.0.1:{port}": 200,
            "192.168.7.7": 200,
            "localhost": 200,
            socket.gethostname(): 200,
        }.items():
            assert ask(broker, "/health", host)[0] == status, host


async def answered(app: ASGIApp, host: str) -> int:
    """The status that a request with this Host gets; 200 is the application's."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    scope = {"type": "http", "headers": [(b"host", host.encode())], "method": "GET", "path": "/"}
    await app(scope, receive, send)
    return int(sent[0]["status"])


async def greet(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def test_every_agents_advertised_name_is_known_as_agents_come() -> None:
    agents = {"agent-1"}
    app = guarded(greet, Settings(host="0.0.0.0"), lambda: agents)
    assert await answered(app, "agent-1:8080") == 200
    assert await answered(app, "agent-2:8080") == 421
    agents.add("Agent-2")
    assert await answered(app, "agent-2:8080") == 200


async def test_more_names_can_be_given() -> None:
    app = guarded(greet, Settings(http_names="streams.example, *.svc.cluster.local"))
    for host in ("streams.example", "STREAMS.example:80", "a.b.svc.cluster.local"):
        assert await answered(app, host) == 200, host
    for host in ("xstreams.example", "svc.cluster.local.evil.example", "evilsvc.cluster.local"):
        assert await answered(app, host) == 421, host


async def test_any_name_will_do_where_that_is_said() -> None:
    assert guarded(greet, Settings(http_names="*")) is greet


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/planning/adopt"), ("POST", "/v1/planning/ranges"), ("PUT", "/v1/planning/objects/staging/x")],
)
def test_a_page_of_another_site_plans_and_stages_nothing(broker: Broker, method: str, path: str) -> None:
    address, _, port = broker.endpoint.removeprefix("http://").rpartition(":")
    for origin, is_foreign in {"http://evil.example": True, "null": True, broker.endpoint: False}.items():
        connection = HTTPConnection(address, int(port), timeout=HUNG_SECONDS)
        headers = {"Origin": origin, "Content-Type": "application/json"}
        connection.request(method, path, body=b"{}", headers=headers)
        answer = connection.getresponse()
        assert (answer.status == 403 and b"foreign-origin" in answer.read()) is is_foreign, origin
        connection.close()


@pytest.mark.parametrize("path", ["/", "/health", "/metrics", "/v1/planning/cluster", "/nothing", "/docs"])
def test_browsers_guess_about_no_answer(broker: Broker, path: str) -> None:
    address, _, port = broker.endpoint.removeprefix("http://").rpartition(":")
    connection = HTTPConnection(address, int(port), timeout=HUNG_SECONDS)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.headers.get_all("X-Content-Type-Options") == ["nosniff"]
    connection.close()
