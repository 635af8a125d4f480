"""How soon the list of topics is on screen, with many of them beside with few."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

from playwright.sync_api import Browser

from bench.console.browser import visited
from bench.console.plan import Plan
from bench.rows import Row, at_most
from bench.servers import Server, serving, start_node
from streamhouse.metadata.sqlite.store import SqliteMetadataStore
from streamhouse.runtime.clock import SystemClock

# The frame after the one in which the first row came is the first that shows it.
_NOTE_FIRST_ROW = """
    window.firstRow = new Promise((resolve) => {
        new MutationObserver((_, watch) => {
            if (!document.querySelector('tbody tr[data-index]')) return;
            watch.disconnect();
            requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())));
        }).observe(document, { childList: true, subtree: true });
    });
"""
_FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def rows(browser: Browser, plan: Plan, directory: Path) -> Iterator[Row]:
    shell: dict[int, float] = {}
    list_shown: dict[int, float] = {}
    for topics in (plan.few_topics, plan.many_topics):
        data_dir = directory / f"topics-{topics}"
        _create_topics(data_dir, topics, plan.partitions)
        with serving(start_node(data_dir)) as server:
            server.settle()
            visits = [_visit(browser, server) for _ in range(plan.visits + 1)][1:]  # the first warms everybody up
        shell[topics] = statistics.median(first_paint for first_paint, _ in visits)
        list_shown[topics] = statistics.median(first_row for _, first_row in visits)
    for name, measured in (("first contentful paint", shell), ("rows on screen", list_shown)):
        yield Row(
            scenario="console",
            name=f"{plan.many_topics:,} topics of {plan.partitions}: {name}, p50",
            figure=measured[plan.many_topics],
            unit="ms",
            limit=measured[plan.few_topics],
            limit_name=f"{plan.few_topics} topics",
            goal=at_most(2.0),
        )


def _visit(browser: Browser, server: Server) -> tuple[float, float]:
    """Milliseconds from the start of the navigation to the first paint, and to the first row on screen."""
    with visited(browser, server, _NOTE_FIRST_ROW) as page:
        page.goto("/#/topics")
        first_row = float(page.evaluate("window.firstRow"))
        return float(page.evaluate(_FIRST_PAINT)), first_row


def _create_topics(data_dir: Path, topics: int, partitions: int) -> None:
    """In the metadata store, before the node starts: a thousand made one by one take longer than the measurement."""

    async def create() -> None:
        store = await SqliteMetadataStore.open(str(data_dir / "metadata.db"), SystemClock())
        try:
            for number in range(topics):
                await store.create_topic(f"topic-{number:04}", uuid4(), partitions, {})
        finally:
            await store.close()

    data_dir.mkdir(parents=True)
    # On a thread of its own: the browser's driver has the loop of this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, create()).result()
