"""A broker of this process, and the readers of the data source as Spark drives them, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_parts.topics import Topic
from streamhouse.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(durable=True, http=True) as running:
        yield running


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> Topic:
    """With two partitions; records go to segments only when a test says so."""
    return Topic.create(broker, request.node.name)
