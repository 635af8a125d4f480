"""What the pages say while agents are killed, paused and cut off, hand-overs fail and the database is away, compared
with what is so; and in what time: as soon as the page has looked again, and not when leases have run out."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

import pytest
from playwright.sync_api import Browser, Locator, expect

from console_parts.browser import HUNG_MS
from console_parts.shop import ORDERS
from console_parts.viewer import Viewer, viewing
from node.cluster import TIMINGS, Cluster, Cut, Lease
from node.network import Network, Way, network
from node.process import Node
from node.wait import eventually
from rest_parts.caller import RestCaller
from services.postgres import PostgresServer
from services.seaweed import SeaweedServer

PARTITIONS = 12
RECORDS = 240
FOR_EVER = (
    "--lease-ttl", "10m", "--lease-renewal", "1s", "--heartbeat", "1s", "--liveness", "10m", "--rebalance", "1s",
)  # fmt: skip
"""So long that nobody would hear of a death by a heartbeat or a lease while the test goes on."""


@contextmanager
def running(
    postgres: PostgresServer,
    s3: SeaweedServer,
    timings: tuple[str, ...],
    *,
    durability: str = "wal",
    net: Network | None = None,
) -> Iterator[Cluster]:
    """Three agents that lead the partitions of one topic, which has records in all of them."""
    with ExitStack() as ending:
        directory = ending.enter_context(tempfile.TemporaryDirectory(prefix="console-truth-"))
        dsn = postgres.create_database()
        ending.callback(postgres.drop_database, dsn)
        bucket = s3.create_bucket()
        ending.callback(s3.delete_bucket, bucket)
        cluster = ending.enter_context(
            Cluster(
                3,
                Path(directory),
                dsn,
                bucket,
                "--segment-age",
                "10m",
                durability=durability,
                timings=timings,
                network=net,
            )
        )
        rest = RestCaller(cluster.agents["a1"].http)
        rest.post("topics", {"name": ORDERS, "partition_count": PARTITIONS}, status=201)
        cluster.wait_led(ORDERS)
        records = [{"value": number, "partition": number % PARTITIONS} for number in range(RECORDS)]
        rest.post(f"topics/{ORDERS}/records", {"records": records})
        yield cluster


@pytest.fixture(scope="module")
def patient(postgres_server: PostgresServer, s3_server: SeaweedServer) -> Iterator[Cluster]:
    """Its leases and heartbeats tell of nothing. Each test leaves it whole."""
    with running(postgres_server, s3_server, FOR_EVER) as cluster:
        yield cluster


@pytest.fixture
def brisk(postgres_server: PostgresServer, s3_server: SeaweedServer) -> Iterator[Cluster]:
    """Its leases run out within seconds."""
    with running(postgres_server, s3_server, TIMINGS) as cluster:
        yield cluster


@contextmanager
def watching(browser: Browser, cluster: Cluster) -> Iterator[Viewer]:
    """Somebody who sees at the first agent that all is well, before something happens to another. A test that fails
    leaves the cluster whole, too."""
    with viewing(browser, cluster.agents["a1"].http) as viewer:
        viewer.go("#/")
        all_is_well(viewer)
        try:
            yield viewer
        except BaseException:
            cluster.heal()
            raise


def all_is_well(viewer: Viewer) -> None:
    # A produce that took long on a busy machine is told of for a minute.
    expect(alerts(viewer)).to_have_text("● No alerts", use_inner_text=True, timeout=2 * HUNG_MS)
    expect(viewer.figure("Agents")).to_contain_text(re.compile(r"3 of 3\s*cluster ok"))
    expect(viewer.page.locator("#old")).to_be_hidden()


def nothing_is_said_to_be_well(viewer: Viewer) -> None:
    said = viewer.page.locator("body").inner_text()
    assert "No alerts" not in said
    assert "cluster ok" not in said


def alerts(viewer: Viewer) -> Locator:
    return viewer.page.get_by_role("region", name="Alerts")


def alert(viewer: Viewer, code: str) -> Locator:
    return alerts(viewer).locator(".alert").filter(has=viewer.page.get_by_text(code, exact=True))


def stored(viewer: Viewer) -> int:
    found = re.search(r"([0-9,]+) in all", viewer.figure("Records in").inner_text())
    assert found is not None
    return int(found[1].replace(",", ""))


@pytest.mark.parametrize("how", ["killed", "paused"])
def test_an_agent_that_does_not_answer_is_told_of_while_its_heartbeat_is_fresh(
    browser: Browser, patient: Cluster, how: str
) -> None:
    victim = patient.agents["a2"]
    leases_of(patient, victim.name)
    with watching(browser, patient) as viewer:
        eventually(lambda: stored(viewer) == RECORDS, "every record to be counted")
        if how == "killed":
            victim.kill9()
        else:
            victim.pause()

        told = alert(viewer, "agents_not_answering")
        expect(told).to_contain_text("warning: 1 of 3 agents does not answer this node: a2.")
        expect(viewer.figure("Agents")).to_contain_text(re.compile(r"2 of 3\s*cluster degraded"))
        expect(viewer.figure("Records in")).to_contain_text("without a2")
        expect(viewer.page.get_by_text("what a2 does is not known")).to_be_visible()
        assert stored(viewer) == RECORDS, "what is stored has shrunk with the agent"
        nothing_is_said_to_be_well(viewer)
        # And it is so: nobody else would have told of it.
        states = {
            each["agent_id"]: each["state"] for each in RestCaller(patient.agents["a1"].http).get("agents")["agents"]
        }
        assert states == {"a1": "live", "a2": "live", "a3": "live"}

        told.get_by_role("link", name="a2").click()
        expect(viewer.row("agents", "a2")).to_contain_text("no answer")
        expect(viewer.row("agents", "a3")).to_contain_text("live")
        expect(viewer.page.get_by_role("img", name=re.compile("Hash ring: 2 of 3 agents live"))).to_be_visible()
        expect(viewer.page.locator(".page-head").get_by_text("degraded", exact=True)).to_be_visible()
        chosen = viewer.page.get_by_role("region", name="Chosen")
        expect(chosen).to_contain_text("Agent a2")
        expect(chosen).to_contain_text("Does not answer")

        viewer.go("#/storage")
        expect(viewer.row("write-ahead logs", "a2")).to_contain_text("no answer since")
        expect(viewer.row("write-ahead logs", "a2")).to_contain_text("not known")
        expect(viewer.row("write-ahead logs", "a3")).to_contain_text("answers")

        # What was acknowledged is on the disk of the one that is away: no page has less of it than another.
        viewer.go("#/topics")
        expect(viewer.row("Topics", ORDERS)).to_contain_text(str(RECORDS))
        viewer.go(f"#/topics/{ORDERS}")
        facts = viewer.page.locator("dl.facts")
        expect(facts).to_contain_text(re.compile(rf"Records\s*{RECORDS}\s*Without a leader"))

        viewer.go("#/")
        if how == "killed":
            victim.start()
        else:
            victim.resume()
        all_is_well(viewer)
        eventually(lambda: stored(viewer) == RECORDS, "every record to be counted")


def test_groups_are_there_while_an_agent_is_away_that_coordinates_some_of_them(
    browser: Browser, patient: Cluster
) -> None:
    victim, rest = patient.agents["a2"], RestCaller(patient.agents["a1"].http)
    names = [f"reader-{number:02}" for number in range(24)]
    for name in names:
        rest.post(f"groups/{name}/reset", {"to": "earliest", "topics": [ORDERS]})

    def of_agents() -> dict[str, list[str]]:
        """Names by coordinator, as soon as a1 and a2 have some."""
        found: dict[str, list[str]] = {}
        for group in rest.get("groups")["groups"]:
            if group["state"] != "Empty":  # its coordinator was too busy to answer
                return {}
            found.setdefault(group["coordinator"], []).append(group["group_id"])
        return found if {"a1", "a2"} <= found.keys() else {}

    coordinated = eventually(of_agents, "groups of each agent", pause=0.2)
    there, away = coordinated["a1"][0], coordinated["a2"][0]
    lag = rest.get(f"groups/{there}")["lag"]
    assert lag >= RECORDS
    with watching(browser, patient) as viewer:
        viewer.expects_refusal(503)
        victim.kill9()
        viewer.go("#/groups")
        expect(viewer.row("consumer groups", away)).to_contain_text("unknown")
        expect(viewer.row("consumer groups", there)).to_contain_text("Empty")
        assert {each["group_id"] for each in rest.get("groups")["groups"]} >= set(names)
        # A third of its partitions ends where nobody can say now, but where it was known that they do.
        assert rest.get(f"groups/{there}")["lag"] == lag

        viewer.go(f"#/groups/{away}")
        expect(viewer.alert).to_contain_text(f"agent a2 coordinates group '{away}', and does not answer")
        for method, path in (("DELETE", away), ("POST", f"{away}/reset")):
            refused = rest.refused(
                503, "unavailable", method, f"groups/{path}", {"to": "latest"} if path != away else None
            )
            assert "agent a2 coordinates" in refused["detail"]
        refused = rest.refused(503, "unavailable", "POST", f"groups/{there}/reset", {"to": "latest"})
        assert refused["detail"].endswith("these agents do not answer: a2")
        viewer.go("#/")
        victim.start()
        all_is_well(viewer)


def group_of(rest: RestCaller, agent_id: str) -> str:
    """A group at the end of the orders that this agent coordinates."""
    names = [f"at-end-{number:02}" for number in range(24)]
    for name in names:
        rest.post(f"groups/{name}/reset", {"to": "latest", "topics": [ORDERS]})

    def coordinated() -> list[str]:
        groups = {each["group_id"]: each["coordinator"] for each in rest.get("groups")["groups"]}
        return [name for name in names if groups[name] == agent_id]

    return eventually(coordinated, f"a group of {agent_id}", pause=0.2)[0]


def test_a_node_that_was_started_again_says_without_whom_its_totals_are(browser: Browser, patient: Cluster) -> None:
    viewed, victim = patient.agents["a1"], patient.agents["a2"]
    group = group_of(RestCaller(viewed.http), "a3")
    before = RestCaller(viewed.http).get("overview")["cluster"]
    assert before["without"] == []
    victim.kill9()
    viewed.kill9()
    viewed.start()
    try:
        rest = RestCaller(viewed.http)
        with viewing(browser, viewed.http) as viewer:
            viewer.go("#/")
            for figure in ("Records in", "Topics", "Lag of all groups"):
                expect(viewer.figure(figure)).to_contain_text(re.compile(r"(in all|records?|groups?) · without a2$"))
            assert rest.get("overview")["cluster"]["records_written"] < before["records_written"]
            assert rest.get("topic-activity")["without"] == ["a2"]
            partitions = rest.get(f"topics/{ORDERS}/partitions")["partitions"]
            led = [each["partition"] for each in partitions if each["leader"] == "a2"]
            assert led
            assert [each["partition"] for each in partitions if each["unheard"] == "a2"] == led

            viewer.go("#/topics")
            expect(viewer.page.get_by_text("Records are without those of a2")).to_be_visible()
            viewer.go(f"#/topics/{ORDERS}")
            expect(viewer.page.locator("dl.facts")).to_contain_text(re.compile(r"Records\s*[0-9]+ · without a2"))
            ends = viewer.table("Partitions").locator("tbody tr[data-index] td:nth-child(5)")
            for number in range(PARTITIONS):
                expect(ends.nth(number)).to_have_text("\u2013" if number in led else re.compile("^[0-9]+$"))
            viewer.go(f"#/topics/{ORDERS}?tab=Consumers")
            read = viewer.row("Consumers", group).get_by_role("gridcell")
            expect(read.nth(1)).to_contain_text("Empty")
            expect(read.nth(2)).to_have_text("\u2013")
            expect(read.nth(3)).to_have_text("\u2013")
            viewer.go(f"#/groups/{group}")
            expect(viewer.figure("Lag")).to_contain_text(f"\u2013not known at {len(led)} partitions: ")
            assert rest.get(f"groups/{group}")["lag"] is None
            viewer.go("#/")

            victim.start()
            for figure in ("Records in", "Topics", "Lag of all groups"):
                expect(viewer.figure(figure)).not_to_contain_text("without")
            assert stored(viewer) == before["records_written"]
            all_is_well(viewer)
    except BaseException:
        patient.heal()
        raise


def test_a_database_that_is_away_makes_what_is_shown_old_and_nothing_well(browser: Browser, patient: Cluster) -> None:
    asked = patient.agents["a1"]
    with watching(browser, patient) as viewer:
        viewer.expects_refusal(503)
        for how in (Cut.SILENT, Cut.ENDED):
            asked.cut(Way.DATABASE, how)
            told = alert(viewer, "metadata_store_away")
            expect(told).to_contain_text("critical: The metadata store does not answer this node for")
            expect(viewer.page.locator("#old")).to_have_text(
                re.compile(r"^What is shown is from \d\d:\d\d:\d\d UTC\S*, .* ago\.$")
            )
            expect(viewer.figure("Agents")).to_contain_text("not known", use_inner_text=True)
            nothing_is_said_to_be_well(viewer)
            # What it asks of the others itself is not old.
            expect(alert(viewer, "agents_not_answering")).to_have_count(0)

            viewer.go("#/cluster")
            expect(viewer.page.get_by_role("alert")).to_contain_text("Metadata unavailable")
            nothing_is_said_to_be_well(viewer)
            viewer.go("#/")
            expect(told).to_be_visible()
            asked.mend()
            all_is_well(viewer)


@pytest.mark.parametrize(
    ("address", "table"),
    [
        ("#/topics", "Topics"),
        (f"#/topics/{ORDERS}?tab=Consumers", "Consumers"),
        ("#/groups", "consumer groups"),
        ("#/groups/readers", "partitions"),
    ],
)
def test_a_database_that_is_away_makes_what_is_shown_of_topics_and_groups_old(
    browser: Browser, patient: Cluster, address: str, table: str
) -> None:
    asked = patient.agents["a1"]
    RestCaller(asked.http).post("groups/readers/reset", {"to": "latest", "topics": [ORDERS]})
    with watching(browser, patient) as viewer:
        viewer.expects_refusal(503)
        viewer.go(address)
        expect(viewer.table(table).locator("tbody tr[data-index]").first).to_be_visible()
        old = viewer.page.locator("#old")
        expect(old).to_be_hidden()
        well = viewer.page.get_by_text(re.compile("^(Empty|nothing is waiting)$"))
        if table != "Topics":
            expect(well.first).to_be_visible()
        asked.cut(Way.DATABASE, Cut.ENDED)
        expect(old).to_contain_text("What is shown is from")
        expect(well.filter(visible=True)).to_have_count(0)
        expect(viewer.page.get_by_text("agent a1 coordinates")).to_have_count(0)
        asked.mend()
        expect(old).to_be_hidden()


def test_an_agent_that_is_cut_off_from_the_database_answers_and_is_said_to_be_cut_off(
    browser: Browser, brisk: Cluster
) -> None:
    victim = brisk.agents["a2"]
    with watching(browser, brisk) as viewer:
        victim.cut(Way.DATABASE)
        expect(alert(viewer, "agents_without_metadata_store")).to_contain_text(
            "1 of 3 agents answer, but their heartbeats do not reach the metadata store: a2."
        )
        # Its disk may hold records, so nobody leads what it led.
        waiting = alert(viewer, "partitions_waiting_for_agent")
        expect(waiting).to_contain_text("can be led only by a2, whose disk may hold acknowledged records")
        command = waiting.locator("pre").first
        expect(command).to_have_text(
            re.compile(rf"^streamhouse partition elect {ORDERS} [0-9]+ --unclean --metadata postgresql://…$")
        )
        lost = {lease.partition for lease in brisk.leases(ORDERS) if not lease.is_live}
        assert int(command.inner_text().split()[4]) in lost
        nothing_is_said_to_be_well(viewer)

        alert(viewer, "agents_without_metadata_store").get_by_role("link", name="a2").click()
        expect(viewer.row("agents", "a2")).to_contain_text("cut off")
        viewer.go("#/")
        victim.mend()
        all_is_well(viewer)


# --- hand-overs, and what one does about them ---


def led_by(cluster: Cluster, name: str) -> str:
    """A partition of the orders that this agent leads."""
    return f"{ORDERS}/{leases_of(cluster, name)[0].partition}"


def leases_of(cluster: Cluster, name: str) -> list[Lease]:
    return eventually(lambda: cluster.led_by(cluster.agents[name], ORDERS), f"{name} to lead some of the orders")


def chosen(viewer: Viewer) -> Locator:
    return viewer.page.get_by_role("region", name="Chosen")


def test_hand_overs_that_fail_are_told_of_and_lead_to_where_they_are_called_off(
    browser: Browser, patient: Cluster
) -> None:
    target, rest = patient.agents["a2"], RestCaller(patient.agents["a1"].http)
    with watching(browser, patient) as viewer:
        name = led_by(patient, "a1")
        number = int(name.partition("/")[2])
        target.pause()
        rest.call("PUT", f"topics/{ORDERS}/partitions/{number}/pin", {"agent_id": "a2"})
        told = alerts(viewer).locator(".alert").filter(has_text=re.compile("hand_overs_(failing|stuck)"))
        expect(told).to_contain_text(re.compile(rf"{name} to a2 failed (once|[0-9] times in a row) of late"))
        assert rest.get("transfers?limit=1")["transfers"][0]["partition"] == number
        assert patient.lease(ORDERS, number).agent == "a1"
        nothing_is_said_to_be_well(viewer)

        told.get_by_role("link", name=name).click()
        expect(chosen(viewer)).to_contain_text(re.compile(r"Pinned to\s*a2"))
        viewer.button("Let the ring decide", within=chosen(viewer)).click()
        expect(viewer.dialog).to_contain_text("It is pinned to a2.")
        viewer.button("Let the ring decide", within=viewer.dialog).click()
        expect(viewer.button("Let the ring decide")).to_have_count(0)
        assert rest.get(f"ring?topic={ORDERS}")["partitions"][number]["pinned_to"] is None
        target.resume()
        viewer.go("#/")
        expect(alert(viewer, "hand_overs_failing").or_(alert(viewer, "hand_overs_stuck"))).to_have_count(0)
        all_is_well(viewer)


def test_a_partition_is_moved_and_an_agent_drained_once_somebody_has_said_so(browser: Browser, brisk: Cluster) -> None:
    with watching(browser, brisk) as viewer:
        name = led_by(brisk, "a1")
        number = int(name.partition("/")[2])
        viewer.go(f"#/cluster?partition={name}")
        move = viewer.button("Move", within=chosen(viewer))
        move.click()
        viewer.button("Cancel", within=viewer.dialog).click()
        expect(viewer.dialog).to_have_count(0)
        assert brisk.lease(ORDERS, number).agent == "a1", "nobody has said so"

        move.click()
        viewer.dialog.get_by_label("To the agent").select_option("a3")
        viewer.button("Move", within=viewer.dialog).click()
        expect(chosen(viewer)).to_contain_text(re.compile(r"Leader\s*a3"))
        expect(chosen(viewer)).to_contain_text(re.compile(r"Pinned to\s*a3"))
        assert brisk.lease(ORDERS, number).agent == "a3"

        viewer.table("agents").get_by_role("row").filter(has_text="a2").click()
        expect(chosen(viewer)).to_contain_text("Agent a2")
        viewer.button("Drain", within=chosen(viewer)).click()
        expect(viewer.dialog).to_contain_text("a2 hands over the")
        leases_of(brisk, "a2")
        viewer.button("Drain", within=viewer.dialog).click()
        expect(viewer.row("agents", "a2")).to_contain_text("draining")
        expect(chosen(viewer)).to_contain_text("Leads0 partitions")
        assert brisk.led_by(brisk.agents["a2"], ORDERS) == []


# --- producers that wait ---


def test_producers_that_waited_for_seconds_are_told_of(browser: Browser, patient: Cluster) -> None:
    slow, rest = patient.agents["a3"], RestCaller(patient.agents["a1"].http)
    with watching(browser, patient) as viewer:
        number = int(led_by(patient, "a3").partition("/")[2])
        slow.pause()
        begin = monotonic()
        with ThreadPoolExecutor(1) as thread:
            record = {"value": "late", "partition": number}
            producing = thread.submit(rest.call, "POST", f"topics/{ORDERS}/records", {"records": [record]})
            eventually(lambda: monotonic() - begin > 4, "a producer to have waited for four seconds")
            slow.resume()
            producing.result()
        expect(alert(viewer, "produce_slow")).to_contain_text("Producers have waited long in the last minute at a1")
        waited_ms = rest.get("overview")["node"]["produce_p99_ms"]
        assert waited_ms > 2_500
        nothing_is_said_to_be_well(viewer)


# --- cut off from the others, and from the object store ---


def test_an_agent_that_only_the_database_and_the_store_hear_of_does_not_answer(
    browser: Browser, postgres_server: PostgresServer, s3_server: SeaweedServer
) -> None:
    with (
        network() as net,
        running(postgres_server, s3_server, TIMINGS, durability="object", net=net) as cluster,
        watching(browser, cluster) as viewer,
    ):
        victim = cluster.agents["a2"]
        victim.cut(Way.PEERS, Cut.SILENT)
        expect(alert(viewer, "agents_not_answering")).to_contain_text("1 of 3 agents does not answer this node: a2.")
        cluster.wait_heartbeats(2)
        leases_of(cluster, victim.name)
        nothing_is_said_to_be_well(viewer)
        victim.mend()
        all_is_well(viewer)

        victim.cut(Way.STORE, Cut.SILENT)
        RestCaller(cluster.agents["a1"].http).call(
            "POST",
            f"topics/{ORDERS}/records",
            {"records": [{"value": 1, "partition": lease.partition} for lease in leases_of(cluster, victim.name)]},
        )
        expect(alert(viewer, "agents_without_object_store")).to_contain_text("not reach the object store: a2")
        assert cluster.store_access()["a2"] == "stalled"
        nothing_is_said_to_be_well(viewer)
        victim.mend()


# --- a server without an agent ---


def test_a_server_without_an_agent_shows_the_logs_of_the_agents_and_none_of_its_own(
    browser: Browser, patient: Cluster, tmp_path: Path
) -> None:
    with (
        Node(
            tmp_path / "server",
            *patient.storage.options,
            env={"DISABLE_EMBEDDED_AGENT": "1"},
        ) as server,
        viewing(browser, server.http) as viewer,
    ):
        viewer.go("#/storage")
        names = viewer.table("write-ahead logs").locator("tbody tr td:first-child")
        expect(names).to_have_text(["a1", "a2", "a3"])
        expect(viewer.heading("Write-ahead log of a1")).to_be_visible()
        viewer.table("write-ahead logs").get_by_role("row").filter(has_text="a3").click()
        expect(viewer.heading("Write-ahead log of a3")).to_be_visible()
        wal = RestCaller(patient.agents["a3"].http).get("wal")
        expect(viewer.figure("In no segment yet")).to_contain_text(str(wal["uncovered_records"]))
        assert "agent-memory" not in viewer.page.locator("body").inner_text()
        RestCaller(server.http).refused(404, "not-found", "GET", "wal")
