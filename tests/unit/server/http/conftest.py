"""A broker in memory with its HTTP port, callers and a client of it, and a raw connection to it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from node.wait import HUNG_SECONDS
from rest_parts.caller import RestCaller
from streamhouse.client.planning import PlanningClient
from streamhouse.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Shared by a module's tests, which use topics of their own."""
    with Broker(http=True, default_partitions=2, group_initial_rebalance_delay=0) as broker:
        yield broker


@pytest.fixture
def rest(broker: Broker) -> RestCaller:
    return RestCaller(broker.endpoint)


@pytest.fixture
def client(broker: Broker) -> Iterator[PlanningClient]:
    with PlanningClient(broker.endpoint, timeout_seconds=HUNG_SECONDS) as client:
        yield client


@pytest.fixture
def connect(broker: Broker) -> Iterator[Callable[[], socket.socket]]:
    """Makes connections to the HTTP port."""
    opened: list[socket.socket] = []

    def connect() -> socket.socket:
        assert broker.node.doors.http is not None
        opened.append(socket.create_connection(("127.0.0.1", broker.node.doors.http.port), timeout=HUNG_SECONDS))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()
