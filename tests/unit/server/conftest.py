"""A broker in memory and a socket to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from log_parts.kafka import Kafka
from streamhouse.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Shared by a module's tests, which use topics of their own."""
    with Broker(default_partitions=2, group_initial_rebalance_delay=0) as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = f"topic-{abs(hash(request.node.nodeid))}"
    broker.create_topic(name, partitions=2)
    return name


@pytest.fixture
def kafka(broker: Broker) -> Iterator[Kafka]:
    with Kafka(broker.bootstrap) as kafka:
        yield kafka
