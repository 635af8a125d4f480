"""Numbers and times as people read them: the module that writes them, in the browser that runs it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser

from console_parts.shop import Shop
from console_parts.viewer import Viewer, viewing

UNKNOWN = "\u2013"
DAY_MS = 86_400_000

_WRITTEN = """async ([how, values]) => (await import('/console/static/lib/format.js'))[how](...values)"""


def written(viewer: Viewer, how: str, *values: Any) -> Any:
    viewer.go("#/nowhere")
    return viewer.page.evaluate(_WRITTEN, [how, list(values)])


@pytest.mark.parametrize(
    ("how", "cases"),
    [
        ("count", {0: "0", 12_345: "12,345", None: UNKNOWN}),
        ("brief", {950: "950", 12_345: "12.3K", None: UNKNOWN}),
        ("bytes", {0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 200 << 20: "200 MiB", 3 << 50: "3 PiB", None: UNKNOWN}),
        ("rate", {0: "0 /s", 2.5: "2.5 /s", 1250: "1,250 /s", None: UNKNOWN}),
        ("byteRate", {1536: "1.5 KiB/s", None: UNKNOWN}),
        ("percent", {0: "0 %", 0.125: "12.5 %", None: UNKNOWN}),
        (
            "duration",
            {0.256: "0.26 ms", 870: "870 ms", 12_500: "12.5 s", 60_000: "1 min", 200_000: "3 min 20 s",
             18_600_000: "5 h 10 min", 7 * DAY_MS: "7 d", 7 * DAY_MS + 3_600_000: "7 d 1 h", -1: "forever",
             None: UNKNOWN},
        ),
    ],
)  # fmt: skip
def test_a_number_is_written_with_its_unit(viewer: Viewer, how: str, cases: dict[Any, str]) -> None:
    assert {value: written(viewer, how, value) for value in cases} == cases


def test_one_thing_is_not_written_as_many(viewer: Viewer) -> None:
    assert [written(viewer, "counted", number, "group") for number in (0, 1, 2)] == ["0 groups", "1 group", "2 groups"]


def test_a_time_is_that_of_the_place_where_it_is_read(browser: Browser, store: Shop) -> None:
    with viewing(browser, store.http, timezone="Asia/Tokyo") as viewer:
        assert written(viewer, "time", 1) == "1970-01-01 09:00:00.001 UTC+9"
        assert written(viewer, "clock", 1) == "09:00:00"
        assert written(viewer, "zone", 1) == "UTC+9"
        assert written(viewer, "ago", 1_000, 241_000) == "4 min ago"
        assert written(viewer, "time", -32_400_001) == "1969-12-31 23:59:59.999 UTC+9"
        assert [written(viewer, "time", unknown) for unknown in (-1, None, 1e300)] == [UNKNOWN] * 3


@pytest.mark.parametrize(
    ("place", "zone"), [("UTC", "UTC"), ("America/St_Johns", "UTC-3:30"), ("Asia/Kolkata", "UTC+5:30")]
)
def test_a_time_says_of_which_zone_it_is(browser: Browser, store: Shop, place: str, zone: str) -> None:
    with viewing(browser, store.http, timezone=place) as viewer:
        assert written(viewer, "zone", 1_767_225_600_000) == zone
        assert str(written(viewer, "time", 1_767_225_600_000)).endswith(f".000 {zone}")
