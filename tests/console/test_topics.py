"""Topics: found, looked at, created, changed and deleted."""

from __future__ import annotations

from playwright.sync_api import expect

from console_parts.shop import HOSTILE, ORDERS, PARTITIONS, Shop
from console_parts.viewer import Viewer


def test_the_search_leaves_only_the_topics_that_it_finds(viewer: Viewer) -> None:
    viewer.go("#/topics")
    expect(viewer.row("Topics", HOSTILE)).to_be_visible()
    viewer.page.get_by_role("searchbox", name="Search Topics").fill("ORDER")
    expect(viewer.row("Topics", ORDERS)).to_be_visible()
    expect(viewer.row("Topics", HOSTILE)).to_have_count(0)
    viewer.page.get_by_role("searchbox").fill("no such topic")
    viewer.sees("Nothing matches.")


def test_a_column_sorts_the_list_both_ways(viewer: Viewer) -> None:
    viewer.go("#/topics")
    first = viewer.table("Topics").locator("tbody tr").first
    head = viewer.table("Topics").get_by_role("columnheader", name="Partitions")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(first).to_contain_text(ORDERS)  # none has more partitions


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


def test_a_config_is_changed_and_goes_back_to_the_default(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("to-configure")
    viewer.go(f"#/topics/{topic}")
    viewer.page.get_by_role("tab", name="Configuration").click()
    row = viewer.row("Configuration", "retention.ms")
    expect(row).to_contain_text("node")
    row.get_by_role("button", name="Edit").click()
    viewer.dialog.get_by_label("retention.ms").fill("3600000")
    viewer.button("Save", within=viewer.dialog).click()
    expect(row).to_contain_text("topic")
    assert store.rest.get(f"topics/{topic}")["retention_ms"] == 3_600_000

    row.get_by_role("button", name="Edit").click()
    viewer.dialog.get_by_label("Back to the node's default").check()
    viewer.button("Save", within=viewer.dialog).click()
    expect(row).to_contain_text("node")
    assert store.rest.get(f"topics/{topic}")["config"] == {}


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
