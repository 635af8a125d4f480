"""The overview: figures of what is there and what flows, which change while somebody looks."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from console_parts.shop import ORDERS, Shop, order
from console_parts.viewer import Viewer
from node.wait import eventually


def test_the_figures_tell_what_is_there(viewer: Viewer, store: Shop) -> None:
    viewer.go("")
    expect(viewer.figure("Agents")).to_contain_text("1 of 1")
    expect(viewer.figure("Stored")).to_contain_text(re.compile(r"[1-9][0-9]* segments"))
    expect(viewer.figure("Lag of all groups")).to_contain_text(re.compile(r"[1-9][0-9]* groups"))
    expect(viewer.page.get_by_text(store.rest.get("cluster/health")["cluster_id"])).to_be_visible()
    expect(viewer.page.get_by_role("region", name="Alerts")).to_have_text("● No alerts")


def test_what_flows_is_seen_without_asking_again(viewer: Viewer, store: Shop) -> None:
    viewer.go("")
    stored = viewer.figure("Records in")
    expect(stored).to_contain_text("in all")
    before = _counted(stored.inner_text())
    store.produce(ORDERS, [order(number) for number in range(10)])
    # A look may come when only some of the partitions have theirs.
    eventually(lambda: _counted(stored.inner_text()) >= before + 10, "ten records more")
    latency = viewer.figure("Produce latency, p99")
    expect(latency).to_contain_text(re.compile(r"p99\s*[0-9.]+ m?s\s*half of them within [0-9.]+ m?s"))


def test_a_rate_is_of_what_was_stored_since_the_last_look(viewer: Viewer, store: Shop) -> None:
    viewer.go("")
    stored, read = viewer.figure("Records in"), viewer.figure("Records out")
    expect(read).to_contain_text("0 /s")

    def is_seen_to_flow() -> bool:
        store.produce(ORDERS, [order(number) for number in range(10)])
        return re.search(r"Records in\s+[1-9][0-9.,]* /s", stored.inner_text()) is not None

    eventually(is_seen_to_flow, "a rate of what is stored", pause=0.3)
    expect(read).to_contain_text("0 /s")
    chart = viewer.page.get_by_role("img", name=re.compile("^Records per second"))
    words = r"in: now [0-9.,]+ /s, between [0-9.,]+ /s and [1-9][0-9.,]* /s; out: now 0 /s, between 0 /s and 0 /s"
    expect(chart).to_have_accessible_name(re.compile(words))
    expect(chart.locator("path.line-0")).to_have_attribute("d", re.compile(r"^M[0-9. ]+(L[0-9. ]+)+$"))


def test_a_figure_leads_to_the_page_of_its_details(viewer: Viewer) -> None:
    viewer.go("")
    viewer.figure("Agents").get_by_role("link").click()
    expect(viewer.heading("Cluster")).to_be_visible()


def _counted(text: str) -> int:
    found = re.search(r"([0-9,\u202f ]+) in all", text)
    assert found is not None, text
    return int(re.sub(r"[^0-9]", "", found[1]))
