"""A thousand topics of ten partitions, hundreds of groups: in the page is what is on screen, within reach all of it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from console_parts.browser import HUNG_MS
from console_parts.many import node_with_topics, topic_name
from console_parts.viewer import Viewer, viewing
from rest_parts.caller import RestCaller

TOPICS = 1000
PARTITIONS = 10
GROUPS = 300
BEHIND = 250
"""The only group that lags: not among the first."""
ALL_ASKED_MS = 3 * HUNG_MS
"""Groups are asked one after the other."""
pytestmark = pytest.mark.timeout(900)
MOST_ROWS = 150
"""In the page at once: a window's worth, and some to spare."""


@pytest.fixture(scope="module")
def full_node() -> Iterator[str]:
    """Its address."""
    with (
        tempfile.TemporaryDirectory(prefix="console-many-") as directory,
        node_with_topics(Path(directory), TOPICS, PARTITIONS) as node,
    ):
        yield node.http


@pytest.fixture
def visitor(browser: Browser, full_node: str) -> Iterator[Viewer]:
    with viewing(browser, full_node) as viewer:
        yield viewer


def test_the_list_holds_all_of_them_and_the_page_only_those_on_screen(visitor: Viewer) -> None:
    visitor.go("#/topics")
    grid = visitor.table("Topics")
    expect(grid).to_have_attribute("aria-rowcount", str(TOPICS + 1))
    assert 0 < grid.locator("tbody tr[data-index]").count() < MOST_ROWS
    grid.locator("tbody tr[data-index]").first.focus()
    visitor.press("End")
    expect(visitor.row("Topics", topic_name(TOPICS - 1))).to_be_focused()
    assert grid.locator("tbody tr[data-index]").count() < MOST_ROWS
    visitor.press("Home")
    expect(visitor.row("Topics", topic_name(0))).to_be_focused()


def test_any_of_them_is_found_by_its_name(visitor: Viewer) -> None:
    visitor.go("#/topics")
    expect(visitor.table("Topics")).to_have_attribute("aria-rowcount", str(TOPICS + 1))
    visitor.press("/")
    visitor.page.keyboard.type("0777")
    expect(visitor.table("Topics").locator("tbody tr[data-index]")).to_have_count(1)
    visitor.press("Enter", "Enter")
    expect(visitor.page.get_by_role("heading", level=1, name=topic_name(777))).to_be_visible()


def test_the_ring_shows_ten_thousand_partitions(visitor: Viewer) -> None:
    visitor.go("#/cluster")
    shown = f"Hash ring: 1 of 1 agents live, {TOPICS * PARTITIONS:,} partitions"
    expect(visitor.page.get_by_role("img", name=shown, exact=True)).to_be_visible()
    expect(visitor.table("leases")).to_have_attribute("aria-rowcount", str(TOPICS * PARTITIONS + 1))
    assert visitor.table("leases").locator("tbody tr[data-index]").count() < MOST_ROWS
    visitor.assert_fits()


def test_overview_and_storage_take_them_too(visitor: Viewer) -> None:
    visitor.go("#/")
    expect(visitor.figure("Topics")).to_contain_text(re.compile("1.?000"))
    visitor.go("#/storage")
    expect(visitor.table("topics")).to_have_attribute("aria-rowcount", str(TOPICS + 1))


@pytest.fixture(scope="module")
def groups(full_node: str) -> None:
    rest = RestCaller(full_node)
    topic = topic_name(0)
    rest.post(f"topics/{topic}/records", {"records": [{"value": number} for number in range(7)]})
    for number in range(GROUPS):
        place = "earliest" if number == BEHIND else "latest"
        rest.post(f"groups/{group_name(number)}/reset", {"to": place, "topics": [topic], "dry_run": False})


def group_name(number: int) -> str:
    return f"group-{number:04}"


@pytest.mark.usefixtures("groups")
def test_the_lag_of_groups_is_asked_for_when_they_come_on_screen(visitor: Viewer) -> None:
    asked: set[str] = set()
    visitor.page.on("request", lambda request: "/groups/" in request.url and asked.add(request.url))
    visitor.go("#/groups")
    grid = visitor.table("consumer groups")
    expect(grid).to_have_attribute("aria-rowcount", str(GROUPS + 1))
    expect(lag_of(visitor, 0)).to_have_text("0")
    expect(note(visitor)).to_be_visible(timeout=ALL_ASKED_MS)
    assert len(asked) < MOST_ROWS
    grid.locator("tbody tr[data-index]").first.focus()
    visitor.press("End")
    expect(lag_of(visitor, GROUPS - 1)).to_have_text("0")
    visitor.page.get_by_role("searchbox").fill(group_name(BEHIND))
    expect(lag_of(visitor, BEHIND)).to_have_text("7")


@pytest.mark.usefixtures("groups")
def test_all_groups_are_sorted_by_lag_once_somebody_wanted_it_of_all(visitor: Viewer) -> None:
    visitor.go("#/groups")
    expect(note(visitor)).to_be_visible(timeout=ALL_ASKED_MS)
    visitor.button("Ask for all").click()
    expect(note(visitor)).to_be_hidden(timeout=ALL_ASKED_MS)
    head = visitor.table("consumer groups").get_by_role("columnheader", name="Lag")
    head.get_by_role("button").click()
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    first = visitor.table("consumer groups").locator("tbody tr[data-index]").first
    expect(first).to_contain_text(group_name(BEHIND))


def note(visitor: Viewer) -> Locator:
    return visitor.page.get_by_text("that nobody looked at are not known yet")


def lag_of(visitor: Viewer, number: int) -> Locator:
    return visitor.row("consumer groups", group_name(number)).get_by_role("gridcell").last
