"""Somebody without a mouse: makes a topic, stores a record, reads it, follows the topic, and deletes it again."""

from __future__ import annotations

from playwright.sync_api import expect

from console_parts.shop import Shop
from console_parts.viewer import Viewer

TOPIC = "made-by-keys"


def tab_to(viewer: Viewer, name: str) -> None:
    """Press Tab until what has the focus is called this: every step must be visible to whoever looks."""
    for _ in range(60):
        viewer.press("Tab")
        said = viewer.script(
            "(() => { const at = document.activeElement;"
            " return at.ariaLabel || (at.labels && at.labels.length ? at.labels[0].innerText : at.innerText); })()"
        )
        if str(said).strip().startswith(name):
            assert viewer.script("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"Tab never leads to {name!r}")


def test_a_topic_lives_and_ends_without_a_mouse(viewer: Viewer, store: Shop) -> None:
    viewer.go("#/topics")
    expect(viewer.heading("Topics", exact=True)).to_be_visible()
    tab_to(viewer, "Create topic")
    viewer.press("Enter")
    expect(viewer.dialog.get_by_label("Name", exact=True)).to_be_focused()
    viewer.page.keyboard.type(TOPIC)
    viewer.press("Enter")
    expect(viewer.page.get_by_role("heading", level=1, name=TOPIC)).to_be_visible()
    assert store.has_topic(TOPIC)

    tab_to(viewer, "Produce")
    viewer.press("Enter")
    expect(viewer.dialog.get_by_label("Value", exact=True)).to_be_focused()
    viewer.page.keyboard.type('"typed"')
    tab_to(viewer, "Produce")
    viewer.press("Enter")
    viewer.sees("Stored in partition")

    tab_to(viewer, "Messages")
    viewer.press("Enter")
    record = viewer.table("Messages").locator("tbody tr[data-index]")
    expect(record).to_contain_text("typed")
    viewer.press("/", "ArrowDown", "Enter")
    expect(viewer.dialog.get_by_role("region", name="Value")).to_contain_text("typed")
    viewer.press("Escape")
    expect(viewer.dialog).to_have_count(0)

    viewer.go(f"#/topics/{TOPIC}")
    tab_to(viewer, "Delete")
    viewer.press("Enter")
    viewer.page.keyboard.type(TOPIC)
    viewer.press("Enter")
    expect(viewer.heading("Topics", exact=True)).to_be_visible()
    assert not store.has_topic(TOPIC)


def test_a_dialog_gives_the_focus_back_to_what_opened_it(viewer: Viewer) -> None:
    viewer.go("#/topics")
    tab_to(viewer, "Create topic")
    viewer.press("Enter")
    expect(viewer.dialog).to_be_visible()
    viewer.press("Escape")
    expect(viewer.button("Create topic")).to_be_focused()


def test_tabs_are_changed_with_the_arrows(viewer: Viewer) -> None:
    viewer.go("#/topics/orders")
    tab_to(viewer, "Partitions")
    viewer.press("ArrowRight")
    expect(viewer.table("Configuration")).to_be_visible()
    expect(viewer.page.get_by_role("tab", name="Configuration")).to_be_focused()
