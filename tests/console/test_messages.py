"""Messages: browsed, filtered, followed, opened, copied as commands that work, and produced by hand."""

from __future__ import annotations

import json
import subprocess

import pytest
from playwright.sync_api import Locator, expect

from console_parts.shop import ORDER_COUNT, ORDERS, PARTITIONS, Shop, order
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
        form.get_by_label(name.replace("_", " "), exact=True).fill(text)
    form.get_by_role("button").click()


def follow(viewer: Viewer) -> None:
    show(viewer, "Live tail")
    expect(viewer.page.get_by_role("status").filter(has_text="live").first).to_be_visible()


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


def test_a_time_is_where_reading_begins(orders: Viewer) -> None:
    wanted = order(ORDER_COUNT - 1)["timestamp_ms"]
    local = orders.script(
        f"(() => {{ const at = new Date({wanted}); const pad = (number) => String(number).padStart(2, '0');"
        " return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}"
        "T${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`; })()"
    )
    show(orders, "From a time", Partition=str((ORDER_COUNT - 1) % PARTITIONS), Time=local)
    expect(messages(orders).first).to_contain_text(f'"order": {ORDER_COUNT - 1},')


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
    orders.button(f"Copy {tool}", within=orders.dialog, exact=True).click()
    expect(orders.dialog.get_by_text("copied")).to_be_visible()
    command = orders.script("navigator.clipboard.readText()")
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=HUNG_SECONDS)
    assert done.returncode == 0, done.stderr
    assert f'"order": {5 * PARTITIONS + 3},' in done.stdout


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


def test_a_live_tail_with_a_filter_shows_only_what_matches(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("followed-by-key")
    viewer.go(f"#/topics/{topic}/messages")
    show(viewer, "Live tail", Key_is="wanted")
    expect(viewer.page.get_by_role("status").filter(has_text="live").first).to_be_visible()
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


def test_what_is_not_json_is_not_sent_as_json(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("mistyped")
    viewer.go(f"#/topics/{topic}/messages")
    viewer.button("Produce").click()
    viewer.dialog.get_by_label("Value", exact=True).fill('{"open": ')
    viewer.button("Produce", within=viewer.dialog).click()
    expect(viewer.alert).to_contain_text("not JSON")
    assert store.rest.get(f"topics/{topic}/partitions")["partitions"][0]["high_watermark"] == 0
