"""Topics: found, looked at, created, changed and deleted."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from console_parts.shop import AUDIT, BILLING, HOSTILE, ORDERS, PARTITIONS, Shop
from console_parts.small import LONGEST_NAME, assert_dialog_fits, phone
from console_parts.viewer import NARROW, WIDE, Viewer, viewing
from node.wait import eventually


def save_config(viewer: Viewer, name: str, value: str | None) -> None:
    """None: back to the node's default."""
    viewer.row("Configuration", name).get_by_role("button", name="Edit").click()
    if value is None:
        viewer.dialog.get_by_label("Back to the node's default").check()
    else:
        viewer.dialog.get_by_label(name).fill(value)
    viewer.button("Save", within=viewer.dialog).click()


def test_the_search_leaves_only_the_topics_that_it_finds(viewer: Viewer) -> None:
    viewer.go("#/topics")
    expect(viewer.row("Topics", HOSTILE)).to_be_visible()
    viewer.page.get_by_role("searchbox", name="Search Topics").fill("ORDER")
    expect(viewer.row("Topics", ORDERS)).to_be_visible()
    expect(viewer.row("Topics", HOSTILE)).to_have_count(0)
    viewer.page.get_by_role("searchbox").fill("no such topic")
    viewer.sees("Nothing matches.")


def test_a_column_sorts_the_list_both_ways(viewer: Viewer, store: Shop) -> None:
    widest = max(store.rest.get("topics")["topics"], key=lambda topic: topic["partition_count"])
    viewer.go("#/topics")
    first = viewer.table("Topics").locator("tbody tr").first
    head = viewer.table("Topics").get_by_role("columnheader", name="Partitions")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(first).to_contain_text(widest["name"])


