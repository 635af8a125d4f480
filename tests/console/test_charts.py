"""Lines over time: what is on their axes, and where they have gaps."""

from __future__ import annotations

import re

from playwright.sync_api import Route, expect

from console_parts.viewer import Viewer
from streamhouse.runtime.clock import SystemClock

SAMPLES = 20
_AXIS = """async () => {
    const [{ lineChart }, { byteRate }] = await Promise.all(
        ['chart', 'format'].map((name) => import(`/console/static/lib/${name}.js`)));
    const series = [{ name: 'in', points: [[0, 100_000], [1000, 130_000]] }];
    const { element } = lineChart({ series, unit: byteRate, isBinary: true });
    return [...element.querySelectorAll('text[text-anchor="end"]')].map((text) => text.textContent);
}"""


def test_an_axis_of_bytes_has_round_numbers_of_them(viewer: Viewer) -> None:
    viewer.go("#/nowhere")
    assert viewer.page.evaluate(_AXIS)[:3] == ["0 B/s", "64 KiB/s", "128 KiB/s"]


def test_a_line_goes_on_from_what_the_node_has_measured_without_a_gap(viewer: Viewer) -> None:
    def measured(route: Route) -> None:
        answer = route.fetch().json()
        now_ms = SystemClock().now_ms()
        answer["times_ms"] = [now_ms - 15_000 * (SAMPLES - index) for index in range(SAMPLES)]
        answer["series"] = {name: [1.0] * SAMPLES for name in answer["series"]}
        route.fulfill(json=answer)

    viewer.page.route("**/api/v1/metrics/history", measured)
    viewer.go("#/")
    line = viewer.page.locator("path.line-0").first
    # The hour, and what the page has measured itself.
    expect(line).to_have_attribute("d", re.compile(rf"^M[^M]*(L[^LM]*){{{SAMPLES + 1},}}$"))
    viewer.page.unroute_all(behavior="wait")
