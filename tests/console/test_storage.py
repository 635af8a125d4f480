"""Storage: the node's write-ahead log, a partition's segments on their axes, and a segment opened to its blocks."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from console_parts.shop import ORDERS, Shop
from console_parts.viewer import Viewer


def test_the_write_ahead_log_of_the_node_is_shown(viewer: Viewer, store: Shop) -> None:
    viewer.go("#/storage")
    wal = store.rest.get("wal")
    expect(viewer.heading(f"Write-ahead log of {wal['agent_id']}")).to_be_visible()
    expect(viewer.figure("On its disk")).to_contain_text("files")
    expect(viewer.table("WAL files").locator("tbody tr").first).to_be_visible()


def test_a_topic_leads_to_its_partitions_segments(viewer: Viewer, store: Shop) -> None:
    viewer.go("#/storage")
    viewer.row("topics", ORDERS).get_by_role("link").click()
    expect(viewer.heading(f"{ORDERS}/0")).to_be_visible()
    segments = store.rest.get(f"topics/{ORDERS}/partitions/0/segments")["segments"]
    expect(viewer.table("segments").locator("tbody tr")).to_have_count(len(segments))
    expect(viewer.page.get_by_role("img", name=f"{len(segments)} segments by time and offset")).to_be_visible()

    viewer.page.get_by_label("Partition").select_option("2")
    expect(viewer.heading(f"{ORDERS}/2")).to_be_visible()


def test_a_segment_opens_to_its_blocks_and_leads_to_its_records(viewer: Viewer, store: Shop) -> None:
    viewer.go(f"#/storage/{ORDERS}/1")
    [segment, *_] = store.rest.get(f"topics/{ORDERS}/partitions/1/segments")["segments"]
    viewer.table("segments").locator("tbody tr").last.click()
    opened = viewer.page.get_by_role("region", name="Opened segment")
    expect(opened).to_contain_text(segment["object_key"])
    blocks = store.rest.get(f"topics/{ORDERS}/partitions/1/segments/0")["blocks"]
    expect(viewer.table("blocks").locator("tbody tr")).to_have_count(len(blocks))
    assert "segment=0" in viewer.page.url

    opened.get_by_role("link", name="Its records").click()
    expect(viewer.table("Messages").locator("tbody tr").first).to_contain_text('"order": 1,')


def test_a_click_on_the_drawing_opens_the_segment_there(viewer: Viewer) -> None:
    viewer.go(f"#/storage/{ORDERS}/0")
    drawing = viewer.page.get_by_role("img", name=re.compile("segments by time and offset"))
    box = drawing.bounding_box()
    assert box is not None
    drawing.hover(position={"x": box["width"] / 2, "y": box["height"] * 0.5})
    viewer.sees("records, ")
    drawing.click(position={"x": box["width"] / 2, "y": box["height"] * 0.5})
    expect(viewer.page.get_by_role("region", name="Opened segment")).to_be_visible()
