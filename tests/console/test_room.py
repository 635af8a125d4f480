"""Tables have room for what they show; long names lose their middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from console_parts.shop import ORDERS, Shop
from console_parts.viewer import NARROW, WIDE, Viewer, viewing
from node.process import Node
from rest_parts.caller import RestCaller

AGENT = "streamhouse-agent-in-a-place-with-a-long-name-0.streamhouse.default.svc.cluster.local"
TOPIC = "a-topic-of-a-team-with-a-long-name-and-a-very-long-purpose-eu-west-1"
GROUP = "a-group-of-a-team-with-a-long-name-and-a-very-long-purpose-eu-west-1"
CLIENT = "a-client-of-a-service-with-a-long-name-and-a-very-long-purpose-7d9f8b-x2kqp"
TABLES = {
    "#/cluster": ("agents", "leases"),
    "#/storage": ("write-ahead logs", "WAL files"),
    "#/pipelines": ("pipelines",),
}
_CUT = """(table) => [...table.querySelectorAll('th, td')]
    .filter((cell) => cell.clientWidth > 0 && cell.scrollWidth > cell.clientWidth + 1)
    .map((cell) => `${cell.textContent}: ${cell.scrollWidth} in ${cell.clientWidth}`)"""


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_no_cell_and_no_head_of_a_column_is_cut_off(browser: Browser, store: Shop, width: int) -> None:
    with viewing(browser, store.http, width=width) as viewer:
        for place, labels in [*TABLES.items(), (f"#/storage/{ORDERS}/0", ("segments",))]:
            viewer.go(place)
            for label in labels:
                expect(viewer.table(label).locator("tbody tr").first).to_be_visible()
                assert viewer.table(label).evaluate(_CUT) == [], f"{place}: {label}"


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node, a topic, a group and a client with long names."""
    directory: Path = tmp_path_factory.mktemp("named")
    with Node(directory / "data", "--agent-id", AGENT) as node:
        shop = Shop(node=node, rest=RestCaller(node.http), state_dir=directory)
        shop.create_topic(TOPIC, 2)
        shop.produce(TOPIC, [{"value": "x", "partition": 0}])
        shop.read_with(GROUP, TOPIC, 1, CLIENT)
        yield node


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_long_name_is_cut_in_its_middle_and_is_there_as_a_whole(browser: Browser, named: Node, width: int) -> None:
    with viewing(browser, named.http, width=width) as viewer:
        for place, label, name in (
            ("#/cluster", "agents", AGENT),
            ("#/cluster", "leases", f"{TOPIC}/1"),
            ("#/topics", "Topics", TOPIC),
            (f"#/topics/{TOPIC}", "Partitions", AGENT),
            ("#/groups", "consumer groups", GROUP),
            (f"#/topics/{TOPIC}", "Consumers", GROUP),
            (f"#/groups/{GROUP}", "partitions", TOPIC),
            (f"#/groups/{GROUP}", "members", CLIENT),
        ):
            viewer.go(place)
            if label == "Consumers":
                viewer.page.get_by_role("tab", name=label).click()
            shown = viewer.row(label, name).first.locator(f'.middle[title="{name}"]')
            expect(shown).to_be_visible()
            assert ends_are_seen(viewer, label, name), f"{label} at {width}"
            expect(shown).to_have_text(name)
            viewer.assert_fits()


def ends_are_seen(viewer: Viewer, label: str, name: str) -> bool:
    """Where the name is cut, it is before its end: which is within its cell."""
    shown = viewer.row(label, name).first.locator(f'.middle[title="{name}"]')
    return bool(
        shown.evaluate(
            """(shown) => {
                const cell = shown.closest('td').getBoundingClientRect();
                const end = shown.lastElementChild;
                const box = end.getBoundingClientRect();
                const isWhole = end.scrollWidth <= end.clientWidth + 1;
                return isWhole && box.right <= cell.right + 1 && shown.title.endsWith(end.dataset.part);
            }"""
        )
    )


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_alerts_of_long_names_fit_and_stay_the_same_element_while_their_text_changes(
    browser: Browser, named: Node, width: int
) -> None:
    looks = 0

    def troubled(route: Route) -> None:
        nonlocal looks
        looks += 1
        answer = route.fetch().json()
        answer["alerts"] = [
            {
                "severity": "critical",
                "code": "partitions_waiting_for_agent",
                "text": f"1 partition can be led only by {AGENT}, for {looks} s: {TOPIC}/1.",
                "what_to_do": "Start that agent again.",
                "agents": [AGENT],
                "partitions": [{"topic": TOPIC, "partition": 1}],
                "pipelines": [],
                "commands": [f"streamhouse partition elect {TOPIC} 1 --unclean --metadata postgresql://…"],
            }
        ]
        route.fulfill(json=answer)

    with viewing(browser, named.http, width=width) as viewer:
        viewer.page.route("**/api/v1/overview", troubled)
        viewer.go("#/")
        alerts = viewer.page.get_by_role("region", name="Alerts")
        link = alerts.get_by_role("link", name=f"{TOPIC}/1").element_handle()
        expect(alerts).to_contain_text("for 3 s")
        assert link.evaluate("(link) => link.isConnected"), "what somebody is about to press was taken away"
        viewer.assert_fits()
        viewer.button("Copy command", within=alerts).click()
        copied = viewer.script("navigator.clipboard.readText()")
        assert copied == f"streamhouse partition elect {TOPIC} 1 --unclean --metadata postgresql://…"
        alerts.get_by_role("link", name=f"{TOPIC}/1").click()
        expect(viewer.page.get_by_role("region", name="Chosen")).to_contain_text(f"Partition {TOPIC}/1")
        viewer.assert_fits()
        viewer.page.unroute_all(behavior="wait")
