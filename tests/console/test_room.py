"""Tables have room for what they show; long names lose their middle."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from console_parts.shop import AUDIT, BILLING, ORDERS, Shop
from console_parts.viewer import NARROW, WIDE, Viewer, viewing
from node.process import Node
from rest_parts.caller import RestCaller
from streamhouse.runtime.clock import SystemClock

AGENT = "streamhouse-agent-in-a-place-with-a-long-name-0.streamhouse.default.svc.cluster.local"
TOPIC = "a-topic-of-a-team-with-a-long-name-and-a-very-long-purpose-eu-west-1"
GROUP = "a-group-of-a-team-with-a-long-name-and-a-very-long-purpose-eu-west-1"
CLIENT = "a-client-of-a-service-with-a-long-name-and-a-very-long-purpose-7d9f8b-x2kqp"
TABLES = {
    "#/topics": ("Topics",),
    f"#/topics/{ORDERS}": ("Partitions",),
    f"#/topics/{ORDERS}?tab=Consumers": ("Consumers",),
    f"#/topics/{ORDERS}?tab=Consumers&group={BILLING}": (f"Partitions read by {BILLING}",),
    f"#/topics/{ORDERS}?tab=Configuration": ("Configuration",),
    f"#/topics/{ORDERS}/messages?columns=value.customer.id,value.items[1].sku": ("Messages",),
    "#/groups": ("consumer groups",),
    f"#/groups/{AUDIT}": ("partitions", "members"),
    "#/cluster": ("agents", "leases"),
    "#/storage": ("write-ahead logs", "WAL files"),
    f"#/storage/{ORDERS}/0?segment=0": ("segments", "blocks"),
    "#/pipelines": ("pipelines",),
}
FAR = 654_321
LATELY_MS = 3_590_000
"""Which takes more letters than most: 59 min 50 s."""
LARGE = {
    "records": FAR, "written_per_s": FAR, "read_per_s": FAR, "log_start_offset": FAR, "high_watermark": FAR,
    "committed_end": FAR, "segment_count": FAR, "lag": FAR, "committed_offset": FAR, "end_offset": FAR, "offset": FAR,
    "base_offset": FAR, "first_offset": FAR, "record_count": FAR, "position": FAR,
    "stored_bytes": FAR << 10, "size_bytes": FAR << 10, "raw_bytes": FAR << 12, "lag_ms": LATELY_MS,
}  # fmt: skip
# A head that sorts is a button, which cuts itself off.
_CUT = """(table) => [...table.querySelectorAll('th, th .sort, td')]
    .filter((cell) => cell.clientWidth > 0 && cell.scrollWidth > cell.clientWidth + 1)
    .map((cell) => `${cell.textContent}: ${cell.scrollWidth} in ${cell.clientWidth}`)"""
# As wide as it is where nothing narrows it.
_WANTED_WIDTH = """(input) => {
    const free = input.cloneNode();
    free.style.cssText = 'position: fixed; width: max-content; max-width: none; visibility: hidden';
    document.body.append(free);
    const { width } = free.getBoundingClientRect();
    free.remove();
    return width;
}"""


def enlarged(answer: Any, now_ms: int) -> Any:
    """The same of a cluster that has more of everything."""
    if isinstance(answer, list):
        return [enlarged(each, now_ms) for each in answer]
    if not isinstance(answer, dict):
        return answer
    larger = {name: enlarged(value, now_ms) for name, value in answer.items()}
    for name, more in LARGE.items():
        if isinstance(larger.get(name), int | float):
            larger[name] += more
    if "last_write_ms" in larger:
        larger["last_write_ms"] = now_ms - LATELY_MS
    return larger


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_no_cell_and_no_head_of_a_column_is_cut_off(browser: Browser, store: Shop, width: int) -> None:
    def grown(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=enlarged(answer.json(), SystemClock().now_ms()))

    with viewing(browser, store.http, width=width, timezone="Asia/Kolkata") as viewer:
        viewer.page.route("**/api/v1/**", grown)
        found = {}
        for place, labels in TABLES.items():
            viewer.go(place)
            for label in labels:
                expect(viewer.table(label).locator("tbody tr[data-index]").first).to_be_visible()
                if label == "Topics":
                    records = viewer.row(label, ORDERS).locator("td").nth(2)
                    expect(records).to_have_text(re.compile("^[0-9]{3},[0-9]{3}$"))
                found[f"{place}: {label}"] = viewer.table(label).evaluate(_CUT)
        viewer.page.unroute_all(behavior="wait")
    assert not any(found.values()), found


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_time_to_choose_is_seen_as_a_whole_and_says_of_which_zone_it_is(
    browser: Browser, store: Shop, width: int
) -> None:
    with viewing(browser, store.http, width=width, timezone="America/New_York") as viewer:
        # In summer there; and now as it may be.
        viewer.go(f"#/topics/{ORDERS}/messages?from=1782900000000")
        chosen = viewer.page.get_by_label("From (UTC-4)", exact=True)
        expect(chosen).to_have_value("2026-07-01T06:00")
        for moment in (chosen, viewer.page.get_by_label(re.compile(r"^To \(UTC-[45]\)$"))):
            assert moment.bounding_box()["width"] >= moment.evaluate(_WANTED_WIDTH)
        chosen.fill("2026-01-01T06:00:00")
        expect(viewer.page.get_by_label("From (UTC-5)", exact=True)).to_be_visible()

        viewer.go(f"#/groups/{BILLING}")
        viewer.page.get_by_label("Move to").select_option("a time")
        to_reset = viewer.page.get_by_label(re.compile(r"^Time \(UTC-[45]\)$"))
        assert to_reset.bounding_box()["width"] >= to_reset.evaluate(_WANTED_WIDTH)
        viewer.assert_fits()


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
            (f"#/groups/{GROUP}", "members", TOPIC),
        ):
            viewer.go(place)
            if label == "Consumers":
                viewer.page.get_by_role("tab", name=label).click()
            shown = viewer.row(label, name).first.locator(f'.middle[title="{name}"]')
            expect(shown).to_be_visible()
            assert ends_are_seen(viewer, label, name), f"{label} at {width}"
            expect(shown).to_have_text(name)
            viewer.assert_fits()


def test_topics_of_a_group_that_differ_at_their_ends_are_told_apart(browser: Browser, named: Node) -> None:
    with viewing(browser, named.http, width=WIDE) as viewer:
        viewer.go("#/groups")
        shown = viewer.row("consumer groups", GROUP).locator(f'td:nth-child(4) .middle[title="{TOPIC}"]')
        expect(shown).to_be_visible()
        assert ends_are_seen(viewer, "consumer groups", TOPIC)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_name_that_lost_its_middle_has_no_gap_there(browser: Browser, named: Node, width: int) -> None:
    with viewing(browser, named.http, width=width) as viewer:
        viewer.go("#/cluster")
        expect(viewer.row("leases", f"{TOPIC}/1")).to_be_visible()
        gaps = viewer.script(_GAPS)
        assert len(gaps) > 2, "none is cut"
        assert max(abs(gap) for gap in gaps) < 1, gaps


_GAPS = """[...document.querySelectorAll('.middle')].filter((name) => name.children[1].dataset.seen.endsWith('…'))
    .map(({ children: [, begin, end] }) => {
        const pen = document.createElement('canvas').getContext('2d');
        pen.font = getComputedStyle(begin).font;
        const cut = begin.getBoundingClientRect().left + pen.measureText(begin.dataset.seen).width;
        return end.getBoundingClientRect().left - cut;
    })"""


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_name_for_which_there_is_room_is_not_cut(browser: Browser, store: Shop, width: int) -> None:
    with viewing(browser, store.http, width=width) as viewer:
        viewer.go("#/cluster")
        name = viewer.page.get_by_role("group", name="Agents on the ring").locator(".middle > [data-seen]").first
        expect(name).to_be_visible()
        assert name.evaluate("({ dataset }) => dataset.seen === dataset.part")


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
