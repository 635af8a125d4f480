"""Somebody without a mouse: makes a topic, stores a record, reads it, and deletes the topic again; looks at groups,
segments and pipelines, and follows a topic live."""

from __future__ import annotations

from playwright.sync_api import expect

from console_parts.shop import (
    BILLING,
    FAILED_PIPELINE,
    LETTER_ERROR,
    ORDERS,
    PARTITIONS,
    PIPELINE,
    Shop,
)
from console_parts.viewer import Viewer
from node.wait import eventually

TOPIC = "made-by-keys"


def tab_to(viewer: Viewer, name: str, *, back: bool = False) -> None:
    """Press Tab until what has the focus is called this, which may be yet to come to the page: every step must be
    visible to whoever looks."""
    eventually(lambda: _tab(viewer, back).startswith(name), f"Tab to lead to {name!r}", pause=0)
    assert viewer.script("document.activeElement.matches(':focus-visible')")


def _tab(viewer: Viewer, back: bool) -> str:
    viewer.press("Shift+Tab" if back else "Tab")
    said = viewer.script(
        "(() => { const at = document.activeElement;"
        " return at.ariaLabel || (at.labels && at.labels.length ? at.labels[0].innerText : at.innerText); })()"
    )
    return str(said).strip()


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
    expect(viewer.page.get_by_role("tab", name="Consumers")).to_be_focused()
    viewer.press("ArrowRight")
    expect(viewer.table("Configuration")).to_be_visible()
    expect(viewer.page.get_by_role("tab", name="Configuration")).to_be_focused()


def test_a_group_is_opened_and_its_reset_previewed(viewer: Viewer, store: Shop) -> None:
    before = store.rest.get(f"groups/{BILLING}")["partitions"]
    viewer.go("#/")
    expect(viewer.heading("Overview")).to_be_visible()
    viewer.chord("g", "#/groups")
    expect(viewer.row("consumer groups", BILLING)).to_be_visible()
    viewer.press("/")
    viewer.page.keyboard.type(BILLING)
    viewer.press("ArrowDown", "Enter")
    expect(viewer.page.get_by_role("heading", level=1, name=BILLING)).to_be_visible()
    expect(viewer.button("Preview")).to_be_enabled()
    tab_to(viewer, "Move to")
    viewer.press("ArrowDown")
    expect(viewer.page.get_by_label("Move to")).to_have_value("latest")
    tab_to(viewer, "Preview")
    viewer.press("Enter")
    expect(viewer.table("what would change").locator("tbody tr")).to_have_count(PARTITIONS)
    tab_to(viewer, "Reset")
    viewer.press("Enter")
    expect(viewer.dialog.get_by_role("textbox")).to_be_focused()
    viewer.press("Escape")
    expect(viewer.dialog).to_have_count(0)
    after = store.rest.get(f"groups/{BILLING}")["partitions"]
    assert [each["committed_offset"] for each in after] == [each["committed_offset"] for each in before]


def test_a_segment_is_opened_to_its_blocks_and_records(viewer: Viewer) -> None:
    viewer.go("#/")
    expect(viewer.heading("Overview")).to_be_visible()
    viewer.chord("s", "#/storage")
    expect(viewer.row("topics", ORDERS)).to_be_visible()
    viewer.press("/")
    viewer.page.keyboard.type(ORDERS)
    viewer.press("ArrowDown", "Enter")
    expect(viewer.heading(f"{ORDERS}/0")).to_be_visible()
    expect(viewer.table("segments").locator("tbody tr").first).to_be_visible()
    viewer.press("ArrowDown", "End", "Enter")
    expect(viewer.table("blocks").locator("tbody tr").first).to_be_visible()
    expect(viewer.heading("Segment from offset 0")).to_be_visible()
    tab_to(viewer, "Its records", back=True)
    viewer.press("Enter")
    expect(viewer.table("Messages").locator("tbody tr").first).to_contain_text('"order": 0,')


def test_the_row_of_a_pipeline_is_opened_and_so_is_a_dead_letter(viewer: Viewer) -> None:
    viewer.go("#/")
    expect(viewer.heading("Overview")).to_be_visible()
    viewer.chord("p", "#/pipelines")
    expect(viewer.row("pipelines", FAILED_PIPELINE)).to_be_visible()
    for name in (FAILED_PIPELINE, PIPELINE):
        viewer.press("/", "Control+a")
        viewer.page.keyboard.type(name)
        viewer.press("ArrowDown", "Enter")
        expect(viewer.heading(name, exact=True)).to_be_visible()
        assert f"name={name}" in viewer.page.url
    expect(viewer.row("queries", "revenue_per_minute")).to_be_visible()
    newest = viewer.page.get_by_role("region", name="Dead letters").get_by_role("group").first
    expect(newest).to_contain_text(LETTER_ERROR)
    tab_to(viewer, LETTER_ERROR)
    viewer.press("Enter")
    expect(newest.get_by_role("heading", name="Failed record")).to_be_visible()


def test_the_live_tail_is_started_and_paused(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("followed-by-keys")
    viewer.go(f"#/topics/{topic}")
    tab_to(viewer, "Messages")
    viewer.press("Enter")
    state = viewer.page.get_by_role("region", name="Messages").get_by_role("status").first
    expect(state).to_contain_text("to the end")
    tab_to(viewer, "Show")
    viewer.press("L")
    expect(state).to_have_text("live")
    store.produce(topic, [{"value": "while it is followed"}])
    messages = viewer.table("Messages").locator("tbody tr")
    expect(messages).to_contain_text("while it is followed")

    tab_to(viewer, "Pause")
    viewer.press("Enter")
    expect(state).to_have_text("paused")
    expect(viewer.button("Go on")).to_be_focused()
    store.produce(topic, [{"value": "while it is paused"}])
    viewer.press("Enter")
    expect(messages).to_have_count(2)
    expect(messages.first).to_contain_text("while it is paused")
