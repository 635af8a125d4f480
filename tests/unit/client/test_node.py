"""Any address of a node leads to its other doors, and what is no address of a node is told apart."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from node.wait import HUNG_SECONDS
from rest_parts.caller import RestCaller
from rest_parts.sending import send
from streamhouse.app.doors import Door
from streamhouse.app.node import Node
from streamhouse.client import node
from streamhouse.client.cluster import Cluster
from streamhouse.client.connection import ConnectionOptions
from streamhouse.client.node import http_endpoint, http_endpoints
from streamhouse.model.broker_config import HTTP_ADDRESS_CONFIG
from streamhouse.model.errors import InvalidConfig, InvalidInput, Unavailable
from streamhouse.model.settings import Settings
from streamhouse.testing import Broker
from streamhouse.wire.kafka.messages import describe_configs
from unit.client.conftest import FakeBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(http=True, grpc=True, flume=True, default_partitions=1) as broker:
        broker.create_topic("orders", 1)
        yield broker


@pytest.fixture
def nowhere() -> Iterator[str]:
    """A port that is taken and at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Something that says the same to everybody, and hangs up."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(HUNG_SECONDS)


@pytest.fixture
def silent() -> Iterator[str]:
    """Where connections are accepted, as the kernel does for a process that is paused, and nothing is answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def topics_of(bootstrap: str, patience_ms: int = 10_000) -> list[str]:
    async def ask() -> list[str]:
        async with Cluster.connect(bootstrap, ConnectionOptions(connect_timeout_ms=patience_ms)) as cluster:
            return [topic.name for topic in await cluster.all_topics()]

    return asyncio.run(ask())


def endpoint_of(bootstrap: str) -> str:
    return asyncio.run(http_endpoint(bootstrap))


def refusal_of(ask: Callable[[], object]) -> str:
    with pytest.raises(Unavailable) as refused:
        ask()
    return refused.value.message


def test_every_address_of_a_node_leads_to_both_of_its_ports(broker: Broker, nowhere: str) -> None:
    http = broker.endpoint.removeprefix("http://")
    for address in (broker.bootstrap, http, broker.endpoint, f"{broker.endpoint}/", f"{nowhere}, {http}"):
        assert endpoint_of(address) == broker.endpoint
        assert topics_of(address) == ["orders"]


def test_a_node_says_where_it_is_called(broker: Broker) -> None:
    identity = broker.node.broker.identity
    assert RestCaller(broker.endpoint).get("node") == {
        "agent_id": identity.agent_id,
        "node_id": identity.node_id,
        "cluster_id": identity.cluster_id,
        "version": "0.1.0",
        "kafka_address": broker.bootstrap,
        "http_address": broker.endpoint.removeprefix("http://"),
    }


def test_a_node_on_ipv6_is_found_too() -> None:
    with Broker(http=True, host="::1") as broker:
        port = broker.node.kafka.endpoint.port
        assert broker.endpoint.startswith("http://[::1]:")
        assert endpoint_of(f"[::1]:{port}") == broker.endpoint
        assert topics_of(broker.endpoint) == []
        broker.create_topic("orders", 1)
        send(broker, "orders", partition=0, count=1)  # to the leader, where the metadata say that it is


async def test_a_server_without_an_agent_is_found_though_no_broker_list_names_it(tmp_path: Path) -> None:
    places = {"metadata": f"sqlite://{tmp_path}/metadata.db", "objects": f"file://{tmp_path}/objects"}
    ports = {"kafka_port": 0, "http_port": 0, "grpc_port": 0, "flume_port": 0}
    server = Node(Settings(data_dir=str(tmp_path), **places, **ports), is_agent=False, opens=[Door.HTTP])
    await server.start()
    try:
        assert await http_endpoint(server.kafka.address) == f"http://{server.addresses['http']}"
    finally:
        await server.drain()


def test_a_node_is_called_where_it_says_else_on_the_host_by_which_it_was_found() -> None:
    with Broker(http=True, advertise="127.0.0.2", advertise_http="127.0.0.1") as broker:
        assert endpoint_of(f"127.0.0.1:{broker.node.kafka.endpoint.port}") == broker.endpoint
    with Broker(http=True, advertise="127.0.0.2") as broker:  # at which nobody listens
        assert broker.node.broker.identity.http_address.startswith("127.0.0.2:")
        assert endpoint_of(f"127.0.0.1:{broker.node.kafka.endpoint.port}") == broker.endpoint


def test_a_node_that_says_a_wrong_port_is_told_from_one_that_has_none(nowhere: str) -> None:
    with Broker(http=True, advertise_http=nowhere) as broker:
        said = refusal_of(lambda: endpoint_of(broker.bootstrap))
        assert f"the node at {broker.bootstrap} says that its HTTP port is {nowhere}" in said
        assert endpoint_of(broker.endpoint) == broker.endpoint
    with Broker() as broker:
        assert refusal_of(lambda: endpoint_of(broker.bootstrap)).endswith("has no HTTP port open")
    with pytest.raises(InvalidConfig), Broker(http=True, advertise_http="one:two"):
        pass


def test_where_nothing_answers_is_said_at_once(nowhere: str) -> None:
    assert refusal_of(lambda: endpoint_of(nowhere)) == f"nothing answers at {nowhere}"
    assert f"nothing answers at http://{nowhere}" in refusal_of(lambda: endpoint_of(f"http://{nowhere}"))
    both = refusal_of(lambda: endpoint_of(f"{nowhere},http://{nowhere}"))
    assert both.startswith(f"no node answers: nothing answers at {nowhere}; nothing answers at http://{nowhere}")
    assert refusal_of(lambda: topics_of(nowhere)) == f"no broker at {nowhere}"
    for address in ("", "one two", "http://", "a:b", "ftp://127.0.0.1:21"):
        with pytest.raises(InvalidInput):
            endpoint_of(address)


def test_what_is_no_node_is_told_apart(broker: Broker) -> None:
    for neither in (broker.grpc_address, broker.flume_address):
        for ask in (endpoint_of, topics_of):
            said = refusal_of(lambda ask=ask, neither=neither: ask(neither))
            assert said == f"what answers at {neither} is neither a node's Kafka port nor its HTTP port"
    for other in (broker.grpc_address, broker.flume_address, broker.bootstrap):
        for ask in (endpoint_of, topics_of):
            said = refusal_of(lambda ask=ask, other=other: ask(f"http://{other}"))
            assert said == f"what answers at http://{other} is no HTTP server"
    with answering(b"SSH-2.0-OpenSSH_9.6\r\n") as shell:
        assert "is neither a node's Kafka port" in refusal_of(lambda: endpoint_of(shell))
        assert "is neither a node's Kafka port" in refusal_of(lambda: topics_of(shell))
    page = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n\r\nnginx"
    with answering(page) as web:
        for address in (web, f"http://{web}"):
            said = refusal_of(lambda address=address: endpoint_of(address))
            assert "is an HTTP server and no StreamHouse node: it answered 404: nginx" in said
            assert "is an HTTP server and no StreamHouse node" in refusal_of(lambda address=address: topics_of(address))


def test_a_url_for_tls_at_a_port_without_it_is_told_how_to_be_written(broker: Broker) -> None:
    with pytest.raises(Unavailable) as refused:
        endpoint_of(broker.endpoint.replace("http:", "https:"))
    assert "does not speak TLS" in refused.value.message
    assert refused.value.hint == "write http://"


def test_a_node_that_accepts_connections_and_is_silent_is_a_node_all_the_same(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "_PATIENCE_MS", 100)
    for address in (silent, f"http://{silent}"):
        for ask in (endpoint_of, lambda address: topics_of(address, patience_ms=100)):
            with pytest.raises(Unavailable) as refused:
                ask(address)
            said = f"{address} accepts connections and did not answer within 100 ms (is it paused or overloaded?)"
            assert str(refused.value) == said


def test_nobody_waits_for_a_silent_address_beside_one_that_answers(
    broker: Broker, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be waited for until the test is ended."""
    forever_ms = 10_000_000
    monkeypatch.setattr(node, "_PATIENCE_MS", forever_ms)
    for address in (
        f"{silent},{broker.bootstrap}",
        f"{broker.bootstrap},{silent}",
        f"http://{silent},{broker.endpoint}",
    ):
        assert endpoint_of(address) == broker.endpoint
        assert asyncio.run(http_endpoints(address)).startswith(broker.endpoint)
        assert topics_of(address, patience_ms=forever_ms) == ["orders"]


