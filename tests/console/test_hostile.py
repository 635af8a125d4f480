"""Names, keys, values, headers and errors that would act if they were parsed: all of them are shown, and none acts."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from console_parts import hostile
from console_parts.shop import FAILED_PIPELINE, HOSTILE, PIPELINE, Shop
from console_parts.viewer import Viewer, viewing

LAST_DATE_MS = 8_640_000_000_000_000
"""Of JavaScript: a millisecond more, or an hour to the east, is no date."""


def assert_unharmed(viewer: Viewer) -> None:
    assert viewer.script("window.attacked") is None
    assert viewer.script("({}).polluted") is None
    made = "document.querySelectorAll('main img, dialog img, main script, dialog script, [onerror], [onload]').length"
    assert viewer.script(made) == 0


def test_messages_show_hostile_keys_and_values_as_they_are(viewer: Viewer) -> None:
    viewer.go(f"#/topics/{HOSTILE}/messages")
    rows = viewer.table("Messages").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text=hostile.KEY)).to_have_count(1)
    expect(rows.filter(has_text="0x000102")).to_have_count(1)
    assert_unharmed(viewer)


def test_an_opened_record_shows_hostile_content_in_every_way(viewer: Viewer) -> None:
    viewer.go(f"#/topics/{HOSTILE}/messages")
    viewer.table("Messages").locator("tbody tr").filter(has_text=hostile.KEY).click()
    expect(viewer.dialog.get_by_role("region", name="Key")).to_contain_text(hostile.KEY)
    expect(viewer.dialog.get_by_role("region", name="Headers")).to_contain_text(hostile.HEADER_NAME)
    expect(viewer.dialog.get_by_role("region", name="Headers")).to_contain_text(hostile.HEADER_VALUE)
    value = viewer.dialog.get_by_role("region", name="Value")
    for way, part in (("JSON", "__proto__"), ("Text", "</script>"), ("Hex", "22 3e 3c 69 6d")):
        viewer.button(way, within=value).click()
        expect(value.locator("pre")).to_contain_text(part)
    assert_unharmed(viewer)


def test_chosen_fields_and_their_names_are_shown_as_they_are(viewer: Viewer) -> None:
    name = f'value["{hostile.ACTS}<img src=x onerror={hostile.ACTS}>"]'
    viewer.go(f"#/topics/{HOSTILE}/messages?columns=value.note,{quote(name)}")
    rows = viewer.table("Messages").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text=hostile.MARKUP)).to_have_count(1)
    expect(viewer.table("Messages").get_by_role("columnheader").last).to_have_text(name)
    assert_unharmed(viewer)


def test_a_condition_in_an_address_made_by_somebody_else_is_only_shown(viewer: Viewer) -> None:
    viewer.expects_refusal(400)
    viewer.go(f"#/topics/{HOSTILE}/messages?where={quote(hostile.MARKUP[1:])}")
    expect(viewer.alert).to_contain_text("means nothing here")
    assert_unharmed(viewer)


def test_bytes_that_are_no_text_are_shown_in_hex(viewer: Viewer) -> None:
    viewer.go(f"#/topics/{HOSTILE}/messages")
    viewer.table("Messages").locator("tbody tr").filter(has_text="0x000102").last.click()
    value = viewer.dialog.get_by_role("region", name="Value")
    expect(value.locator("pre")).to_contain_text("f0 f1 f2 f3")
    expect(viewer.button("JSON", within=value)).to_have_count(0)


def test_a_hostile_group_is_listed_opened_and_asked_about(viewer: Viewer) -> None:
    viewer.go("#/groups")
    viewer.row("consumer groups", hostile.GROUP).get_by_role("link").click()
    expect(viewer.page.get_by_role("heading", level=1)).to_have_text(hostile.GROUP)
    expect(viewer.table("members")).to_contain_text(hostile.CLIENT)
    viewer.button("Delete").click()
    expect(viewer.dialog.get_by_role("heading")).to_have_text(f"Delete {hostile.GROUP}?")
    assert_unharmed(viewer)


def test_a_name_that_would_end_an_address_is_a_part_of_it(viewer: Viewer, store: Shop) -> None:
    name = "50%41?of#all&x=+y"
    store.rest.delete(store.read_with(name, HOSTILE, 1))
    viewer.go("#/groups")
    viewer.row("consumer groups", name).get_by_role("link").click()
    expect(viewer.page.get_by_role("heading", level=1)).to_have_text(name)
    expect(viewer.table("partitions").locator("tbody tr")).to_contain_text(HOSTILE)


def test_the_last_of_all_times_hides_no_messages_east_of_greenwich(browser: Browser, store: Shop) -> None:
    topic = store.create_topic("far-future")
    store.produce(topic, [{"value": "at the end of time", "timestamp_ms": LAST_DATE_MS}, {"value": "now"}])
    with viewing(browser, store.http, timezone="Asia/Tokyo") as viewer:
        viewer.go(f"#/topics/{topic}/messages")
        rows = viewer.table("Messages").locator("tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.filter(has_text="at the end of time").get_by_role("gridcell").nth(2)).to_have_text("\u2013")


@pytest.mark.parametrize("name", [PIPELINE, FAILED_PIPELINE])
def test_pipelines_show_hostile_errors_and_dead_letters(viewer: Viewer, name: str) -> None:
    viewer.go(f"#/pipelines?name={name}")
    if name == PIPELINE:
        viewer.page.get_by_role("region", name="Dead letters").get_by_role("group").first.locator("summary").click()
    viewer.sees(hostile.MARKUP)
    assert_unharmed(viewer)


@pytest.mark.parametrize("place", ["topics/{}", "topics/{}/messages", "groups/{}", "storage/{}/0"])
def test_an_address_made_by_somebody_else_is_only_shown(viewer: Viewer, place: str) -> None:
    viewer.expects_refusal(404)
    viewer.expects_refusal(400)
    viewer.go("#/" + place.format("%3Cimg%20src%3Dx%20onerror%3D'window.attacked%20%3D%20true'%3E-missing"))
    expect(viewer.alert).to_contain_text("<img src=x")
    assert_unharmed(viewer)
