"""Tables under hands: Tab goes past their rows, arrows among them, and what is held or read stays while others come."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Route, expect

from console_parts.shop import BILLING, HOSTILE, ORDERS, PARTITIONS, Shop
from console_parts.viewer import Viewer
from node.wait import eventually

LEASE_HEADS = 5

_GROWS_ABOVE = """async () => {
    const { table } = await import('/console/static/lib/table.js');
    const rows = (first, end) => Array.from({ length: end - first }, (_, index) => ({ id: first + index }));
    const columns = [{ name: 'id', title: 'Id', value: (row) => row.id }];
    const made = table({ columns, key: (row) => row.id, label: 'grown', rows: rows(100, 600) });
    document.getElementById('main').append(made.element);
    const scroller = made.element.querySelector('.rows');
    scroller.scrollTop = 200 * 38;
    made.update(rows(50, 600));
    return scroller.scrollTop / 38;
}"""


def leases(viewer: Viewer) -> Locator:
    return viewer.table("leases").locator("tbody tr[data-index]")


def focused(viewer: Viewer) -> str:
    """Which element has the keyboard: of which table, and in which of its rows."""
    return str(
        viewer.script(
            "(() => { const at = document.activeElement; const row = at.closest('tbody tr');"
            " return `${at.closest('table')?.ariaLabel} ${row ? row.dataset.index : 'head'} ${at.localName}`; })()"
        )
    )


def look_at_orders(viewer: Viewer) -> None:
    """The leases of the orders, searched for, with the keyboard in the search."""
    viewer.go("#/cluster")
    viewer.page.get_by_role("searchbox", name="Search leases").fill(f"{ORDERS}/")
    expect(leases(viewer)).to_have_count(PARTITIONS)


def test_tab_passes_a_table_in_a_few_presses_however_many_links_it_has(viewer: Viewer) -> None:
    look_at_orders(viewer)
    passed = []
    for _ in range(LEASE_HEADS + 3):
        viewer.press("Tab")
        passed.append(focused(viewer))
    assert passed == [*["leases head button"] * LEASE_HEADS, "leases 0 tr", "leases 0 a", "transfers head button"]


def test_the_arrows_reach_every_row_and_tab_its_link(viewer: Viewer) -> None:
    look_at_orders(viewer)
    viewer.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert focused(viewer) == "leases 2 tr"
    viewer.press("Tab")
    assert focused(viewer) == "leases 2 a"
    viewer.press("Shift+Tab", "Shift+Tab")
    assert focused(viewer) == "leases head button", "the row that one was in before is no place for Tab any more"
    viewer.press("Tab", "Tab", "Enter")
    expect(viewer.page.get_by_role("heading", level=1, name=ORDERS)).to_be_visible()


def test_enter_opens_a_row_or_follows_the_link_of_one_that_leads_nowhere_itself(viewer: Viewer) -> None:
    look_at_orders(viewer)
    viewer.press("ArrowDown", "Enter")
    expect(viewer.page.get_by_role("region", name="Chosen")).to_contain_text(f"Partition {ORDERS}/0")

    viewer.go(f"#/groups/{BILLING}")
    row = viewer.table("partitions").locator("tbody tr[data-index]").first
    expect(row).to_contain_text(ORDERS)
    row.focus()
    viewer.press("Enter")
    expect(viewer.page).to_have_url(re.compile(f"#/topics/{ORDERS}/messages"))


def test_a_list_that_comes_in_parts_is_shown_whole(viewer: Viewer, store: Shop) -> None:
    [first, *others] = store.rest.get("topics")["topics"]

    def part(route: Route) -> None:
        is_second = f"after={first['name']}" in route.request.url
        route.fulfill(
            json={"topics": others, "next": None} if is_second else {"topics": [first], "next": first["name"]}
        )

    viewer.page.route(re.compile(r"/api/v1/topics\?"), part)
    viewer.go("#/storage")
    expect(viewer.row("topics", first["name"])).to_be_visible()
    expect(viewer.row("topics", others[-1]["name"])).to_be_visible()


def test_keys_go_page_by_page_and_to_the_ends(viewer: Viewer) -> None:
    viewer.go("#/cluster")
    expect(leases(viewer).first).to_be_visible()
    last = int(viewer.table("leases").get_attribute("aria-rowcount") or "0") - 2
    viewer.page.get_by_role("searchbox", name="Search leases").press("ArrowDown")
    viewer.press("End")
    assert focused(viewer) == f"leases {last} tr"
    viewer.press("Home")
    assert focused(viewer) == "leases 0 tr"
    viewer.press("PageDown")
    assert focused(viewer) != "leases 0 tr"
    viewer.press("PageUp", "ArrowUp")
    assert focused(viewer) == "leases 0 tr"


def test_the_keyboard_stays_where_it_is_when_the_rows_are_made_anew(viewer: Viewer) -> None:
    look_at_orders(viewer)
    viewer.press("ArrowDown", "ArrowDown", "Tab")
    link = viewer.page.evaluate_handle("document.activeElement")
    eventually(lambda: not link.evaluate("(link) => link.isConnected"), "rows that were made anew", pause=0.1)
    assert focused(viewer) == "leases 1 a"


def test_a_head_sorts_up_then_down_then_not_at_all(viewer: Viewer) -> None:
    look_at_orders(viewer)
    partition = viewer.table("leases").get_by_role("columnheader", name="Partition")
    for direction, first in (("ascending", 0), ("descending", PARTITIONS - 1)):
        viewer.button("Partition", within=partition).click()
        expect(partition).to_have_attribute("aria-sort", direction)
        expect(leases(viewer).first).to_contain_text(f"{ORDERS}/{first}")
    viewer.button("Partition", within=partition).click()
    expect(partition).to_have_attribute("aria-sort", "none")


def test_escape_ends_a_search(viewer: Viewer) -> None:
    viewer.go("#/cluster")
    search = viewer.page.get_by_role("searchbox", name="Search leases")
    search.fill("no-such-partition")
    viewer.sees("Nothing matches.")
    expect(leases(viewer)).to_have_count(0)
    search.press("Escape")
    expect(search).to_have_value("")
    expect(search).to_be_focused()
    expect(leases(viewer).first).to_be_visible()


def test_a_click_in_a_row_makes_it_the_one_that_tab_leads_to(viewer: Viewer) -> None:
    look_at_orders(viewer)
    leases(viewer).nth(2).get_by_role("gridcell").nth(2).click()
    viewer.press("Tab")
    assert focused(viewer) == "leases 2 a"


def test_what_is_read_stays_on_screen_when_rows_come_above_it(viewer: Viewer) -> None:
    viewer.go("#/nowhere")
    expect(viewer.heading("No such page")).to_be_visible()
    assert viewer.page.evaluate(_GROWS_ABOVE) == 200 + 50


def test_a_button_in_a_row_does_what_it_says_and_no_more(viewer: Viewer) -> None:
    viewer.go(f"#/topics/{ORDERS}")
    viewer.page.get_by_role("tab", name="Configuration").click()
    viewer.row("Configuration", "retention.ms").get_by_role("button", name="Edit").click()
    expect(viewer.dialog.get_by_label("retention.ms")).to_be_focused()
    assert viewer.dialog.count() == 1


def test_a_row_that_is_pressed_is_still_there_when_it_is_let_go(viewer: Viewer, store: Shop) -> None:
    """Also one that had to be scrolled to: a search goes to the top."""
    topics = {each["name"]: each for each in store.rest.get("topics")["topics"]}
    above = [{**topics[ORDERS], "name": f"above-{number}"} for number in range(20)]
    listed = [*above, topics[ORDERS], topics[HOSTILE]]
    viewer.page.route(
        re.compile(r"/api/v1/topics\?"), lambda route: route.fulfill(json={"topics": listed, "next": None})
    )
    viewer.go("#/topics")
    rows = viewer.table("Topics").locator("tbody tr[data-index]")
    viewer.row("Topics", ORDERS).hover()
    scroller = viewer.page.locator(".rows").filter(has=viewer.table("Topics"))
    assert scroller.evaluate("(scroller) => scroller.scrollTop") > 0
    viewer.page.mouse.down()
    viewer.page.get_by_role("searchbox").fill(HOSTILE)
    expect(viewer.page.get_by_role("status").filter(has_text=f"1 of {len(listed)}")).to_be_visible()
    expect(rows).to_have_count(len(listed))
    viewer.page.mouse.up()
    expect(viewer.page.get_by_role("heading", level=1, name=ORDERS)).to_be_visible()


def test_a_row_that_is_pressed_with_another_button_is_not_waited_for(viewer: Viewer) -> None:
    viewer.go("#/topics")
    rows = viewer.table("Topics").locator("tbody tr[data-index]")
    viewer.row("Topics", ORDERS).hover()
    viewer.page.mouse.down(button="right")
    viewer.page.get_by_role("searchbox").fill(HOSTILE)
    expect(rows).to_have_count(1)
    viewer.page.mouse.up(button="right")
