"""Messages: browsed, filtered, followed, opened, copied as commands that work, and produced by hand."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from playwright.sync_api import Locator, expect

from console_parts.local_time import local_time
from console_parts.shop import ORDERS, PARTITIONS, Shop, order
from console_parts.viewer import Viewer
from node.wait import HUNG_SECONDS


@pytest.fixture
def orders(viewer: Viewer) -> Viewer:
    """Somebody who looks at the newest orders."""
    viewer.go(f"#/topics/{ORDERS}/messages")
    expect(messages(viewer).first).to_be_visible()
    return viewer


def messages(viewer: Viewer) -> Locator:
    return viewer.table("Messages").locator("tbody tr[data-index]")


def show(viewer: Viewer, how: str, **fields: str) -> None:
    form = viewer.page.get_by_role("form", name="Which messages")
    form.get_by_label("Show").select_option(how)
    for name, text in fields.items():
        form.get_by_label(re.compile(rf"^{name.replace('_', ' ')}( \(UTC.*\))?$")).fill(text)
    form.get_by_role("button").click()


def follow(viewer: Viewer, **fields: str) -> None:
    show(viewer, "Live tail", **fields)
    expect_state(viewer, "live")


def expect_state(viewer: Viewer, text: str) -> None:
    expect(viewer.page.get_by_role("status").filter(has_text=text).first).to_be_visible()


def run(command: str) -> str:
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=HUNG_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def copied(viewer: Viewer, title: str) -> str:
    """What the button puts on the clipboard."""
    viewer.button(f"Copy {title}", within=viewer.dialog, exact=True).click()
    expect(viewer.dialog.get_by_text("copied")).to_be_visible()
    return str(viewer.script("navigator.clipboard.readText()"))


def test_the_oldest_come_first_when_asked_for(orders: Viewer) -> None:
    show(orders, "Oldest first", Partition="2")
    expect(messages(orders).first).to_contain_text('"order": 2,')


def test_an_offset_of_a_partition_is_where_reading_begins(orders: Viewer) -> None:
    show(orders, "From an offset", Partition="1", Offset="10")
    expect(messages(orders).first).to_contain_text(f'"order": {10 * PARTITIONS + 1},')
    assert "offset=10" in orders.page.url


def test_an_offset_without_a_partition_is_asked_about(orders: Viewer) -> None:
    show(orders, "From an offset", Offset="10")
    expect(orders.alert).to_contain_text("say which")


def test_only_messages_from_a_time_to_another_are_shown(orders: Viewer) -> None:
    first, end = (local_time(orders, order(number)["timestamp_ms"]) for number in (100, 103))
    show(orders, "Oldest first", From=first, To=end)
    expect(messages(orders)).to_have_count(3)
    expect(messages(orders).first).to_contain_text('"order": 100,')
    expect(messages(orders).last).to_contain_text('"order": 102,')
    orders.page.reload()
    expect(messages(orders)).to_have_count(3)
    show(orders, "Newest first", From=end, To=first)
    expect(orders.alert).to_contain_text("must be before")


def test_a_part_of_a_message_leaves_only_those_that_have_it(orders: Viewer) -> None:
    show(orders, "Oldest first", Contains='"order": 42,')
    expect(messages(orders)).to_have_count(1)
    show(orders, "Oldest first", Contains="nowhere to be found")
    viewer_sees_no_messages(orders)


def viewer_sees_no_messages(viewer: Viewer) -> None:
    expect(viewer.page.get_by_text("No messages.")).to_be_visible()


def test_a_condition_leaves_only_messages_of_which_it_holds(orders: Viewer) -> None:
    show(orders, "Oldest first", Where='value.order >= 40 and value.order < 50 and key == "customer-6"')
    expect(messages(orders)).to_have_count(1)
    expect(messages(orders)).to_contain_text('"order": 42,')


def test_a_condition_that_is_none_is_refused_with_its_place(orders: Viewer) -> None:
    orders.expects_refusal(400)
    show(orders, "Oldest first", Where="value.order > and 3")
    expect(orders.alert).to_contain_text("character 15: wanted a field")
    expect(orders.alert).to_contain_text("as in: value.amount > 3")


def test_chosen_fields_are_columns_and_the_address_keeps_them(orders: Viewer) -> None:
    show(orders, "Oldest first", Columns="value.order, headers.source,value.nothing", Where="value.order == 42")
    grid = orders.table("Messages")
    for _ in range(2):
        expect(messages(orders)).to_have_count(1)
        expect(grid.get_by_role("columnheader")).to_have_text(
            ["Part.", "Offset", "Time", "Key", "value.order", "headers.source", "value.nothing"]
        )
        expect(messages(orders).get_by_role("gridcell").nth(4)).to_have_text("42")
        expect(messages(orders).get_by_role("gridcell").nth(5)).to_have_text("shop")
        orders.page.reload()
    show(orders, "Oldest first", Columns="")
    expect(grid.get_by_role("columnheader").last).to_have_text("Value")


def test_what_is_found_is_downloaded(orders: Viewer) -> None:
    show(orders, "Oldest first", Where="value.order < 3", Columns="value.order")
    expect(messages(orders)).to_have_count(3)
    with orders.page.expect_download() as json_lines:
        orders.page.get_by_role("link", name="Download JSON lines").click()
    found = [json.loads(line) for line in json_lines.value.path().read_text().splitlines()]
    assert [record["value"]["order"] for record in found] == [0, 1, 2]
    with orders.page.expect_download() as table:
        orders.page.get_by_role("link", name="CSV").click()
    assert table.value.suggested_filename == f"{ORDERS}.csv"
    assert table.value.path().read_text().splitlines()[0] == "partition,offset,timestamp_ms,key,value.order"


def test_from_a_message_one_goes_to_those_beside_it(orders: Viewer) -> None:
    show(orders, "From an offset", Partition="1", Offset="0")
    messages(orders).first.click()
    previous, following = (orders.button(f"{name} message", within=orders.dialog) for name in ("Previous", "Next"))
    expect(previous).to_be_disabled()
    following.click()
    expect(orders.dialog.get_by_role("heading").first).to_have_text(f"{ORDERS} / 1 @ 1")
    expect(orders.dialog.get_by_role("region", name="Value")).to_contain_text('"order": 5,')
    expect(following).to_be_focused()
    previous.click()
    expect(orders.dialog.get_by_role("region", name="Value")).to_contain_text('"order": 1,')
    expect(following).to_be_focused()


def test_a_key_leaves_only_its_records(orders: Viewer) -> None:
    show(orders, "Oldest first", Key_is="customer-7")
    expect(messages(orders).first).to_contain_text('"order": 7,')
    expect(messages(orders).filter(has_not_text="customer-7")).to_have_count(0)


def test_a_field_of_the_json_leaves_only_records_that_have_it_so(orders: Viewer) -> None:
    show(orders, "Oldest first", JSON_field="order", equals="42")
    expect(messages(orders)).to_have_count(1)
    expect(messages(orders)).to_contain_text('"order": 42,')


def test_the_address_leads_somebody_else_to_the_same_messages(orders: Viewer) -> None:
    show(orders, "Oldest first", JSON_field="order", equals="42")
    expect(messages(orders)).to_have_count(1)
    orders.page.reload()
    expect(messages(orders)).to_have_count(1)
    expect(messages(orders)).to_contain_text('"order": 42,')


def test_a_record_is_shown_as_json_as_text_and_in_hex(orders: Viewer) -> None:
    show(orders, "From an offset", Partition="3", Offset="0")
    messages(orders).first.click()
    value = orders.dialog.get_by_role("region", name="Value")
    expect(value.locator("pre")).to_contain_text('{\n  "order": 3,')
    orders.button("Text", within=value).click()
    expect(value.locator("pre")).to_have_text(json.dumps(order(3)["value"]))
    orders.button("Hex", within=value).click()
    expect(value.locator("pre")).to_contain_text("7b 22 6f 72 64 65 72 22")
    expect(orders.dialog.get_by_role("region", name="Key")).to_contain_text("customer-3")
    expect(orders.dialog.get_by_role("region", name="Headers")).to_contain_text("shop")
    orders.press("Escape")
    expect(orders.dialog).to_have_count(0)


@pytest.mark.parametrize("tool", ["curl", "kcat"])
def test_a_record_copied_as_a_command_is_got_by_that_command(orders: Viewer, tool: str) -> None:
    show(orders, "From an offset", Partition="3", Offset="5")
    messages(orders).first.click()
    orders.dialog.get_by_text("Copy as a command").click()
    assert f'"order": {5 * PARTITIONS + 3},' in run(copied(orders, tool))


def test_a_record_is_produced_again_by_its_command(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("to-produce-again")
    record = {"key": "it's", "value": {"exact": 1}, "headers": [{"name": "trace", "value": "$HOME"}]}
    store.produce(topic, [record])
    viewer.go(f"#/topics/{topic}/messages")
    messages(viewer).first.click()
    viewer.dialog.get_by_text("Copy as a command").click()
    run(copied(viewer, "curl to produce it again"))
    first, again = store.rest.get(f"topics/{topic}/partitions/0/records?offset=0")["records"]
    assert [again[part] for part in ("key", "value", "headers")] == [
        first[part] for part in ("key", "value", "headers")
    ]


@pytest.mark.parametrize("mode", ["Oldest first", "From an offset"])
def test_pages_lead_to_the_end_and_back(viewer: Viewer, store: Shop, mode: str) -> None:
    topic = store.create_topic(f"with-{mode.replace(' ', '-').lower()}-pages")
    store.produce(topic, [{"value": f"record {number}"} for number in range(450)])
    viewer.go(f"#/topics/{topic}/messages")
    expect(messages(viewer).first).to_contain_text("record 449")
    show(viewer, mode, Partition="0")
    previous, following = (viewer.button(name, exact=True) for name in ("Previous", "Next"))
    grid = viewer.table("Messages")
    for page, shown in enumerate((200, 200, 50), 1):
        expect_state(viewer, f"Page {page}: {shown} found in ")
        expect(grid).to_have_attribute("aria-rowcount", str(shown + 1))
        expect(messages(viewer).first).to_contain_text(f"record {(page - 1) * 200}")
        if page < 3:
            following.click()
    expect_state(viewer, "looked at, to the end")
    expect(following).to_be_disabled()
    messages(viewer).first.focus()
    viewer.press("End")
    expect(grid.locator("tbody tr:focus")).to_contain_text("record 449")
    previous.click()
    expect(messages(viewer).first).to_contain_text("record 200")
    previous.click()
    expect(messages(viewer).first).to_contain_text("record 0")
    expect(previous).to_be_disabled()


def test_the_live_tail_shows_what_arrives_until_it_is_paused(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("followed")
    store.produce(topic, [{"value": "before"}])
    viewer.go(f"#/topics/{topic}/messages")
    expect(messages(viewer)).to_have_count(1)
    follow(viewer)
    expect(messages(viewer)).to_have_count(0)
    store.produce(topic, [{"value": "first"}, {"value": "second"}])
    expect(messages(viewer)).to_have_count(2)
    expect(messages(viewer).first).to_contain_text("second")

    viewer.button("Pause").click()
    store.produce(topic, [{"value": "third"}])
    viewer.button("Go on").click()
    expect(messages(viewer)).to_have_count(3)
    expect(messages(viewer).first).to_contain_text("third")


def test_a_tail_that_is_paused_before_its_first_message_misses_none(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("followed-late", 2)
    store.produce(topic, [{"value": "before", "partition": 1}])
    viewer.go(f"#/topics/{topic}/messages")
    follow(viewer)
    viewer.button("Pause").click()
    expect_state(viewer, "paused")
    store.produce(topic, [{"value": "meanwhile", "partition": 1}])
    viewer.button("Go on").click()
    expect(messages(viewer)).to_have_count(1)
    expect(messages(viewer)).to_contain_text("meanwhile")


def test_a_topic_too_wide_to_be_followed_is_followed_by_a_partition(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("wide", 65)
    viewer.go(f"#/topics/{topic}/messages")
    show(viewer, "Live tail")
    expect(viewer.alert).to_contain_text("say which one of the 65")
    expect(viewer.button("Pause")).to_have_count(0)
    follow(viewer, Partition="64")
    expect(viewer.alert).to_have_count(0)
    store.produce(topic, [{"value": "elsewhere", "partition": 3}, {"value": "here", "partition": 64}])
    expect(messages(viewer)).to_contain_text("here")
    expect(messages(viewer)).to_have_count(1)


def test_a_topic_of_as_many_partitions_as_can_be_is_followed_whole(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("just-not-too-wide", 64)
    viewer.go(f"#/topics/{topic}/messages")
    follow(viewer)
    store.produce(topic, [{"value": "at the end", "partition": 63}])
    expect(messages(viewer)).to_contain_text("at the end")


def test_a_tail_that_is_refused_says_why_and_can_be_tried_again(viewer: Viewer, store: Shop) -> None:
    viewer.expects_refusal(404)
    topic = store.create_topic("narrow")
    viewer.go(f"#/topics/{topic}/messages?mode=live&partition=7")
    expect(viewer.alert).to_contain_text("there is no partition 7")
    expect_state(viewer, "ended")
    expect(viewer.page.get_by_text("Waiting for new messages.")).to_have_count(0)
    expect(viewer.button("Pause")).to_have_count(0)
    viewer.button("Go on").click()
    expect(viewer.alert).to_contain_text("there is no partition 7")
    follow(viewer, Partition="0")
    expect(viewer.alert).to_have_count(0)
    expect(viewer.button("Pause")).to_be_visible()


def test_a_tail_of_a_topic_that_is_deleted_says_so_and_has_ended(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("followed-to-its-end")
    viewer.go(f"#/topics/{topic}/messages")
    follow(viewer)
    viewer.sees("Waiting for new messages.")
    store.rest.delete(f"topics/{topic}")
    expect(viewer.alert).to_contain_text(topic)
    expect_state(viewer, "ended")
    expect(viewer.button("Go on")).to_be_visible()
    expect(viewer.page.get_by_text("Waiting for new messages.")).to_have_count(0)


@pytest.mark.parametrize(("name", "text"), [("Key is", "wanted"), ("Contains", "wan"), ("Where", "value == 2")])
def test_a_live_tail_with_a_filter_shows_only_what_matches(viewer: Viewer, store: Shop, name: str, text: str) -> None:
    topic = store.create_topic(f"followed-by-{name.replace(' ', '-').lower()}")
    viewer.go(f"#/topics/{topic}/messages")
    follow(viewer, **{name: text})
    store.produce(topic, [{"key": "other", "value": 1}, {"key": "wanted", "value": 2}])
    expect(messages(viewer)).to_have_count(1)
    expect(messages(viewer)).to_contain_text("wanted")


def test_a_record_is_produced_by_hand_digit_by_digit(viewer: Viewer, store: Shop) -> None:
    """A number beyond what JavaScript can count to stays as it was typed."""
    topic = store.create_topic("typed", 2)
    viewer.go(f"#/topics/{topic}/messages")
    viewer.button("Produce").click()
    viewer.dialog.get_by_label("Key", exact=True).fill("my-key")
    viewer.dialog.get_by_label("Partition").fill("1")
    viewer.dialog.get_by_label("Value", exact=True).fill('{"exact": 12345678901234567890}')
    viewer.dialog.get_by_label("Headers").fill("trace: 42")
    viewer.button("Produce", within=viewer.dialog).click()
    expect(messages(viewer)).to_contain_text("12345678901234567890")
    [record] = store.rest.get(f"topics/{topic}/partitions/1/records?offset=0&value_format=text")["records"]
    assert (record["key"], record["value"].replace(" ", "")) == ("my-key", '{"exact":12345678901234567890}')
    assert record["headers"][0]["name"] == "trace"


def test_the_form_shows_the_command_that_produces_what_was_typed(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("typed-for-curl")
    viewer.go(f"#/topics/{topic}/messages")
    viewer.button("Produce").click()
    viewer.dialog.get_by_label("Key", exact=True).fill("it's")
    viewer.dialog.get_by_label("Value", exact=True).fill('{"open": ')
    viewer.button("Show as curl", within=viewer.dialog).click()
    expect(viewer.alert).to_contain_text("not JSON")
    viewer.dialog.get_by_label("Value", exact=True).fill('{"exact": 12345678901234567890}')
    viewer.button("Show as curl", within=viewer.dialog).click()
    command = copied(viewer, "curl")
    assert store.rest.get(f"topics/{topic}/partitions")["partitions"][0]["high_watermark"] == 0
    run(command)
    [record] = store.rest.get(f"topics/{topic}/partitions/0/records?offset=0&value_format=text")["records"]
    assert (record["key"], record["value"].replace(" ", "")) == ("it's", '{"exact":12345678901234567890}')


def test_what_is_not_json_is_not_sent_as_json(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("mistyped")
    viewer.go(f"#/topics/{topic}/messages")
    viewer.button("Produce").click()
    viewer.dialog.get_by_label("Value", exact=True).fill('{"open": ')
    viewer.button("Produce", within=viewer.dialog).click()
    expect(viewer.alert).to_contain_text("not JSON")
    assert store.rest.get(f"topics/{topic}/partitions")["partitions"][0]["high_watermark"] == 0
