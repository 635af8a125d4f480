"""A node with a Flume port on a directory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamhouse.testing import Broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(flume=True, data_dir=tmp_path) as broker:
        yield broker
