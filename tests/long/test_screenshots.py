"""The pictures of the console in docs/screenshots: pages at the width of a desk and of a phone, light and dark, taken
here, on a cluster with data, and kept if $SCREENSHOTS says where.

Without it the pictures are thrown away, and the test is that they can be taken and are those that the docs have."""

from __future__ import annotations

import itertools
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from console_parts.browser import chromium
from console_parts.shop import ORDERS, Shop, order
from console_parts.viewer import NARROW, WIDE, Viewer, viewing
from node.cluster import Cluster
from node.wait import eventually
from rest_parts.caller import RestCaller
from services.postgres import PostgresServer
from services.seaweed import SeaweedServer
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.pipelines.registry import (
    STATE_VARIABLE,
    QueryState,
    Registration,
    Registry,
    RunRecord,
    state_directory,
)

REPOSITORY = Path(__file__).parents[2]
KEPT = REPOSITORY / "docs" / "screenshots"
TOPICS = {ORDERS: 12, "payments": 6, "shipments": 6, "customers": 4, "clicks": 8, "revenue-per-minute": 2}
OTHERS = [topic for topic in TOPICS if topic != ORDERS]
GROUP = "billing"
PIPELINE = "revenue"
FOUND = urlencode({"where": "value.amount > 50 and value.paid", "columns": "value.order, value.amount, headers.source"})
POINTS_OF_A_CHART = 4
TREND = re.compile("growing|falling|steady")
MOST_BYTES = 200_000
Colours = Literal["light", "dark"]
LOOKS: tuple[tuple[int, Colours], ...] = ((WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark"))


@pytest.fixture(autouse=True)
def event_loop_runner() -> None:
    """None: the browser's driver has the only loop of this thread."""


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def shop(postgres_server: PostgresServer, s3_server: SeaweedServer) -> Iterator[Shop]:
    """Three agents that lead the topics of a shop."""
    with ExitStack() as ending:
        directory = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="screenshots-")))
        dsn = postgres_server.create_database()
        ending.callback(postgres_server.drop_database, dsn)
        bucket = s3_server.create_bucket()
        ending.callback(s3_server.delete_bucket, bucket)
        state = {STATE_VARIABLE: str(directory / "state")}
        cluster = ending.enter_context(Cluster(3, directory, dsn, bucket, durability="wal", env=state))
        agent = cluster.agents["a1"]
        shop = Shop(node=agent, rest=RestCaller(agent.http), state_dir=directory / "state")
        for topic, partitions in TOPICS.items():
            shop.create_topic(topic, partitions)
        cluster.wait_led()
        for number, topic in enumerate(OTHERS):
            shop.produce(topic, [without_time(index) for index in range(200 * (number + 1))])
        yield shop


@pytest.fixture
def pipeline(shop: Shop) -> Iterator[Registration]:
    with Registry(state_directory({STATE_VARIABLE: str(shop.state_dir)})).register(PIPELINE) as registration:
        yield registration


def note_progress(pipeline: Registration, batch: int, rows_per_second: float, lag: int) -> None:
    """As a run of it does every few seconds."""
    now_ms = SystemClock().now_ms()
    query = QueryState(
        query="revenue-per-minute", guarantee="exactly-once", batch_id=batch, rows_per_second=rows_per_second,
        batch_ms=180, lag={ORDERS: lag}, input_rows=batch * 120, output_rows=batch * 12,
    )  # fmt: skip
    record = RunRecord(
        name=PIPELINE, file="revenue.yaml", master="local[2]", pid=os.getpid(), started_at_ms=now_ms - batch * 100,
        updated_at_ms=now_ms, queries=[query],
    )  # fmt: skip
    pipeline.write(record)


