"""A node that is slow, refuses, or is gone: the pages say only what they know, and that it may be old."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from console_parts.shop import Shop
from console_parts.viewer import NARROW, WIDE, Viewer, viewing
from node.process import Node
from node.wait import eventually
from rest_parts.caller import RestCaller

EMPTY_TEXTS = {
    "cluster": ["No agent has registered.", "There are no partitions yet.", "No partition was handed over yet."],
    "groups": ["No group has read anything yet."],
    "pipelines": ["No pipeline has run on this node's machine"],
    "storage": ["There are no topics yet.", "There is no agent, and so no write-ahead log."],
}
ASKED_FIRST = {"cluster": "ring", "groups": "groups", "pipelines": "pipelines", "storage": "wals"}

_TWO_LOOPS = """async () => {
    const { later } = await import('/console/static/lib/live.js');
    const leaving = new AbortController();
    const said = [];
    const live = document.getElementById('live');
    new MutationObserver(() => said.push(live.textContent)).observe(live, { childList: true });
    let goodTurns = 0;
    Object.assign(window, { said, leaving, goodTurns: () => goodTurns, isMended: false });
    later(5, leaving.signal, async () => { if (!window.isMended) throw new Error('the first is stuck'); });
    later(5, leaving.signal, async () => { goodTurns += 1; });
}"""

_LOOP_AND_CLOCK = """async () => {
    const { later } = await import('/console/static/lib/live.js');
    Object.assign(window, { looks: 0, ticks: 0, leaving: new AbortController() });
    later(5, window.leaving.signal, async () => { window.looks += 1; });
    setInterval(() => { window.ticks += 1; }, 5);
}"""
_HIDE = """(isHidden) => {
    Object.defineProperty(document, 'hidden', { value: isHidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.mark.parametrize("place", EMPTY_TEXTS)
def test_nothing_is_said_to_be_empty_before_the_node_has_answered(viewer: Viewer, place: str) -> None:
    answer = threading.Event()
    held: list[Route] = []
    viewer.page.route(f"**/api/v1/{ASKED_FIRST[place]}*", lambda route: hold(route, held, answer))
    viewer.go(f"#/{place}")
    expect(viewer.page.get_by_role("grid").first).to_be_visible()
    expect(viewer.page.locator("main")).to_have_attribute("aria-busy", "true")
    said = viewer.page.locator("main").inner_text()
    assert not [text for text in EMPTY_TEXTS[place] if text in said], said
    answer.set()
    for route in held:
        route.continue_()
    expect(viewer.page.locator("main")).to_have_attribute("aria-busy", "false")


def hold(route: Route, held: list[Route], answer: threading.Event) -> None:
    if answer.is_set():
        route.continue_()
    else:
        held.append(route)


@pytest.mark.parametrize("place", EMPTY_TEXTS)
def test_an_error_does_not_stand_beside_a_claim_that_there_is_nothing(viewer: Viewer, place: str) -> None:
    viewer.expects_refusal(500)
    asked = f"**/api/v1/{ASKED_FIRST[place]}*"
    problem = {"title": "Broken", "detail": "all is dust", "hint": "sweep it"}
    viewer.page.route(asked, lambda route: route.fulfill(status=500, json=problem))
    viewer.go(f"#/{place}")
    for text in problem.values():
        expect(viewer.alert).to_contain_text(text)
    expect(viewer.button("Try again")).to_be_in_viewport()
    said = viewer.page.locator("main").inner_text()
    assert not [text for text in EMPTY_TEXTS[place] if text in said], said

    viewer.page.unroute(asked)
    viewer.button("Try again").click()
    expect(viewer.page.get_by_role("grid").first.locator("tbody tr").first).to_be_visible()
    expect(viewer.page.get_by_text("all is dust")).to_have_count(0)


def test_what_is_truly_empty_is_said_to_be(viewer: Viewer) -> None:
    viewer.page.route("**/api/v1/groups*", lambda route: route.fulfill(json={"groups": [], "next": None}))
    viewer.go("#/groups")
    viewer.sees(EMPTY_TEXTS["groups"][0])


def test_a_node_that_is_gone_is_told_of_until_it_is_back(browser: Browser, tmp_path: Path) -> None:
    with Node(tmp_path / "data") as node, viewing(browser, node.http) as viewer:
        live = viewer.page.locator("#live")
        viewer.go("#/cluster")
        expect(viewer.row("agents", "live")).to_be_visible()
        expect(live).to_be_empty()
        viewer.expects_no_answer()
        node.kill9()
        expect(viewer.page.get_by_role("status").filter(has_text="not live: the node does not answer")).to_be_visible()
        expect(viewer.row("agents", "live")).to_be_visible()  # what was seen last stays
        for width in (NARROW, WIDE):
            viewer.page.set_viewport_size({"width": width, "height": 800})
            viewer.assert_fits()
        node.start()
        expect(live).to_be_empty()


def test_what_was_said_to_be_well_is_taken_back_while_it_is_old(browser: Browser, tmp_path: Path) -> None:
    with Node(tmp_path / "data") as node, viewing(browser, node.http) as viewer:
        shop = Shop(node=node, rest=RestCaller(node.http), state_dir=tmp_path)
        shop.produce(shop.create_topic("watched"), [{"value": 1}])
        shop.rest.delete(shop.read_with("reader", "watched", 1))
        leaderless = viewer.page.locator("dt", has_text="Without a leader").locator("+ dd")
        state = viewer.page.locator(".page-head .tag:visible")
        viewer.expects_no_answer()
        for place, claim, well in (
            ("#/topics/watched", leaderless, "0"),
            ("#/groups/reader", viewer.figure("Lag"), "Lag\n0\nnothing is waiting"),
            ("#/groups/reader", state, "Empty"),
        ):
            viewer.go(place)
            expect(claim).to_have_text(well, use_inner_text=True)
            node.kill9()
            expect(claim).to_have_text(re.compile("not known$"), use_inner_text=True)
            node.start()
            expect(claim).to_have_text(well, use_inner_text=True)


def test_a_page_that_was_opened_while_the_node_was_away_comes_with_it(browser: Browser, tmp_path: Path) -> None:
    with Node(tmp_path / "data") as node, viewing(browser, node.http) as viewer:
        viewer.go("#/groups")
        expect(viewer.heading("Consumer groups")).to_be_visible()
        viewer.expects_no_answer()
        # Of the one the script is there already, of the other not.
        for place, said, title in (
            ("#/cluster", "the node does not give the page's script", "Agents"),
            ("#/groups", "the node does not answer", "Consumer groups"),
        ):
            viewer.go("#/nowhere")
            node.kill9()
            viewer.go(place)
            expect(viewer.alert).to_contain_text(said)
            expect(viewer.button("Try again")).to_be_visible()
            node.start()
            expect(viewer.heading(title)).to_be_visible()
            expect(viewer.button("Try again")).to_have_count(0)


def test_the_trouble_of_a_page_that_was_left_is_not_told_on_the_next(browser: Browser, tmp_path: Path) -> None:
    with Node(tmp_path / "data") as node, viewing(browser, node.http) as viewer:
        viewer.go("#/")
        expect(viewer.figure("Agents")).to_contain_text("1 of 1")
        viewer.expects_no_answer()
        node.kill9()
        live = viewer.page.locator("#live")
        expect(live).to_contain_text("not live")
        viewer.go("#/nowhere")
        expect(viewer.heading("No such page")).to_be_visible()
        expect(live).to_be_empty()


def test_one_loop_that_gets_on_does_not_hide_that_another_is_stuck(viewer: Viewer) -> None:
    viewer.go("#/nowhere")
    expect(viewer.heading("No such page")).to_be_visible()
    viewer.page.evaluate(_TWO_LOOPS)
    live = viewer.page.locator("#live")
    expect(live).to_have_text("not live: the first is stuck")
    eventually(lambda: viewer.script("window.goodTurns() > 20"), "twenty turns that go well")
    assert viewer.script("window.said") == ["not live: the first is stuck"]
    viewer.script("window.isMended = true")
    expect(live).to_be_empty()
    viewer.script("window.isMended = false")
    expect(live).to_contain_text("stuck")
    viewer.script("window.leaving.abort()")
    expect(live).to_be_empty()


def test_a_page_that_nobody_sees_asks_nothing(viewer: Viewer) -> None:
    def wait_for(condition: str) -> None:
        eventually(lambda: viewer.script(condition), condition)

    viewer.go("#/nowhere")
    expect(viewer.heading("No such page")).to_be_visible()
    viewer.page.evaluate(_LOOP_AND_CLOCK)
    wait_for("window.looks > 3")
    viewer.page.evaluate(_HIDE, True)
    before = viewer.script("(window.ticks = 0, window.looks)")
    wait_for("window.ticks > 40")
    assert viewer.script("window.looks") <= before + 1, "one may have been on its way"
    viewer.page.evaluate(_HIDE, False)
    wait_for(f"window.looks > {before + 3}")
    viewer.script("window.leaving.abort()")