def test_the_list_says_what_goes_on_in_each_topic(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("with-activity", 2)
    viewer.go("#/topics")
    row = viewer.row("Topics", topic).get_by_role("gridcell")
    expect(row.nth(2)).to_have_text("0")
    store.produce(topic, [{"value": number} for number in range(30)])
    expect(row.nth(2)).to_have_text("30")
    expect(row.nth(6)).to_have_text(re.compile(r"^[0-9.]+ m?s ago$|^[0-9]+ min.* ago$"))
    orders = viewer.row("Topics", ORDERS).get_by_role("gridcell")
    known = next(each for each in store.rest.get("topic-activity")["topics"] if each["name"] == ORDERS)
    expect(orders.nth(3)).to_have_text(re.compile("[1-9].* [KM]iB"))
    expect(orders.nth(7)).to_have_text(str(known["groups"]))
    assert known["groups"] >= 2


@pytest.mark.parametrize(
    ("title", "column"),
    [
        ("Records", "records"),
        ("Size", "stored_bytes"),
        ("Last write", "last_write_ms"),
        ("Groups with commits", "groups"),
    ],
)
def test_what_goes_on_sorts_the_topics_also_by_keyboard(viewer: Viewer, store: Shop, title: str, column: str) -> None:
    viewer.go("#/topics")
    expect(viewer.row("Topics", ORDERS).get_by_role("gridcell").nth(2)).not_to_have_text("\u2013")
    head = viewer.table("Topics").get_by_role("columnheader", name=re.compile(f"^{title}"))
    head.get_by_role("button").focus()
    viewer.press("Enter", "Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    most = max(store.rest.get("topic-activity")["topics"], key=lambda topic: topic[column] or -1)
    value = viewer.table("Topics").locator("tbody tr[data-index]").first.get_by_role("link")
    if column != "last_write_ms":
        expect(value).to_have_text(most["name"])


def test_a_topic_shows_who_leads_its_partitions_and_how_far_they_are(viewer: Viewer, store: Shop) -> None:
    viewer.go(f"#/topics/{ORDERS}")
    known = store.rest.get(f"topics/{ORDERS}/partitions")["partitions"]
    rows = viewer.table("Partitions").locator("tbody tr")
    expect(rows).to_have_count(PARTITIONS)
    for number, partition in enumerate(known):
        expect(rows.nth(number)).to_contain_text(partition["leader"])
        segments = store.rest.get(f"topics/{ORDERS}/partitions/{number}/segments")["segments"]
        expect(rows.nth(number).get_by_role("link")).to_have_text(str(len(segments)))
    rows.nth(1).get_by_role("link").click()
    expect(viewer.heading(f"{ORDERS}/1")).to_be_visible()


def test_what_is_stored_of_partitions_comes_with_them_and_sorts_them(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("stored-unevenly", 3)
    store.produce(topic, [{"value": "x", "partition": 1}])
    stored = eventually(
        lambda: [each for each in store.rest.get(f"topics/{topic}/partitions")["partitions"] if each["segment_count"]],
        "a segment",
        pause=0.1,
    )
    asked: list[str] = []
    viewer.page.on("request", lambda request: asked.append(request.url))
    viewer.go(f"#/topics/{topic}")
    rows = viewer.table("Partitions").locator("tbody tr")
    expect(rows.nth(1)).to_contain_text(f"{stored[0]['stored_bytes']} B")
    for name in ("Segments", "Size"):
        head = viewer.table("Partitions").get_by_role("columnheader", name=re.compile(f"^{name}"))
        head.get_by_role("button").click()
        expect(rows.last.get_by_role("gridcell").first).to_have_text("1")
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", "descending")
        expect(rows.first.get_by_role("gridcell").first).to_have_text("1")
    assert [url for url in asked if "/segments" in url] == []


def test_a_topic_is_created_as_the_form_says(viewer: Viewer, store: Shop) -> None:
    viewer.go("#/topics")
    viewer.button("Create topic").click()
    viewer.dialog.get_by_label("Name", exact=True).fill("made-by-hand")
    viewer.dialog.get_by_label("Partitions").fill("3")
    viewer.dialog.get_by_label("Kept for").select_option("1 day")
    viewer.dialog.get_by_label("Cleanup").select_option("compact,delete")
    viewer.dialog.get_by_label("Other configuration").fill("segment.bytes=1048576")
    viewer.button("Create", within=viewer.dialog).click()

    expect(viewer.page.get_by_role("heading", level=1, name="made-by-hand")).to_be_visible()
    made = store.rest.get("topics/made-by-hand")
    assert (made["partition_count"], made["retention_ms"]) == (3, 86_400_000)
    assert made["cleanup_policy"] == "compact,delete"
    assert made["config"]["segment.bytes"] == "1048576"


def test_a_topic_that_cannot_be_created_keeps_the_form_and_says_why(viewer: Viewer) -> None:
    viewer.expects_refusal(409)
    viewer.go("#/topics")
    viewer.button("Create topic").click()
    viewer.dialog.get_by_label("Name", exact=True).fill(ORDERS)
    viewer.button("Create", within=viewer.dialog).click()
    expect(viewer.alert).to_contain_text(ORDERS)
    expect(viewer.dialog.get_by_label("Name", exact=True)).to_have_value(ORDERS)
    viewer.button("Cancel", within=viewer.dialog).click()
    expect(viewer.dialog).to_have_count(0)


def test_a_topic_is_given_more_partitions(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("to-grow")
    before = store.rest.get(f"topics/{topic}")["partition_count"]
    viewer.go(f"#/topics/{topic}")
    viewer.button("Add partitions").click()
    viewer.dialog.get_by_label("Partitions in all").fill(str(before + 2))
    viewer.button("Add", within=viewer.dialog).click()

    expect(viewer.dialog).to_have_count(0)
    expect(viewer.table("Partitions").get_by_role("row")).to_have_count(before + 2 + 1)
    assert store.rest.get(f"topics/{topic}")["partition_count"] == before + 2


def test_a_topic_that_may_not_grow_says_why(viewer: Viewer, store: Shop) -> None:
    viewer.expects_refusal(409)
    topic = store.create_topic("not-to-grow")
    store.rest.patch(f"topics/{topic}", {"config": {"streamhouse.partitions.fixed": "true"}})
    viewer.go(f"#/topics/{topic}")
    viewer.button("Add partitions").click()
    viewer.dialog.get_by_label("Partitions in all").fill("9")
    viewer.button("Add", within=viewer.dialog).click()
    expect(viewer.alert).to_contain_text("streamhouse.partitions.fixed")


def test_a_config_is_changed_and_goes_back_to_the_default(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("to-configure")
    viewer.go(f"#/topics/{topic}")
    viewer.page.get_by_role("tab", name="Configuration").click()
    row = viewer.row("Configuration", "segment.bytes")
    expect(row).to_contain_text("node")
    save_config(viewer, "segment.bytes", "1048576")
    expect(row).to_contain_text("topic")
    assert store.rest.get(f"topics/{topic}")["config"] == {"segment.bytes": "1048576"}

    save_config(viewer, "segment.bytes", None)
    expect(row).to_contain_text("node")
    assert store.rest.get(f"topics/{topic}")["config"] == {}


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("retention.ms", "-1", "3600000"),
        ("retention.ms", "7200000", "3600000"),
        ("retention.ms", "7200000", None),
        ("retention.bytes", "2000000", "1000000"),
        ("cleanup.policy", "delete", "compact"),
        ("cleanup.policy", "compact", None),
    ],
)
def test_what_may_delete_records_is_asked_about(
    viewer: Viewer, store: Shop, name: str, before: str, after: str | None
) -> None:
    topic = store.create_topic(f"to-keep-less.{name}.{before}.{after}", **{name: before})
    viewer.go(f"#/topics/{topic}")
    viewer.page.get_by_role("tab", name="Configuration").click()
    question = viewer.page.get_by_role("dialog", name=f"Change {name} of {topic}?")
    save_config(viewer, name, after)
    expect(question).to_contain_text("deleted, and cannot be brought back")
    viewer.button("Cancel", within=question).click()
    expect(viewer.page.locator("dialog")).to_have_count(0)
    assert store.rest.get(f"topics/{topic}")["config"] == {name: before}

    save_config(viewer, name, after)
    viewer.button("Change", within=question).click()
    viewer.sees(f"{name} of {topic} was changed.")
    assert store.rest.get(f"topics/{topic}")["config"] == ({} if after is None else {name: after})


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("retention.ms", "3600000", "-1"),
        ("retention.bytes", "1000000", "2000000"),
        ("cleanup.policy", "compact", "compact"),
    ],
)
def test_what_keeps_as_much_or_more_is_saved_at_once(
    viewer: Viewer, store: Shop, name: str, before: str, after: str
) -> None:
    topic = store.create_topic(f"to-keep-more.{name}", **{name: before})
    viewer.go(f"#/topics/{topic}")
    viewer.page.get_by_role("tab", name="Configuration").click()
    save_config(viewer, name, after)
    viewer.sees(f"{name} of {topic} was changed.")
    assert store.rest.get(f"topics/{topic}")["config"] == {name: after}


def test_the_consumers_of_a_topic_are_there_with_their_lag_in_records_and_in_time(viewer: Viewer, store: Shop) -> None:
    viewer.go(f"#/topics/{ORDERS}")
    viewer.page.get_by_role("tab", name="Consumers").click()
    row = viewer.row("Consumers", BILLING).get_by_role("gridcell")
    expect(row.nth(2)).to_have_text(re.compile("^[1-9][0-9,]*$"))
    expect(row.nth(3)).to_have_text(re.compile("^[0-9]+ d( [0-9]+ h)?$"))
    expect(viewer.row("Consumers", AUDIT)).to_be_visible()
    row.nth(2).click()
    partitions = viewer.table(f"Partitions read by {BILLING}").locator("tbody tr[data-index]")
    expect(partitions).to_have_count(PARTITIONS)
    known = next(each for each in store.rest.get(f"topics/{ORDERS}/consumers")["groups"] if each["group_id"] == BILLING)
    expect(partitions.first).to_contain_text(str(known["partitions"][0]["committed_offset"]))
    viewer.assert_fits()


def test_a_config_says_what_it_means_and_whether_it_does_anything(viewer: Viewer) -> None:
    viewer.go(f"#/topics/{ORDERS}")
    viewer.page.get_by_role("tab", name="Configuration").click()
    expect(viewer.row("Configuration", "retention.ms")).to_contain_text("604800000")
    expect(viewer.row("Configuration", "retention.ms")).not_to_contain_text("no effect")
    idle = viewer.row("Configuration", "min.insync.replicas")
    expect(idle).to_contain_text("no effect")
    idle.get_by_role("button", name="Edit").click()
    expect(viewer.dialog).to_contain_text("It has no effect here: a partition has one leader and no followers.")
    expect(viewer.dialog).to_contain_text("If it is not set: 1")


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_config_that_does_nothing_is_marked_and_what_each_means_is_there_to_read(
    browser: Browser, store: Shop, width: int
) -> None:
    topic = store.create_topic(f"kept-for-ever-{width}", retention_ms="-1")
    with viewing(browser, store.http, width=width) as viewer:
        viewer.go(f"#/topics/{topic}?tab=Configuration")
        for name in ("follower.replication.throttled.replicas", "min.insync.replicas"):
            row = viewer.row("Configuration", name)
            tag = row.get_by_text("no effect", exact=True)
            expect(tag).to_be_visible()
            assert tag.evaluate(_IS_WITHIN_ITS_CELL)
            means = row.get_by_text(re.compile("for Kafka's tools; has no effect, since a partition has one leader"))
            expect(means.locator("visible=true")).to_have_count(1)
            assert means.locator("visible=true").evaluate(_IS_WITHIN_ITS_CELL)
        for name, said in (
            ("retention.ms", "-1 forever"),
            ("local.retention.ms", "-2"),
            ("delete.retention.ms", "1 d"),
        ):
            expect(viewer.row("Configuration", name)).to_contain_text(said, use_inner_text=True)
        expect(viewer.row("Configuration", "local.retention.ms")).not_to_contain_text("forever")
        viewer.assert_fits()


_IS_WITHIN_ITS_CELL = """(shown) => {
    const [cell, box] = [shown.closest('td'), shown.getBoundingClientRect()];
    const room = cell.getBoundingClientRect();
    const isCut = cell.scrollWidth > cell.clientWidth + 1 || cell.scrollHeight > cell.clientHeight + 1;
    return !isCut && box.left >= room.left && box.right <= room.right && box.bottom <= room.bottom;
}"""


def test_rows_of_different_heights_are_gone_through_by_keyboard(viewer: Viewer) -> None:
    viewer.go(f"#/topics/{ORDERS}?tab=Configuration")
    rows = viewer.table("Configuration").locator("tbody tr[data-index]")
    rows.first.focus()
    viewer.press("End")
    expect(rows.last).to_be_focused()
    expect(rows.last).to_be_in_viewport(ratio=0.99)
    viewer.press("Home", "ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    expect(rows.nth(1)).to_be_in_viewport(ratio=0.99)
    viewer.press("Enter")
    expect(viewer.dialog).to_contain_text("Change compression.gzip.level")


def test_the_address_keeps_which_part_of_a_topic_is_looked_at(viewer: Viewer) -> None:
    def expect_chosen(name: str) -> None:
        expect(viewer.page.get_by_role("tab", selected=True)).to_have_text(name)
        expect(viewer.page.get_by_role("tabpanel").locator("visible=true")).to_have_attribute("aria-label", name)

    viewer.go(f"#/topics/{ORDERS}")
    expect_chosen("Partitions")
    for name in ("Consumers", "Configuration"):
        viewer.page.get_by_role("tab", name=name).click()
        expect_chosen(name)
        viewer.page.reload()
        expect_chosen(name)
    viewer.page.go_back()
    expect_chosen("Consumers")
    viewer.page.go_back()
    expect_chosen("Partitions")
    viewer.page.go_forward()
    expect_chosen("Consumers")


def test_a_config_that_makes_no_sense_is_refused_in_the_form(viewer: Viewer, store: Shop) -> None:
    viewer.expects_refusal(400)
    topic = store.create_topic("to-misconfigure")
    viewer.go(f"#/topics/{topic}")
    viewer.page.get_by_role("tab", name="Configuration").click()
    viewer.row("Configuration", "retention.ms").get_by_role("button", name="Edit").click()
    viewer.dialog.get_by_label("retention.ms").fill("soon")
    viewer.button("Save", within=viewer.dialog).click()
    expect(viewer.alert).to_contain_text("retention.ms")
    assert store.rest.get(f"topics/{topic}")["config"] == {}


def test_a_topic_is_deleted_only_when_its_name_was_typed(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("to-delete")
    viewer.go(f"#/topics/{topic}")
    viewer.button("Delete").click()
    act = viewer.button("Delete topic", within=viewer.dialog)
    expect(act).to_be_disabled()
    viewer.dialog.get_by_role("textbox").fill("to-delet")
    expect(act).to_be_disabled()
    viewer.button("Cancel", within=viewer.dialog).click()
    assert store.has_topic(topic)

    viewer.button("Delete").click()
    viewer.dialog.get_by_role("textbox").fill(topic)
    act.click()
    expect(viewer.page.get_by_role("heading", level=1, name="Topics")).to_be_visible()
    assert not store.has_topic(topic)


def test_the_longest_name_fits_a_small_window(browser: Browser, store: Shop) -> None:
    topic = store.create_topic(LONGEST_NAME)
    store.produce(topic, [{"value": "x"}])
    with phone(browser, store.http) as viewer:
        for place in ("#/topics", f"#/topics/{topic}", f"#/topics/{topic}/messages", f"#/storage/{topic}/0"):
            viewer.go(place)
            expect(viewer.page.get_by_text(topic).first).to_be_visible()
            expect(viewer.page.locator("main")).not_to_have_attribute("aria-busy", "true")
            viewer.assert_fits()
        viewer.go(f"#/topics/{topic}")
        for name in ("Produce", "Delete"):
            viewer.button(name).click()
            assert_dialog_fits(viewer)
            viewer.press("Escape")
        viewer.page.get_by_role("tab", name="Configuration").click()
        save_config(viewer, "retention.ms", "1")
        assert_dialog_fits(viewer)
        viewer.press("Escape")
        expect(viewer.dialog).to_have_count(0)
        viewer.go(f"#/topics/{topic}/messages")
        viewer.table("Messages").locator("tbody tr[data-index]").click()
        viewer.dialog.get_by_text("Copy as a command").click()
        expect(viewer.button("Copy kcat", within=viewer.dialog)).to_be_visible()
        assert_dialog_fits(viewer)
    store.rest.delete(f"topics/{topic}")
