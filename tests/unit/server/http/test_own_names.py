"""A port of this machine alone is answered under this machine's names only, whatever is asked for."""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from node.wait import HUNG_SECONDS
from streamhouse.model.settings import Settings
from streamhouse.server.http.own_names import OwnNames, guarded
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

    assert status == 403
    problem = json.loads(content)
    assert problem["code"] == "foreign-host"
    assert host in problem["detail"]
    assert "--advertise" in problem["hint"]


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

    assert refused.value.response.status_code == 403
    assert json.loads(refused.value.response.body)["code"] == "foreign-host"


def test_the_name_that_clients_are_told_is_the_nodes_own() -> None:
    with Broker(http=True, advertise="Streams.example:9092") as broker:
        assert ask(broker, "/health", "streams.example")[0] == 200
        assert ask(broker, "/health", "other.example")[0] == 403


@pytest.mark.parametrize(
    ("host", "is_guarded"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("10.0.0.1", False), ("node", False)],
)
def test_a_port_that_is_open_to_a_network_is_called_by_any_name(host: str, is_guarded: bool) -> None:
    async def app(scope: object, receive: object, send: object) -> None: ...

    assert isinstance(guarded(app, Settings(host=host)), OwnNames) is is_guarded
