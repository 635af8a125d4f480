"""A broker in memory with a Flume port, and a socket to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flume_parts.raw import RawFlume
from streamhouse.testing import Broker

HOUR_MS = 3_600_000
"""So long that no member is missed by the group itself before a test is over."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Shared by a module's tests, which use topics of their own."""
    with Broker(flume=True, max_message_bytes=256 * 1024, group_consumer_session_timeout=HOUR_MS) as broker:
        yield broker


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that nobody has used yet."""
    return f"topic-{abs(hash(request.node.nodeid))}"


@pytest.fixture
def flume(broker: Broker) -> Iterator[RawFlume]:
    with RawFlume(broker.flume_address) as flume:
        yield flume
