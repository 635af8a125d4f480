"""Whether a page that follows a busy topic still answers: its longest frame, beside that of the page at rest."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page

from bench.console.browser import visited
from bench.console.plan import Plan
from bench.rows import Row, at_least, at_most
from bench.servers import Server, serving, start_node
from bench.steady_stream import SteadyStream
from bench.topics import create_topic, end_offsets

TOPIC = "busy"
PARTITIONS = 4
RESPONSIVE_MS = 200.0
"""What people take for at once: the bound of a good interaction to next paint."""
KEEPS_UP = 0.95
"""Of what was stored; the rest is on its way."""
_NOTE_FRAMES = """
    window.frames = [];
    let last = 0;
    const frame = (now) => { if (last) window.frames.push(now - last); last = now; requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
"""
_TAKE_FRAMES = "() => { const taken = window.frames; window.frames = []; return taken; }"


def rows(browser: Browser, plan: Plan, directory: Path) -> Iterator[Row]:
    with serving(start_node(directory / "tail")) as server:
        create_topic(server.address, TOPIC, PARTITIONS)
        with visited(browser, server, _NOTE_FRAMES) as page:
            page.goto(f"/#/topics/{TOPIC}/messages")
            page.get_by_label("Show", exact=True).select_option("Live tail")
            page.get_by_text("live", exact=True).first.wait_for()
            resting = _frames(page, plan.tail_seconds / 3)
            with SteadyStream(server.address, TOPIC, PARTITIONS, rate=plan.tail_rate):
                page.locator("tbody tr[data-index]").first.wait_for()
                before, shown_before, started = _stored(server), _received(page), time.monotonic()
                page.evaluate(_TAKE_FRAMES)
                busy = _frames(page, plan.tail_seconds)
                stored, received = _stored(server) - before, _received(page) - shown_before
                seconds = time.monotonic() - started
    yield Row(
        scenario="console",
        name=f"live tail of {plan.tail_rate:,.0f} records/s: longest frame",
        figure=max(busy),
        unit="ms",
        goal=at_most(RESPONSIVE_MS, "ms"),
        note=f"{len(busy) / plan.tail_seconds:.0f} frames/s, p99 {_p99(busy):.0f} ms; at rest the longest was "
        f"{max(resting):.0f} ms",
        details={"frames": len(busy), "p99_ms": _p99(busy), "at_rest_ms": max(resting)},
    )
    yield Row(
        scenario="console",
        name=f"live tail of {plan.tail_rate:,.0f} records/s: received by the page",
        figure=received / seconds,
        unit="records/s",
        limit=stored / seconds,
        limit_name="stored meanwhile",
        goal=at_least(KEEPS_UP),
    )


def _frames(page: Page, seconds: float) -> list[float]:
    """Milliseconds from each frame to the next, for so long."""
    page.wait_for_timeout(seconds * 1000)
    return [float(gap) for gap in page.evaluate(_TAKE_FRAMES)]


def _stored(server: Server) -> int:
    return sum(end_offsets(server.address, TOPIC, PARTITIONS))


def _received(page: Page) -> int:
    """As the page counts them."""
    said = page.get_by_text(re.compile(r"^[0-9,]+ received")).first.inner_text()
    return int(said.partition(" ")[0].replace(",", ""))


def _p99(gaps: list[float]) -> float:
    return sorted(gaps)[int(len(gaps) * 0.99)]
