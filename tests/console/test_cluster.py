"""The cluster: its ring, leases and agents, and an agent that fails while somebody looks at them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from console_parts.shop import ORDERS, Shop
from console_parts.viewer import Viewer, viewing
from node.cluster import TIMINGS, Cluster
from rest_parts.caller import RestCaller
from services.postgres import PostgresServer
from services.seaweed import SeaweedServer

PARTITIONS = 12


PATIENT = ("--lease-ttl", "10m", "--lease-renewal", "1s", "--heartbeat", "1s", "--liveness", "10m", "--rebalance", "1s")
"""Nobody is taken for dead while a test goes on."""


@pytest.fixture
def cluster(postgres_server: PostgresServer, s3_server: SeaweedServer) -> Iterator[Cluster]:
    with running(postgres_server, s3_server, TIMINGS) as cluster:
        yield cluster


@pytest.fixture
def patient(postgres_server: PostgresServer, s3_server: SeaweedServer) -> Iterator[Cluster]:
    with running(postgres_server, s3_server, PATIENT) as cluster:
        yield cluster


@contextmanager
def running(postgres_server: PostgresServer, s3_server: SeaweedServer, timings: tuple[str, ...]) -> Iterator[Cluster]:
    """Three agents that keep nothing on a disk of their own, and lead the partitions of one topic."""
    with ExitStack() as ending:
        directory = ending.enter_context(tempfile.TemporaryDirectory(prefix="console-cluster-"))
        dsn = postgres_server.create_database()
        ending.callback(postgres_server.drop_database, dsn)
        bucket = s3_server.create_bucket()
        ending.callback(s3_server.delete_bucket, bucket)
        cluster = ending.enter_context(Cluster(3, Path(directory), dsn, bucket, durability="object", timings=timings))
        RestCaller(cluster.agents["a1"].http).post(
            "topics", {"name": ORDERS, "partition_count": PARTITIONS}, status=201
        )
        cluster.wait_led(ORDERS)
        yield cluster


def test_whoever_would_drain_the_only_agent_is_told_that_nobody_takes_over(viewer: Viewer, store: Shop) -> None:
    [agent] = store.rest.get("agents")["agents"]
    viewer.go(f"#/cluster?agent={agent['agent_id']}")
    viewer.button("Drain").click()
    expect(viewer.dialog).to_contain_text("No other agent of agent group default is alive")
    expect(viewer.dialog).to_contain_text("new partitions get no leader until an agent is started")
    viewer.button("Cancel", within=viewer.dialog).click()
    assert store.rest.get("agents")["agents"][0]["state"] == "live"


def test_the_ring_the_agents_and_the_leases_are_shown(viewer: Viewer, store: Shop) -> None:
    [agent] = store.rest.get("agents")["agents"]
    viewer.go("#/cluster")
    expect(viewer.page.get_by_role("img", name=re.compile("Hash ring: 1 of 1 agents live"))).to_be_visible()
    expect(viewer.page.get_by_role("group", name="Agents on the ring")).to_have_text(agent["agent_id"])
    expect(viewer.row("agents", agent["agent_id"])).to_contain_text("live")
    [placed] = store.rest.get("ring")["agents"]
    expect(viewer.row("agents", agent["agent_id"])).to_contain_text(f"{placed['owns']:,}")
    expect(viewer.page.locator(".page-head").get_by_text("ok", exact=True)).to_be_visible()
    viewer.page.get_by_role("searchbox", name="Search leases").fill(f"{ORDERS}/")
    expect(viewer.row("leases", f"{ORDERS}/0")).to_contain_text(agent["agent_id"])
    expect(viewer.row("leases", f"{ORDERS}/0")).to_contain_text(re.compile(r"[0-9.]+ s"))


def test_how_many_agents_live_is_taken_back_on_the_ring_while_that_is_old(viewer: Viewer) -> None:
    def ring(told: str) -> Locator:
        return viewer.page.get_by_role("img", name=re.compile(f"^Hash ring: {told}$"))

    viewer.expects_no_answer()
    viewer.go("#/cluster")
    expect(ring("1 of 1 agents live, [0-9]+ partitions")).to_be_visible()
    in_the_ring = viewer.page.locator(".ring-count")
    expect(in_the_ring.get_by_text("1 of 1 agents live")).to_be_visible()
    viewer.page.route("**/api/v1/ring*", lambda route: route.abort("connectionrefused"))
    expect(ring("not known")).to_be_visible()
    expect(in_the_ring.get_by_text("not known")).to_be_visible()
    expect(in_the_ring.get_by_text("1 of 1 agents live")).to_be_hidden()
    viewer.page.unroute_all(behavior="wait")
    expect(ring("1 of 1 agents live, [0-9]+ partitions")).to_be_visible()
    expect(in_the_ring.get_by_text("not known")).to_be_hidden()


def test_a_partition_without_a_leader_is_told_of_on_the_ring_and_in_the_leases(viewer: Viewer) -> None:
    def leaderless(route: Route) -> None:
        ring = route.fetch().json()
        [lost] = [each for each in ring["partitions"] if (each["topic"], each["partition"]) == (ORDERS, 1)]
        lost.update(leader=None, waits_for="a-lost-agent", lease_left_ms=0)
        route.fulfill(json=ring)

    viewer.page.route("**/api/v1/ring*", leaderless)
    viewer.go("#/cluster")
    expect(viewer.page.get_by_role("img", name=re.compile("Hash ring: .*, 1 without a leader"))).to_be_visible()
    viewer.page.get_by_role("searchbox", name="Search leases").fill("nobody")
    row = viewer.row("leases", f"{ORDERS}/1")
    expect(row).to_contain_text("nobody")
    expect(row).to_contain_text("waits for a-lost-agent, whose disk may hold acknowledged records")
    viewer.page.unroute_all(behavior="wait")


def test_the_ring_tells_which_partition_the_pointer_is_at(viewer: Viewer, store: Shop) -> None:
    viewer.go("#/cluster")
    # Before the node has answered, the ring is there without partitions to point at.
    ring = viewer.page.get_by_role("img", name=re.compile("Hash ring: .* partitions"))
    lonely = farthest_from_others(store.rest.get("ring")["partitions"])
    box = ring.bounding_box()
    assert box is not None
    # The place at this share of the circle, clockwise from the top.
    angle = f"{lonely['position']} * 2 * Math.PI"
    x, y = viewer.script(f"[Math.sin({angle}), -Math.cos({angle})]")
    radius = min(box["width"], box["height"]) * 0.4
    ring.hover(position={"x": box["width"] / 2 + x * radius, "y": box["height"] / 2 + y * radius})
    name = f"{lonely['topic']}/{lonely['partition']}"
    expect(viewer.page.get_by_text(re.compile(f"^{name}: led by {lonely['leader']} for another"))).to_be_visible()
    viewer.page.mouse.move(0, 0)
    viewer.sees("inside, a tick for each partition in the colour of its leader")


def farthest_from_others(partitions: list[dict[str, Any]]) -> dict[str, Any]:
    """Whose tick nobody confuses with the next one."""

    def distance(one: dict[str, Any]) -> float:
        apart = [abs(one["position"] - other["position"]) for other in partitions if other is not one]
        return min(min(each, 1 - each) for each in apart)

    return max(partitions, key=distance)


def test_an_agent_that_fails_is_seen_to_fail_and_its_partitions_to_move(browser: Browser, cluster: Cluster) -> None:
    asked, killed = cluster.agents["a1"], cluster.agents["a2"]
    lost = len(cluster.led_by(killed, ORDERS))
    assert lost > 0, "the ring gave it nothing to lose"
    with viewing(browser, asked.http) as viewer:
        viewer.go("#/cluster")
        expect(viewer.page.get_by_role("img", name=re.compile("3 of 3 agents live"))).to_be_visible()
        killed.kill9()

        events = viewer.page.get_by_role("list", name="Events")
        expect(events.get_by_text(re.compile(r"agent a2: (live|no answer) → silent")).first).to_be_visible()
        expect(events.get_by_text(re.compile(rf"{ORDERS}/[0-9]+.*: a2 → a[13]")).first).to_be_visible()
        expect(viewer.row("agents", "a2")).to_contain_text("silent")
        expect(viewer.page.locator(".page-head").get_by_text("degraded", exact=True)).to_be_visible()
        ring = f"2 of 3 agents live, {PARTITIONS} partitions"
        expect(viewer.page.get_by_role("img", name=f"Hash ring: {ring}", exact=True)).to_be_visible()
        expect(viewer.table("leases").locator("tbody tr").filter(has_text="a2")).to_have_count(0)

        viewer.go("#/")
        alert = viewer.page.get_by_role("region", name="Alerts").locator(".alert").filter(has_text="agents_silent")
        expect(alert).to_contain_text("warning: 1 of 3 agents sent no heartbeat for too long: a2.")
        expect(alert).to_contain_text("Look whether the process runs")

        viewer.go("#/cluster")
        fell_silent = events.get_by_role("listitem").filter(has_text="→ silent").first.element_handle()
        killed.start()
        expect(events.get_by_text("agent a2 was started again").first).to_be_visible()
        assert fell_silent.evaluate("(told) => told.isConnected"), "what was told is put in, and read out, again"
        texts = events.get_by_role("listitem").all_inner_texts()
        of_the_agent = [text for text in texts if re.search(r"agent a2(:| was) ", text)]
        assert any("was started again" in text for text in of_the_agent), texts
        assert "a2: live → " in of_the_agent[-1], "the oldest comes last"
        expect(viewer.page.get_by_role("img", name=re.compile("3 of 3 agents live"))).to_be_visible()


def test_an_order_to_drain_is_kept_for_an_agent_that_does_not_answer(browser: Browser, patient: Cluster) -> None:
    mute = patient.agents["a2"]
    led = len(patient.led_by(mute, ORDERS))
    assert led > 1, "the ring gave it too little to lead"
    with viewing(browser, patient.agents["a1"].http) as viewer:
        mute.pause()
        viewer.go("#/cluster?agent=a2")
        chosen = viewer.page.get_by_role("region", name="Chosen")
        expect(chosen).to_contain_text("Stateno answer")
        viewer.button("Drain", within=chosen).click()
        expect(viewer.dialog).to_contain_text(
            f"a2 does not answer. The order is kept for it: it gives away the {led} partitions that it leads when it "
            "goes on, and nothing until then."
        )
        viewer.button("Drain", within=viewer.dialog).click()
        viewer.sees("a2 is to drain: it gives away what it leads when it answers again")
        expect(viewer.row("agents", "a2")).to_contain_text("draining, no answer")
        expect(chosen).to_contain_text("Statedraining, no answer")
        expect(viewer.button("Drain", within=chosen)).to_have_count(0)
        assert len(patient.led_by(mute, ORDERS)) == led

        mute.resume()
        expect(viewer.row("agents", "a2").get_by_text("draining", exact=True)).to_be_visible()
        expect(chosen).to_contain_text("Leads0 partitions")
        assert patient.led_by(mute, ORDERS) == []
