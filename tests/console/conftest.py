"""One browser and one node with data for all tests of the console; each test is a visitor of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from console_parts.browser import chromium
from console_parts.shop import Shop, shop
from console_parts.viewer import Viewer, viewing


@pytest.fixture(autouse=True)
def event_loop_runner() -> None:
    """None: the browser's driver has the only loop of this thread."""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def store() -> Iterator[Shop]:
    """Shared: tests change only what they made."""
    directory = Path(tempfile.mkdtemp(prefix="console-"))
    try:
        with shop(directory) as filled:
            yield filled
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def viewer(browser: Browser, store: Shop) -> Iterator[Viewer]:
    with viewing(browser, store.http) as viewer:
        yield viewer
