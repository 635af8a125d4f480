"""The pytest fixtures: `streamhouse_broker`, a broker of its own for each test, and `streamhouse_shared_broker`, one
for all tests of a session, or of an xdist worker, which each test finds as new.

Settings of all of them are what the fixture `streamhouse_settings` returns, which a project may override. A marker adds
to them for a test with its own broker: `@pytest.mark.streamhouse(default_partitions=1, durable=True)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from streamhouse.testing.broker import Broker


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "streamhouse(**settings): settings of the streamhouse_broker fixture")


@pytest.fixture(scope="session")
def streamhouse_settings() -> dict[str, Any]:
    """Settings of every broker: override it in your conftest.py."""
    return {}


@pytest.fixture
def streamhouse_broker(request: pytest.FixtureRequest, streamhouse_settings: dict[str, Any]) -> Iterator[Broker]:
    """A broker of the test's own."""
    marker = request.node.get_closest_marker("streamhouse")
    if marker is None:
        broker = _broker("streamhouse_settings", streamhouse_settings)
    elif marker.args:
        pytest.fail(f"@pytest.mark.streamhouse: {marker.args[0]!r} has no name; write SETTING=VALUE", pytrace=False)
    else:
        broker = _broker("@pytest.mark.streamhouse", {**streamhouse_settings, **marker.kwargs})
    with broker:
        yield broker


@pytest.fixture(scope="session")
def streamhouse_session_broker(streamhouse_settings: dict[str, Any]) -> Iterator[Broker]:
    """One for the session, as its tests leave it to one another."""
    with _broker("streamhouse_settings", streamhouse_settings) as broker:
        yield broker


@pytest.fixture
def streamhouse_shared_broker(request: pytest.FixtureRequest, streamhouse_session_broker: Broker) -> Iterator[Broker]:
    """The session's, as new."""
    if request.node.get_closest_marker("streamhouse") is not None:
        pytest.fail(
            "@pytest.mark.streamhouse: the shared broker runs already; its settings come from the fixture "
            "streamhouse_settings, or use streamhouse_broker",
            pytrace=False,
        )
    streamhouse_session_broker.reset()
    yield streamhouse_session_broker
    streamhouse_session_broker.reset()


def _broker(given_by: str, settings: Mapping[str, Any]) -> Broker:
    # Loaded only where it is used: a plugin costs every pytest run its imports.
    from streamhouse.model.errors import InvalidConfig
    from streamhouse.testing.broker import Broker

    try:
        return Broker(**settings)
    except InvalidConfig as problem:
        pytest.fail(f"{given_by}: {problem}", pytrace=False)