def test_a_node_that_is_called_by_a_name_that_it_does_not_know_says_so_itself(broker: Broker) -> None:
    called = broker.endpoint.replace("127.0.0.1", "127.1")
    for ask in (endpoint_of, topics_of):
        with pytest.raises(Unavailable) as refused:
            ask(called)
        assert refused.value.message.startswith(f"the node at {called}: this port is called by an IP address")
        assert "--http-names" in (refused.value.hint or "")
        assert ask(f"{called},{broker.bootstrap}")


def test_a_kafka_port_is_tried_where_it_is_said_to_be_and_on_the_host_of_the_http_port(nowhere: str) -> None:
    with Broker(http=True, advertise="127.0.0.2", advertise_http="127.0.0.1") as broker:  # at which nobody listens
        broker.create_topic("orders", 1)
        for address in (broker.endpoint, broker.endpoint.removeprefix("http://")):
            assert topics_of(address) == ["orders"]
    with Broker(http=True, advertise=nowhere) as broker:
        said = refusal_of(lambda: topics_of(broker.endpoint))
        assert said.startswith(f"the node at {broker.endpoint} says that its Kafka port is {nowhere}, and nobody")


async def test_a_broker_that_is_no_node_is_told_apart() -> None:
    def describe(request: describe_configs.DescribeConfigsRequest, _: int) -> object:
        return describe_configs.DescribeConfigsResponse(
            results=[
                describe_configs.DescribeConfigsResult(
                    error_message=None, resource_type=each.resource_type, resource_name=each.resource_name, configs=[]
                )
                for each in request.resources
            ]
        )

    async with FakeBroker() as kafka:
        kafka.answers[describe_configs.API_KEY] = describe
        with pytest.raises(Unavailable, match="is a Kafka broker and no StreamHouse node"):
            await http_endpoint(str(kafka.address))
        (asked,) = [each for each in kafka.requests if isinstance(each, describe_configs.DescribeConfigsRequest)]
        assert {each.configuration_keys[0] for each in asked.resources if each.configuration_keys} == {
            HTTP_ADDRESS_CONFIG
        }


def test_a_node_does_not_complain_of_who_looks_for_it(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert topics_of(broker.endpoint.removeprefix("http://")) == ["orders"]
        assert endpoint_of(broker.endpoint.removeprefix("http://")) == broker.endpoint
    assert caplog.records == []
