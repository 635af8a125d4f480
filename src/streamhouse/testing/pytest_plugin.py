"""The pytest fixture `streamhouse_broker`: a broker of its own for each test.

Settings go through a marker: `@pytest.mark.streamhouse(default_partitions=1, durable=True)`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from streamhouse.testing.broker import Broker


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "streamhouse(**settings): settings of the streamhouse_broker fixture")


@pytest.fixture
def streamhouse_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    # Loaded only where it is used: a plugin costs every pytest run its imports.
    from streamhouse.testing.broker import Broker

    marker = request.node.get_closest_marker("streamhouse")
    with Broker(**(marker.kwargs if marker is not None else {})) as broker:
        yield broker
