"""The overview: figures of what is there and what flows, which change while somebody looks."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from console_parts.browser import HUNG_MS
from console_parts.local_time import local_time
from console_parts.shop import BILLING, FAILED_PIPELINE, ORDERS, PARTITIONS, PIPELINE, Shop, order
from console_parts.viewer import Viewer
from node.wait import eventually


def test_the_figures_tell_what_is_there(viewer: Viewer, store: Shop) -> None:
    viewer.go("")
    expect(viewer.figure("Agents")).to_contain_text("1 of 1")
    expect(viewer.figure("Stored")).to_contain_text(re.compile(r"[1-9][0-9]* segments"))
    expect(viewer.figure("Lag of all groups")).to_contain_text(re.compile(r"[1-9][0-9]* groups"))
    expect(viewer.page.get_by_text(store.rest.get("cluster/health")["cluster_id"])).to_be_visible()
    expect(viewer.page.get_by_role("region", name="Alerts")).to_have_text(
        "● No alerts", use_inner_text=True, timeout=2 * HUNG_MS
    )


def test_what_flows_is_seen_without_asking_again(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("flowing", PARTITIONS)
    viewer.go("")
    stored = viewer.figure("Records in")
    expect(stored).to_contain_text("in all")
    before = _counted(stored.inner_text())
    store.produce(topic, [order(number) for number in range(10)])
    # A look may come when only some of the partitions have theirs.
    eventually(lambda: _counted(stored.inner_text()) >= before + 10, "ten records more")
    latency = viewer.figure("Produce latency, p99")
    expect(latency).to_contain_text(re.compile(r"p99\s*[0-9.]+ m?s\s*half of them within [0-9.]+ m?s"))


def test_a_rate_is_of_what_was_stored_since_the_last_look(viewer: Viewer, store: Shop) -> None:
    topic = store.create_topic("flowing-on", PARTITIONS)
    viewer.go("")
    stored, read = viewer.figure("Records in"), viewer.figure("Records out")
    expect(read).to_contain_text("0 /s")

    def is_seen_to_flow() -> bool:
        store.produce(topic, [order(number) for number in range(10)])
        return re.search(r"Records in\s+[1-9][0-9.,]* /s", stored.inner_text()) is not None

    eventually(is_seen_to_flow, "a rate of what is stored", pause=0.3)
    expect(read).to_contain_text("0 /s")
    chart = viewer.page.get_by_role("img", name=re.compile("^Records per second"))
    words = r"in: now [0-9.,]+ /s, between [0-9.,]+ /s and [1-9][0-9.,]* /s; out: now 0 /s, between "
    expect(chart).to_have_accessible_name(re.compile(words))
    expect(chart.locator("path.line-0")).to_have_attribute("d", re.compile(r"^(M[0-9. ]+(L[0-9. ]+)*)+$"))


def test_the_charts_have_what_the_node_saw_before_the_page_was_opened(viewer: Viewer, store: Shop) -> None:
    def first_known_ms() -> int | None:
        """Once there are two points, of which the first is on the axis."""
        history = store.rest.get("metrics/history")
        times = [at for at, lag in zip(history["times_ms"], history["series"]["lag"], strict=True) if lag is not None]
        return times[0] if len(times) > 1 else None

    first_ms = eventually(first_known_ms, "two samples", pause=0.5)
    viewer.go("")
    lag = viewer.page.get_by_role("img", name=re.compile("^Lag of all groups"))
    expect(lag).to_have_accessible_name(re.compile("lag: now [0-9]"))
    shown = {local_time(viewer, first_ms + shift)[11:19] for shift in (-1000, 0, 1000)}
    assert lag.locator("text.axis").nth(3).text_content() in shown


def long_ago(times_ms: list[int], now_ms: int) -> int | None:
    """The first of them, once a page that is opened now would not begin then by itself."""
    return times_ms[0] if times_ms and now_ms - times_ms[0] > 5_000 else None


def shows_from(viewer: Viewer, chart: str, first_ms: int) -> None:
    """A chart with a line, which begins then."""
    drawn = viewer.page.get_by_role("img", name=re.compile(f"^{chart}"))
    expect(drawn.locator("path.line-0")).to_have_count(1)
    shown = {local_time(viewer, first_ms + shift)[11:19] for shift in (-1000, 0, 1000)}
    eventually(lambda: drawn.locator("text.axis").nth(3).text_content() in shown, f"{chart} to begin at {shown}")


def test_the_charts_of_a_group_have_what_the_node_saw_before_the_page_was_opened(viewer: Viewer, store: Shop) -> None:
    def first_known_ms() -> int | None:
        history = store.rest.get(f"groups/{BILLING}/history")
        assert {each["topic"] for each in history["partitions"]} <= {ORDERS}
        return long_ago(history["times_ms"], history["at_ms"])

    first_ms = eventually(first_known_ms, "a sample", pause=0.5)
    viewer.go(f"#/groups/{BILLING}")
    shows_from(viewer, "Lag over time, in records", first_ms)
    shows_from(viewer, "Partitions that are furthest behind", first_ms)


def test_the_charts_of_a_pipeline_have_what_the_node_saw_before_the_page_was_opened(
    viewer: Viewer, store: Shop
) -> None:
    def first_known_ms() -> int | None:
        answer = store.rest.get("pipelines/history")
        [times_ms] = [each["times_ms"] for each in answer["pipelines"] if each["name"] == PIPELINE] or [[]]
        return long_ago(times_ms, answer["at_ms"])

    first_ms = eventually(first_known_ms, "a sample", pause=0.5)
    viewer.go(f"#/pipelines?name={PIPELINE}")
    shows_from(viewer, "Rows per second", first_ms)
    shows_from(viewer, "Lag, in records", first_ms)


def test_of_a_pipeline_without_queries_no_lag_is_known(viewer: Viewer) -> None:
    viewer.go(f"#/pipelines?name={FAILED_PIPELINE}")
    cells = viewer.row("pipelines", FAILED_PIPELINE).get_by_role("gridcell")
    expect(cells.nth(3)).to_have_text("\u2013")
    expect(viewer.row("pipelines", PIPELINE).get_by_role("gridcell").nth(3)).to_have_text(re.compile("^[0-9]"))


def test_a_figure_leads_to_the_page_of_its_details(viewer: Viewer) -> None:
    viewer.go("")
    viewer.figure("Agents").get_by_role("link").click()
    expect(viewer.heading("Cluster")).to_be_visible()


def _counted(text: str) -> int:
    found = re.search(r"([0-9,\u202f ]+) in all", text)
    assert found is not None, text
    return int(re.sub(r"[^0-9]", "", found[1]))
