"""Pipelines: how they run, and their dead letters with the failed record and its error."""

from __future__ import annotations

from playwright.sync_api import expect

from console_parts import hostile
from console_parts.shop import DEAD_LETTERS, FAILED_PIPELINE, LETTER_ERROR, ORDERS, PIPELINE
from console_parts.viewer import Viewer


def test_a_running_pipeline_shows_its_speed_its_lag_and_its_queries(viewer: Viewer) -> None:
    viewer.go("#/pipelines")
    row = viewer.row("pipelines", PIPELINE)
    expect(row).to_contain_text("running")
    row.click()
    expect(viewer.row("queries", "revenue_per_minute")).to_contain_text("exactly-once")
    expect(viewer.row("queries", "revenue_per_minute")).to_contain_text("866")
    expect(viewer.page.get_by_role("heading", name="Dead letters: 2 in this run")).to_be_visible()


def test_a_failed_pipeline_says_why(viewer: Viewer) -> None:
    viewer.go("#/pipelines")
    viewer.row("pipelines", FAILED_PIPELINE).click()
    expect(viewer.row("pipelines", FAILED_PIPELINE)).to_contain_text("failed")
    viewer.sees(f"no such column {hostile.MARKUP}")


def test_a_dead_letter_opens_to_the_failed_record_and_where_it_came_from(viewer: Viewer) -> None:
    viewer.go(f"#/pipelines?name={PIPELINE}")
    letters = viewer.page.get_by_role("region", name="Dead letters")
    letter = letters.get_by_role("group").filter(has_text="amount=12;")
    letter.get_by_text(LETTER_ERROR).click()
    expect(letter.get_by_text("amount=12;")).to_be_visible()
    expect(letter.get_by_role("link", name=f"{DEAD_LETTERS}/0, offset 0")).to_be_visible()
    letter.get_by_role("link", name=f"{ORDERS}/1, offset 17").click()
    expect(viewer.table("Messages").locator("tbody tr").first).to_contain_text('"order": 69,')
