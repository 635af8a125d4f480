"""Storage: the node's write-ahead log, a partition's segments on their axes, and a segment opened to its blocks."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, Locator, expect

from console_parts.requests import Held, ask_for_pages_of
from console_parts.shop import ORDERS, Shop
from console_parts.viewer import NARROW, WIDE, Viewer, viewing
from node.wait import eventually

BLOCKS = 5
"""Of each of the segments of a topic that is there to be opened."""
BLOCK_BYTES = 700_000
"""Of the value that fills one: a batch holds no two of them, and a block one batch."""
_LONG = "3600000"


@pytest.fixture(scope="module")
def blocks(store: Shop) -> str:
    """A topic with two segments of several blocks."""
    # Only its age ends a segment, and that when all of it is durable: by size it could end before its last record.
    topic = store.create_topic("with-blocks", 1, segment_bytes=str(4 * BLOCKS * BLOCK_BYTES), segment_ms=_LONG)
    for segments in (1, 2):
        store.produce(topic, [{"value": "x" * BLOCK_BYTES} for _ in range(BLOCKS)])
        store.rest.patch(f"topics/{topic}", {"config": {"segment.ms": "1"}})
        eventually(lambda: segment_count(store, topic) == segments, "a segment", pause=0.1)  # noqa: B023
        store.rest.patch(f"topics/{topic}", {"config": {"segment.ms": _LONG}})
    return topic


def segment_count(store: Shop, topic: str) -> int:
    return int(store.rest.get(f"topics/{topic}/partitions")["partitions"][0]["segment_count"])


def opened(viewer: Viewer) -> Locator:
    return viewer.page.get_by_role("region", name="Opened segment")


def block_rows(viewer: Viewer) -> Locator:
    return viewer.table("blocks").locator("tbody tr")


def test_the_write_ahead_log_of_the_node_is_shown(viewer: Viewer, store: Shop) -> None:
    viewer.go("#/storage")
    wal = store.rest.get("wal")
    expect(viewer.heading(f"Write-ahead log of {wal['agent_id']}")).to_be_visible()
    expect(viewer.figure("On its disk")).to_contain_text("file")
    expect(viewer.table("WAL files").locator("tbody tr").first).to_be_visible()


def test_that_an_agent_answers_is_taken_back_while_that_is_old(viewer: Viewer, store: Shop) -> None:
    viewer.expects_no_answer()
    viewer.go("#/storage")
    state = viewer.row("write-ahead logs", store.rest.get("wal")["agent_id"]).get_by_role("gridcell").last
    expect(state).to_have_text("answers", use_inner_text=True)
    viewer.page.route("**/api/v1/wals", lambda route: route.abort("connectionrefused"))
    expect(state).to_have_text("not known", use_inner_text=True)
    viewer.page.unroute_all(behavior="wait")
    expect(state).to_have_text("answers", use_inner_text=True)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_axis_of_time_says_of_which_zone_it_is_and_its_times_stay_apart(
    browser: Browser, store: Shop, width: int
) -> None:
    with viewing(browser, store.http, width=width, timezone="Asia/Kolkata") as viewer:
        viewer.go(f"#/storage/{ORDERS}/0")
        times = viewer.page.locator(".segment-axis .axis-text").filter(has_text=re.compile(r"^\d\d:\d\d:\d\d"))
        expect(times.last).to_have_text(re.compile(r" UTC\+5:30$"))
        places = times.evaluate_all(
            "(times) => times.map((each) => each.getBoundingClientRect()).map(({ left, right }) => [left, right])"
        )
        assert all(right < left for (_, right), (left, _) in pairwise(places)), places


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


def test_the_segment_that_was_opened_last_stays_however_late_another_comes(viewer: Viewer, blocks: str) -> None:
    viewer.go(f"#/storage/{blocks}/0")
    late = Held(viewer.page, r"/segments/0\?")
    rows = viewer.table("segments").locator("tbody tr")
    expect(rows).to_have_count(2)
    rows.last.click()
    late.wait_for(1)
    rows.first.click()
    expect(opened(viewer)).to_contain_text(f"Segment from offset {BLOCKS}")
    with viewer.page.expect_response(re.compile(r"/segments\?")):  # the page goes on
        late.let_go()
    expect(opened(viewer)).to_contain_text(f"Segment from offset {BLOCKS}")
    assert f"segment={BLOCKS}" in viewer.page.url


def test_more_blocks_come_once_however_often_they_are_asked_for(viewer: Viewer, blocks: str) -> None:
    ask_for_pages_of(viewer.page, r"/segments/0\?", 2)
    viewer.go(f"#/storage/{blocks}/0?segment=0")
    more = viewer.button("More blocks")
    expect(block_rows(viewer)).to_have_count(2)
    late = Held(viewer.page, r"/segments/0\?.*after=")
    more.dblclick()
    late.wait_for(1)
    late.let_go()
    expect(block_rows(viewer)).to_have_count(4)
    more.click()
    late.wait_for(1)
    late.let_go()
    expect(block_rows(viewer)).to_have_count(BLOCKS)
    expect(more).to_be_hidden()
    expect(block_rows(viewer).get_by_role("gridcell").first).to_have_text("0")
    expect(block_rows(viewer).last.get_by_role("gridcell").first).to_have_text(str(BLOCKS - 1))


def test_blocks_that_cannot_be_read_are_asked_for_again(viewer: Viewer, blocks: str) -> None:
    viewer.expects_refusal(503)
    ask_for_pages_of(viewer.page, r"/segments/0\?", 4)
    viewer.go(f"#/storage/{blocks}/0?segment=0")
    expect(block_rows(viewer)).to_have_count(4)
    refused = re.compile(r"/segments/0\?.*after=")
    viewer.page.route(refused, lambda route: route.fulfill(status=503, json={"detail": "the object store is away"}))
    viewer.button("More blocks").click()
    expect(viewer.alert).to_contain_text("the object store is away")
    viewer.page.unroute(refused)
    viewer.button("More blocks").click()
    expect(block_rows(viewer)).to_have_count(BLOCKS)
    expect(viewer.alert).to_have_count(0)