@contextmanager
def busy(shop: Shop, pipeline: Registration) -> Iterator[None]:
    """Orders come in until the end of the block, and a pipeline reads them."""
    ending = threading.Event()

    def send() -> None:
        for turn in itertools.count():
            if ending.wait(0.1):
                return
            count = 50 + 40 * (turn % 7)
            shop.produce(ORDERS, [without_time(turn * 400 + index) for index in range(count)])
            note_progress(pipeline, turn + 1, rows_per_second=10.0 * count, lag=count // 5)

    sending = threading.Thread(target=send)
    sending.start()
    try:
        yield
    finally:
        ending.set()
        sending.join()


def without_time(number: int) -> dict[str, object]:
    """Now, and in the partition of its key."""
    return {name: value for name, value in order(number).items() if name not in ("timestamp_ms", "partition")}


@pytest.mark.timeout(1_800)
def test_the_pictures_of_the_docs_can_be_taken(
    browser: Browser, shop: Shop, pipeline: Registration, tmp_path: Path
) -> None:
    wanted = os.environ.get("SCREENSHOTS")
    directory = REPOSITORY / wanted if wanted else tmp_path
    directory.mkdir(parents=True, exist_ok=True)
    with busy(shop, pipeline):
        member = shop.read_with(GROUP, ORDERS, 200, client_id="billing-1")
        eventually(lambda: measured(shop) >= POINTS_OF_A_CHART, "lines for the charts", pause=1)
        eventually(lambda: followed(shop) >= POINTS_OF_A_CHART, "a line and a trend of the lag", pause=1)
        for width, colours in LOOKS:
            with viewing(browser, shop.http, width=width, colours=colours) as viewer:
                take_all(viewer, shop, directory, f"{width}-{colours}")
        shop.rest.delete(member)

    taken = {picture.name: picture.stat().st_size for picture in directory.glob("*.png")}
    assert all(0 < size < MOST_BYTES for size in taken.values()), taken
    assert taken.keys() == {picture.name for picture in KEPT.glob("*.png")}, "make screenshots takes them anew"


def measured(shop: Shop) -> int:
    """How often the node has seen how fast records come in."""
    return sum(value is not None for value in shop.rest.get("metrics/history")["series"]["records_in"])


def followed(shop: Shop) -> int:
    """How often the node has seen how far behind the group is."""
    [group] = shop.rest.get(f"topics/{ORDERS}/consumers")["groups"]
    return 0 if group["trend"] is None else sum(value is not None for value in group["lag_history"])


def take_all(viewer: Viewer, shop: Shop, directory: Path, look: str) -> None:
    def take(name: str) -> None:
        viewer.page.screenshot(path=directory / f"{name}-{look}.png", animations="disabled")

    viewer.go("#/")
    expect(viewer.page.locator("path.line-0").first).to_be_visible()
    expect(viewer.figure("Agents")).to_contain_text("3 of 3")
    expect(viewer.figure("Records in")).to_contain_text(re.compile("[1-9].* /s"))
    wait_for_chart(viewer, "/overview")
    expect(viewer.page.get_by_text("measuring…")).to_have_count(0)
    take("overview")
    viewer.go("#/topics")
    records = viewer.row("Topics", ORDERS).get_by_role("gridcell").nth(2)
    expect(records).to_have_text(re.compile("[1-9]"))
    take("topics")
    viewer.go(f"#/topics/{ORDERS}?tab=Consumers&group={GROUP}")
    expect(viewer.row("Consumers", GROUP)).to_contain_text(TREND, use_inner_text=True)
    expect(viewer.table(f"Partitions read by {GROUP}").locator("tbody tr[data-index]").first).to_be_visible()
    take("consumers")
    viewer.go(f"#/topics/{ORDERS}/messages?{FOUND}")
    messages = viewer.table("Messages").locator("tbody tr[data-index]")
    expect(messages.first).to_be_visible()
    for name in ("From (UTC)", "To (UTC)"):
        expect(viewer.page.get_by_label(name, exact=True)).to_be_in_viewport(ratio=1)
    take("messages")
    viewer.go(f"#/topics/{ORDERS}/messages")
    expect(viewer.table("Messages").get_by_role("columnheader").last).to_have_text("Value")
    messages.first.click()
    expect(viewer.dialog.get_by_role("region", name="Headers")).to_be_visible()
    take("message")
    viewer.press("Escape")
    viewer.go(f"#/groups/{GROUP}")
    expect(viewer.table("members").locator("tbody tr")).to_have_count(1)
    wait_for_chart(viewer, f"/groups/{GROUP}")
    take("group")
    viewer.go("#/cluster")
    expect(viewer.row("agents", "a3")).to_contain_text("live")
    take("cluster")
    viewer.go(f"#/storage/{ORDERS}/{partition_in_segments(shop)}")
    viewer.table("segments").locator("tbody tr").first.click()
    expect(viewer.page.get_by_role("region", name="Opened segment")).to_be_visible()
    viewer.script("scrollTo(0, 0)")
    take("storage")
    viewer.go("#/pipelines")
    wait_for_chart(viewer, "/pipelines")
    take("pipelines")


def partition_in_segments(shop: Shop) -> int:
    """Not every one has a customer."""

    def stored() -> list[int]:
        numbers = range(TOPICS[ORDERS])
        return [n for n in numbers if shop.rest.get(f"topics/{ORDERS}/partitions/{n}/segments")["segments"]]

    return eventually(stored, "orders in segments", pause=0.5)[0]


def wait_for_chart(viewer: Viewer, asked: str) -> None:
    """Until there is a line to see, which takes a few answers of the node, and that begins before somebody looked."""
    answers: list[str] = []
    viewer.page.on("response", lambda response: answers.append(response.url))

    def has_line() -> bool:
        viewer.page.wait_for_timeout(500)
        return sum(url.endswith(asked) for url in answers) >= POINTS_OF_A_CHART and begin_before_the_page(viewer)

    eventually(has_line, "the line of a chart, from before the page was opened")


def begin_before_the_page(viewer: Viewer) -> bool:
    """Whether the charts do, by the first time on their axes."""
    begins = viewer.page.locator(".chart text.axis:not([text-anchor])").all_text_contents()
    opened = time_of_day(viewer.script("new Date(performance.timeOrigin).toTimeString().slice(0, 8)"))
    ages = [(opened - time_of_day(begin)) % timedelta(days=1) for begin in begins]
    return bool(ages) and all(timedelta() < age <= timedelta(hours=1) for age in ages)


def time_of_day(text: str) -> datetime:
    return datetime.strptime(text, "%H:%M:%S")
