"""Pipelines: how they run, and their dead letters with the failed record and its error."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import msgspec
import pytest
from playwright.sync_api import Locator, expect

from console_parts import hostile
from console_parts.requests import Held, ask_for_pages_of
from console_parts.shop import DEAD_LETTERS, FAILED_PIPELINE, LETTER_ERROR, ORDERS, PIPELINE, Shop
from console_parts.viewer import Viewer
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.pipelines.registry import (
    STATE_VARIABLE,
    QueryState,
    Registration,
    Registry,
    RunRecord,
    state_directory,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A pipeline's run that is ours to tell about, with a topic for its dead letters."""

    store: Shop
    registration: Registration
    record: RunRecord

    def fail(self, value: str, pipeline: str | None = None) -> None:
        """A record more could not be processed."""
        whose = self.record.name if pipeline is None else pipeline
        headers = [{"name": "streamhouse.error", "value": "why"}, {"name": "streamhouse.pipeline", "value": whose}]
        letter = {"value": value, "headers": headers}
        self.store.produce(str(self.record.dead_letter_topic), [letter], value_format="text")

    def tell(self, letters: int) -> None:
        self.registration.write(msgspec.structs.replace(self.record, dead_letters=letters))


@pytest.fixture
def run(store: Shop) -> Iterator[Run]:
    """With four dead letters, and one of another pipeline behind them."""
    name = f"letters-{uuid4().hex[:8]}"
    record = RunRecord(
        name=name, file="letters.yaml", master="local[1]", pid=os.getpid(), started_at_ms=1,
        updated_at_ms=SystemClock().now_ms(), dead_letter_topic=store.create_topic(f"{name}.dead"),
    )  # fmt: skip
    directory = state_directory({STATE_VARIABLE: str(store.state_dir)})
    with Registry(directory).register(name) as registration:
        run = Run(store=store, registration=registration, record=record)
        for number in range(4):
            run.fail(f"letter {number}")
        run.fail("not ours", pipeline="another")
        run.tell(0)
        yield run
    (directory / f"{name}.json").unlink()


@pytest.fixture
def reader(viewer: Viewer, run: Run) -> Viewer:
    """Somebody who gets two letters at a time, and of the newest two sees the one that is the pipeline's."""
    ask_for_pages_of(viewer.page, f"/{run.record.dead_letter_topic}/messages", 2)
    viewer.go(f"#/pipelines?name={run.record.name}")
    expect(letters(viewer)).to_have_count(1)
    return viewer


def letters(viewer: Viewer) -> Locator:
    return viewer.page.get_by_role("region", name="Dead letters").get_by_role("group")


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


def test_older_letters_come_once_however_often_they_are_asked_for(reader: Viewer) -> None:
    late = Held(reader.page, r"/messages\?.*next=")
    older = reader.button("Older")
    older.click()
    late.wait_for(1)  # one that is given up before it was held would not count
    older.click()
    late.wait_for(2)
    late.let_go()
    expect(letters(reader)).to_have_count(3)
    older.click()
    late.wait_for(1)
    late.let_go()
    expect(letters(reader)).to_have_count(4)
    expect(older).to_be_hidden()
    for place, number in enumerate((3, 2, 1, 0)):
        expect(letters(reader).nth(place).locator("pre")).to_have_text(f"letter {number}")


def test_the_newest_letters_are_all_there_is_whatever_was_on_its_way(reader: Viewer) -> None:
    late = Held(reader.page, r"/messages\?.*next=")
    reader.button("Older").click()
    late.wait_for(1)
    with reader.page.expect_response(lambda response: "/messages" in response.url):
        reader.button("Newest").click()
    with reader.page.expect_response(lambda response: "/pipelines" in response.url):  # the page goes on
        late.let_go()
    expect(letters(reader)).to_have_count(1)
    expect(letters(reader).locator("pre")).to_have_text("letter 3")


def test_letters_that_come_are_shown_unless_one_is_being_read(reader: Viewer, run: Run) -> None:
    run.fail("letter 4")
    run.tell(1)
    expect(letters(reader).locator("pre")).to_have_text("letter 4")

    letters(reader).locator("summary").click()
    run.fail("letter 5")
    run.tell(2)
    expect(reader.heading("Dead letters: 2 in this run")).to_be_visible()
    expect(letters(reader).locator("pre")).to_have_text("letter 4")
    reader.button("Newest").click()
    expect(letters(reader).locator("pre")).to_have_text(["letter 5", "letter 4"])


def test_a_pipeline_that_went_silent_is_not_said_to_run(viewer: Viewer, run: Run) -> None:
    viewer.go(f"#/pipelines?name={run.record.name}")
    expect(viewer.row("pipelines", run.record.name)).to_contain_text("running")
    begun = [QueryState(query="sums", guarantee="exactly once")]
    an_hour_ago_ms = run.record.updated_at_ms - 3_600_000
    run.registration.write(msgspec.structs.replace(run.record, queries=begun, updated_at_ms=an_hour_ago_ms))
    row = viewer.row("pipelines", run.record.name)
    expect(row).to_contain_text(re.compile(r"silent.* since \d\d:\d\d:\d\d"))
    expect(row).not_to_contain_text("running")
    viewer.go("#/")
    alert = viewer.page.get_by_role("region", name="Alerts").locator(".alert").filter(has_text="pipelines_silent")
    expect(alert).to_contain_text("pipelines on this machine say nothing")
    alert.get_by_role("link", name=run.record.name).click()
    expect(viewer.heading(run.record.name)).to_be_visible()


def test_a_topic_for_dead_letters_that_does_not_exist_yet_is_no_error(viewer: Viewer, run: Run) -> None:
    topic = f"{run.record.dead_letter_topic}.later"
    run.registration.write(msgspec.structs.replace(run.record, dead_letter_topic=topic))
    viewer.go(f"#/pipelines?name={run.record.name}")
    place = viewer.page.get_by_role("region", name="Dead letters")
    expect(place).to_contain_text(f"{topic} does not exist yet: the first record that cannot be processed makes it.")
    expect(viewer.alert).to_have_count(0)
    run.store.create_topic(topic)
    expect(place.get_by_role("link", name="All of the topic")).to_be_visible()
