"""Consumer groups: who reads what and how far behind, moved only after a preview and a question, and deleted."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from playwright.sync_api import Browser, expect

from console_parts.local_time import local_time
from console_parts.shop import AUDIT, BILLING, ORDER_COUNT, ORDERS, PARTITIONS, Shop, order
from console_parts.small import LONGEST_NAME, assert_dialog_fits, phone
from console_parts.viewer import Viewer
from node.wait import HUNG_SECONDS
from streamhouse.wire.http.rest.groups import MAX_IDLE_MS


def committed(store: Shop, group: str) -> list[int]:
    partitions = store.rest.get(f"groups/{group}")["partitions"]
    return [each["committed_offset"] for each in sorted(partitions, key=lambda each: each["partition"])]


@pytest.fixture
def idle_group(store: Shop) -> str:
    """Has read all of a topic of its own, and has no members."""
    topic = store.create_topic("to-read-again", PARTITIONS) if not store.has_topic("to-read-again") else "to-read-again"
    store.produce(topic, [order(number) for number in range(20)])
    store.rest.delete(store.read_with("idle", topic, 20))
    return "idle"


def group_at_the_end(store: Shop, name: str) -> str:
    """Of a topic of its own with five orders in each partition."""
    store.create_topic(f"read-by-{name}", PARTITIONS)
    store.produce(f"read-by-{name}", [order(number) for number in range(5 * PARTITIONS)])
    store.rest.delete(store.read_with(name, f"read-by-{name}", 5 * PARTITIONS))
    return name


def test_the_list_tells_states_members_and_lag(viewer: Viewer, store: Shop) -> None:
    viewer.go("#/groups")
    lag = store.rest.get(f"groups/{BILLING}")["lag"]
    assert lag >= ORDER_COUNT - ORDER_COUNT // 3
    row = viewer.row("consumer groups", BILLING)
    expect(row).to_contain_text("Empty")
    expect(row).to_contain_text(ORDERS)
    expect(row.get_by_role("gridcell").last).to_have_text(re.compile("[1-9]"))
    expect(viewer.row("consumer groups", AUDIT)).to_contain_text("Stable")


def test_a_group_whose_name_no_address_can_say_is_listed_without_a_link(viewer: Viewer, store: Shop) -> None:
    reset = ["group", "reset", "team/billing", "--topic", ORDERS, "--to-latest", "--bootstrap", store.node.bootstrap]
    subprocess.run([sys.executable, "-m", "streamhouse", *reset], check=True, timeout=HUNG_SECONDS)
    viewer.go("#/groups")
    row = viewer.row("consumer groups", "team/billing")
    expect(row).to_contain_text("Empty")
    expect(row.get_by_role("link")).to_have_count(0)
    row.click()
    expect(viewer.heading("Consumer groups")).to_be_visible()


def test_a_group_shows_members_assignments_and_lag_by_partition(viewer: Viewer, store: Shop) -> None:
    viewer.go("#/groups")
    viewer.row("consumer groups", AUDIT).get_by_role("link").click()
    expect(viewer.page.get_by_role("heading", level=1, name=AUDIT)).to_be_visible()
    expect(viewer.table("members").locator("tbody tr")).to_contain_text(f"{ORDERS} 0\u20133")
    expect(viewer.table("partitions").locator("tbody tr")).to_have_count(PARTITIONS)
    expect(viewer.figure("Members")).to_contain_text("1")


def test_a_group_leads_to_how_far_behind_it_is_in_time(viewer: Viewer) -> None:
    viewer.go(f"#/groups/{BILLING}")
    viewer.page.locator("p").filter(has_text="How far behind in time").get_by_role("link", name=ORDERS).click()
    expect(viewer.page.get_by_role("tab", name="Consumers")).to_have_attribute("aria-selected", "true")
    expect(viewer.row("Consumers", BILLING)).to_be_visible()
    expect(viewer.table(f"Partitions read by {BILLING}").locator("tbody tr[data-index]")).to_have_count(PARTITIONS)


def test_the_lag_grows_on_screen_while_nobody_reads(viewer: Viewer, store: Shop) -> None:
    group = group_at_the_end(store, "left-behind")
    viewer.go(f"#/groups/{group}")
    expect(viewer.figure("Lag")).to_contain_text("0")
    store.produce(f"read-by-{group}", [order(number) for number in range(40)])
    expect(viewer.figure("Lag")).to_contain_text("40")
    expect(viewer.page.get_by_role("img", name=re.compile("Lag over time"))).to_be_visible()


def test_a_group_that_has_committed_nothing_of_what_waits_is_not_said_to_have_read_all(
    viewer: Viewer, store: Shop
) -> None:
    topic = store.create_topic("unread", 2)
    store.produce(topic, [{"value": number, "partition": 0} for number in range(3)])
    asked = {"topics": [topic], "reset": "earliest", "max_idle_ms": MAX_IDLE_MS}
    joined = store.rest.post("groups/fresh/members", asked, status=201)
    viewer.go("#/groups/fresh")
    expect(viewer.figure("Lag")).to_have_text(re.compile("\u2013not known at 1 partition: nothing committed$"))
    expect(viewer.table("partitions").locator("tbody tr")).to_have_count(2)
    viewer.go("#/groups")
    expect(viewer.row("consumer groups", "fresh").get_by_role("gridcell").nth(4)).to_have_text("1")
    expect(viewer.row("consumer groups", "fresh").get_by_role("gridcell").nth(5)).to_have_text("\u2013")
    store.rest.delete(f"groups/fresh/members/{joined['member_id']}")


def test_a_reset_changes_nothing_before_the_preview_was_confirmed(viewer: Viewer, store: Shop, idle_group: str) -> None:
    before = committed(store, idle_group)
    viewer.go(f"#/groups/{idle_group}")
    viewer.page.get_by_label("Move to").select_option("the oldest record")
    viewer.button("Preview").click()
    viewer.sees("records would be read again, 0 would be skipped")
    expect(viewer.table("what would change").locator("tbody tr")).to_have_count(PARTITIONS)
    assert committed(store, idle_group) == before

    viewer.button(f"Reset {PARTITIONS} partitions").click()
    act = viewer.button("Reset", within=viewer.dialog)
    expect(act).to_be_disabled()
    viewer.button("Cancel", within=viewer.dialog).click()
    assert committed(store, idle_group) == before

    viewer.button(f"Reset {PARTITIONS} partitions").click()
    viewer.dialog.get_by_role("textbox").fill(idle_group)
    act.click()
    viewer.sees(f"{idle_group} was reset")
    assert committed(store, idle_group) == [0] * PARTITIONS


@pytest.mark.parametrize(
    ("place", "field", "text", "expected"),
    [("an offset", "Offset", "2", 2), ("so many records on (or back)", "Records", "-1", None)],
)
def test_a_preview_shows_where_each_partition_would_be(
    viewer: Viewer, store: Shop, idle_group: str, place: str, field: str, text: str, expected: int | None
) -> None:
    before = committed(store, idle_group)
    viewer.go(f"#/groups/{idle_group}")
    viewer.page.get_by_label("Move to").select_option(place)
    viewer.page.get_by_label(field, exact=True).fill(text)
    viewer.button("Preview").click()
    cells = viewer.table("what would change").locator("tbody tr").first.get_by_role("gridcell")
    expect(cells.nth(3)).to_have_text(str(before[0] - 1 if expected is None else expected))
    assert committed(store, idle_group) == before


def test_a_group_is_moved_to_a_time_and_then_to_the_end(viewer: Viewer, store: Shop) -> None:
    group = group_at_the_end(store, "moved")
    viewer.go(f"#/groups/{group}")
    for place, offset, summary in (
        ("a time", 2, "12 records would be read again, 0 would be skipped"),
        ("the end", 5, "0 records would be read again, 12 would be skipped"),
    ):
        before = committed(store, group)
        viewer.page.get_by_label("Move to").select_option(place)
        if place == "a time":
            viewer.page.get_by_label("Time (UTC").fill(local_time(viewer, order(2 * PARTITIONS)["timestamp_ms"]))
        viewer.button("Preview").click()
        rows = viewer.table("what would change").locator("tbody tr")
        expect(rows).to_have_count(PARTITIONS)
        for number in range(PARTITIONS):
            expect(rows.nth(number).get_by_role("gridcell").nth(3)).to_have_text(str(offset))
        viewer.sees(summary)
        assert committed(store, group) == before
        viewer.button(f"Reset {PARTITIONS} partitions").click()
        viewer.dialog.get_by_role("textbox").fill(group)
        viewer.button("Reset", within=viewer.dialog).click()
        expect(rows).to_have_count(0)
        assert committed(store, group) == [offset] * PARTITIONS


def test_a_preview_goes_when_the_form_says_something_else(viewer: Viewer, store: Shop) -> None:
    viewer.go(f"#/groups/{group_at_the_end(store, 'unmoved')}")
    viewer.button("Preview").click()
    expect(viewer.table("what would change")).to_be_visible()
    viewer.page.get_by_label("Move to").select_option("the end")
    expect(viewer.table("what would change")).to_have_count(0)
    viewer.button("Preview").click()
    viewer.sees("Nothing would change.")
    expect(viewer.button("Reset 0 partitions")).to_be_disabled()


def test_a_group_with_members_is_not_moved_and_says_why(viewer: Viewer) -> None:
    viewer.go(f"#/groups/{AUDIT}")
    viewer.sees("Only a group without members can be moved")
    expect(viewer.button("Preview")).to_be_disabled()


def test_a_group_is_deleted_when_its_name_was_typed(viewer: Viewer, store: Shop) -> None:
    store.rest.delete(store.read_with("to-delete", ORDERS, 1))
    viewer.go("#/groups/to-delete")
    viewer.button("Delete").click()
    act = viewer.button("Delete", within=viewer.dialog)
    expect(act).to_be_disabled()
    viewer.dialog.get_by_role("textbox").fill("to-delete")
    act.click()
    viewer.sees("to-delete was deleted")
    expect(viewer.heading("Consumer groups")).to_be_visible()
    assert "to-delete" not in [group["group_id"] for group in store.rest.get("groups")["groups"]]


def test_one_topic_of_a_group_is_moved_and_the_others_stay(viewer: Viewer, store: Shop) -> None:
    group = group_at_the_end(store, "of-two-topics")
    other = store.create_topic("read-as-well", 1)
    store.produce(other, [{"value": "x"}])
    store.rest.delete(store.read_with(group, other, 1))
    viewer.go(f"#/groups/{group}")
    viewer.page.get_by_label("Topic", exact=True).select_option(other)
    viewer.button("Preview").click()
    expect(viewer.table("what would change").locator("tbody tr")).to_have_count(1)
    viewer.button("Reset 1 partitions").click()
    viewer.dialog.get_by_role("textbox").fill(group)
    viewer.button("Reset", within=viewer.dialog).click()
    viewer.sees(f"{group} was reset")
    offsets = store.rest.get(f"groups/{group}")["partitions"]
    assert {each["committed_offset"] for each in offsets if each["topic"] == other} == {0}
    assert {each["committed_offset"] for each in offsets if each["topic"] != other} == {5}


def test_the_longest_name_fits_a_small_window_with_its_dialogs(browser: Browser, store: Shop) -> None:
    group = LONGEST_NAME
    store.rest.post(f"groups/{group}/reset", {"to": "latest", "topics": [ORDERS], "dry_run": False})
    with phone(browser, store.http) as viewer:
        viewer.go("#/groups")
        expect(viewer.row("consumer groups", group)).to_be_visible()
        viewer.assert_fits()
        viewer.go(f"#/groups/{group}")
        viewer.button("Delete").click()
        assert_dialog_fits(viewer)
        viewer.button("Cancel", within=viewer.dialog).click()
        viewer.button("Preview").click()
        viewer.button(f"Reset {PARTITIONS} partitions").click()
        assert_dialog_fits(viewer)
        viewer.button("Cancel", within=viewer.dialog).click()
        viewer.assert_fits()
    store.rest.delete(f"groups/{group}")


_ASK_AGAIN = """async () => {
    const { Descriptions } = await import('/console/static/views/groups/descriptions.js');
    const heard = () => new Promise((resolve) => { descriptions.onNews = resolve; });
    const descriptions = new Descriptions(new AbortController().signal, () => {});
    const first = heard();
    descriptions.ask(['known']);
    const whileFirst = descriptions.isAsking;
    await first;
    descriptions.ask(['known']);
    const whileAgain = descriptions.isAsking;
    descriptions.ask(['new']);
    return [whileFirst, whileAgain, descriptions.isAsking];
}"""


def test_groups_of_which_nothing_is_known_can_be_asked_for_while_known_ones_are_asked_for_again(viewer: Viewer) -> None:
    """On a busy node that never ends."""
    answer = {"group_id": "known", "members": [], "partitions": [], "lag": 0}
    viewer.page.route("**/api/v1/groups/*", lambda route: route.fulfill(json=answer))
    viewer.go("#/")
    assert viewer.script(_ASK_AGAIN) == [True, False, True]
