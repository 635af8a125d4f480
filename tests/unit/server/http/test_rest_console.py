"""What the console asks for: the overview, the ring, the WAL, and segments opened to their blocks."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from node.wait import eventually
from rest_parts.caller import RestCaller
from rest_parts.sending import send
from streamhouse.core.placement.ring import VNODES_PER_AGENT
from streamhouse.format.segment import BLOCK_HEADER_BYTES
from streamhouse.metadata.cluster import AgentInfo
from streamhouse.testing import Broker


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """For tests that count what it does, or do to it what others would notice."""
    with Broker(http=True, default_partitions=1, group_initial_rebalance_delay=0) as broker:
        yield broker


@pytest.fixture
def durable_broker() -> Iterator[Broker]:
    with Broker(http=True, durable=True) as broker:
        yield broker


# --- overview ---


def test_the_overview_counts_what_goes_in_and_out_of_every_listener(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    own_broker.create_topic("orders", 2)
    before = rest.get("overview")["node"]
    assert (before["records_in"], before["records_out"], before["produce_p99_ms"]) == (0, 0, None)
    assert (before["partitions_led"], before["agent_id"]) == (2, own_broker.node.broker.identity.agent_id)

    send(own_broker, "orders", partition=0, count=30)
    rest.post("topics/orders/records", {"records": [{"value": "by hand", "partition": 1}]})
    rest.get("topics/orders/partitions/0/records?offset=20")

    after = rest.get("overview")["node"]
    assert (after["records_in"], after["records_out"]) == (31, 10)
    assert after["bytes_in"] > 31
    assert after["bytes_out"] > 10
    assert 0 < after["produce_p50_ms"] <= after["produce_p99_ms"]
    assert 0 < after["buffered_bytes"] < after["buffer_limit_bytes"]


def test_the_overview_counts_what_kafka_clients_fetch(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    own_broker.create_topic("orders", 1)
    send(own_broker, "orders", partition=0, count=12)
    # A member that REST keeps is a client of the Kafka port.
    member = rest.post("groups/readers/members", {"topics": ["orders"], "reset": "earliest"}, status=201)
    polled = rest.post(f"groups/readers/members/{member['member_id']}/poll", {"max_wait_ms": 30_000})
    assert len(polled["records"]) == 12

    assert rest.get("overview")["node"]["records_out"] == 12


def test_the_overview_sums_the_cluster_up(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    own_broker.create_topic("orders", 2)
    own_broker.create_topic("payments", 1)
    send(own_broker, "orders", partition=1, count=20)
    own_broker.flush()
    member = rest.post("groups/billing/members", {"topics": ["orders"], "reset": "earliest"}, status=201)
    path = f"groups/billing/members/{member['member_id']}"
    offsets = [{"topic": "orders", "partition": 1, "offset": 14}, {"topic": "orders", "partition": 0, "offset": 0}]
    rest.post(f"{path}/commit", {"offsets": offsets}, status=204)
    send(own_broker, "payments", partition=0, count=5)

    overview = rest.get("overview")

    cluster = overview["cluster"]
    assert (cluster["status"], cluster["live_agents"], cluster["agents"]) == ("ok", 1, 1)
    assert (cluster["topics"], cluster["partitions"], cluster["partitions_without_leader"]) == (2, 3, 0)
    # Those of payments are in no segment yet, and count all the same.
    assert (cluster["records_written"], cluster["records_kept"]) == (25, 25)
    (segment,) = rest.get("topics/orders/partitions/1/segments")["segments"]
    assert (cluster["stored_segments"], cluster["stored_bytes"]) == (1, segment["size_bytes"])
    assert (cluster["groups"], cluster["total_lag"]) == (1, 6)
    assert overview["alerts"] == []
    assert overview["at_ms"] > 0


def test_what_is_stored_is_shown_soon_after_it_changed(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    own_broker.create_topic("orders", 1)
    assert rest.get("overview")["cluster"]["stored_segments"] == 0
    send(own_broker, "orders", partition=0, count=1)
    own_broker.flush()

    own_broker.faults.pass_time(6_000)

    assert rest.get("overview")["cluster"]["stored_segments"] == 1


def test_partitions_that_nobody_can_lead_are_an_alert_that_says_what_to_do(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    rest.post("topics", {"name": "lost", "config": {"streamhouse.agent.group": "gone"}}, status=201)

    overview = eventually(
        lambda: (found := rest.get("overview"))["alerts"] and found, "an alert about partitions without leaders"
    )

    (alert,) = overview["alerts"]
    assert (alert["severity"], alert["code"]) == ("critical", "partitions_without_leader")
    assert "lost/0" in alert["text"]
    assert "agent group" in alert["what_to_do"]
    assert (overview["cluster"]["status"], overview["cluster"]["partitions_without_leader"]) == ("degraded", 1)


def test_producers_that_have_no_answer_yet_count_in_the_latency(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    own_broker.create_topic("safe", 1, {"streamhouse.durability": "object"})
    own_broker.faults.fail_puts(times=None)
    with ThreadPoolExecutor(1) as thread:
        sending = thread.submit(send, own_broker, "safe", partition=0, count=3)
        try:
            eventually(lambda: rest.get("wal")["object"]["in_flight"], "records on their way")
            before = rest.get("overview")
            assert [alert["code"] for alert in before["alerts"]] == []
            own_broker.faults.pass_time(3_000)
            overview = rest.get("overview")
        finally:
            own_broker.faults.heal()
            sending.result()
    assert overview["node"]["produce_p99_ms"] >= 3_000
    assert overview["cluster"]["status"] == "degraded"
    assert "produce_slow" in [alert["code"] for alert in overview["alerts"]]


def test_a_segment_that_does_not_get_into_the_store_is_told_of(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    own_broker.create_topic("orders", 1)
    own_broker.faults.fail_puts(times=None)
    send(own_broker, "orders", partition=0, count=1)
    with ThreadPoolExecutor(1) as thread:
        flushing = thread.submit(own_broker.flush)
        try:
            eventually(lambda: own_broker.node.engine.uploader.keys_under_way, "an upload")
            own_broker.faults.pass_time(20_001)
            codes = [alert["code"] for alert in rest.get("overview")["alerts"]]
        finally:
            own_broker.faults.heal()
            flushing.result()
    assert "uploads_stuck" in codes
    eventually(lambda: rest.get("overview")["alerts"] == [], "all to be well")


# --- ring ---


def test_a_lone_agent_owns_the_whole_ring(broker: Broker, rest: RestCaller) -> None:
    topic = f"ringed-{uuid4().hex[:8]}"
    broker.create_topic(topic, 12)

    ring = eventually(
        lambda: (found := rest.get(f"ring?topic={topic}"))["partitions"] and found, "the new topic on the ring"
    )

    (agent,) = ring["agents"]
    assert (agent["agent_id"], agent["state"], agent["share"]) == (broker.node.broker.identity.agent_id, "live", 1.0)
    assert len(agent["positions"]) == VNODES_PER_AGENT
    assert agent["positions"] == sorted(agent["positions"])
    assert [each["partition"] for each in ring["partitions"]] == list(range(12))
    for each in ring["partitions"]:
        assert (each["topic"], each["owner"], each["leader"]) == (topic, agent["agent_id"], agent["agent_id"])
        assert 0 <= each["position"] < 1
        assert each["lease_left_ms"] > 0
    assert len({each["position"] for each in ring["partitions"]}) == 12


def test_the_ring_comes_in_pages(broker: Broker, rest: RestCaller) -> None:
    topic = f"paged-{uuid4().hex[:8]}"
    broker.create_topic(topic, 12)
    eventually(lambda: len(rest.get(f"ring?topic={topic}")["partitions"]) == 12, "the new topic on the ring")

    first = rest.get(f"ring?topic={topic}&limit=9")
    following = rest.get(f"ring?topic={topic}&limit=9&after={first['next']}")

    assert first["next"] == f"{topic}/8"
    assert [each["partition"] for each in following["partitions"]] == [9, 10, 11]
    assert following["next"] is None
    rest.refused(400, "invalid-input", "GET", "ring?limit=2001")


@pytest.fixture
def stranger(own_broker: Broker) -> Iterator[str]:
    """An agent that beats and does nothing; it is gone before the node drains, which would wait for it."""
    info = AgentInfo(agent_id="stranger", address="", kafka_address="127.0.0.1:1", zone="", agent_group="default")
    own_broker._run(own_broker._metadata.register_agent(info, 0))
    yield info.agent_id
    own_broker._run(own_broker._metadata.deregister_agent(info.agent_id))


@pytest.mark.usefixtures("stranger")
def test_every_agent_owns_as_many_partitions_as_the_others(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    own_broker.create_topic("orders", 40)

    ring = eventually(
        lambda: (found := rest.get("ring")) and [agent["owns"] for agent in found["agents"]] == [20, 20] and found,
        "two agents that own as much as each other",
    )

    assert sum(agent["share"] for agent in ring["agents"]) == pytest.approx(1)
    owners = [each["owner"] for each in ring["partitions"]]
    assert {agent["agent_id"]: agent["owns"] for agent in ring["agents"]} == Counter(owners)


def test_an_agent_that_drains_has_no_place_on_the_ring(own_broker: Broker, stranger: str) -> None:
    rest = RestCaller(own_broker.endpoint)
    own_broker._run(own_broker._metadata.drain_agent(stranger))

    def drained() -> Any:
        agents = {agent["agent_id"]: agent for agent in rest.get("ring")["agents"]}
        return agents.get(stranger, {}).get("state") == "draining" and agents

    agents = eventually(drained, "an agent that drains")

    assert (agents[stranger]["positions"], agents[stranger]["share"]) == ([], 0)


# --- WAL ---


def test_the_wal_says_what_it_is_needed_for(durable_broker: Broker) -> None:
    rest = RestCaller(durable_broker.endpoint)
    durable_broker.create_topic("orders", 2)
    send(durable_broker, "orders", partition=0, count=10)
    send(durable_broker, "orders", partition=1, count=4)

    wal = rest.get("wal")

    (file,) = wal["local"]["files"]
    assert (file["name"], file["is_written_now"]) == ("00000000000000000001.wal", True)
    assert file["partitions_needing_it"] == 2
    assert wal["local"]["size_bytes"] == file["size_bytes"] > 0
    # Everything was acknowledged.
    assert (wal["local"]["unsynced_batches"], wal["local"]["unsynced_bytes"], wal["local"]["problem"]) == (0, 0, None)
    assert wal["uncovered_records"] == 14
    assert wal["uncovered_bytes"] > 0
    durable_broker.flush()
    after = rest.get("wal")
    assert (after["uncovered_records"], after["uncovered_bytes"]) == (0, 0)
    assert [each["partitions_needing_it"] for each in after["local"]["files"]] == [0]


def test_a_node_in_memory_has_no_files(rest: RestCaller) -> None:
    assert rest.get("wal")["local"] is None


def test_wal_objects_on_their_way_are_shown(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    own_broker.create_topic("safe", 1, {"streamhouse.durability": "object"})
    own_broker.faults.fail_puts(times=None)

    async def send_and_look() -> Any:
        sending = asyncio.create_task(asyncio.to_thread(send, own_broker, "safe", partition=0, count=3))
        try:
            return await asyncio.to_thread(
                eventually, lambda: (found := rest.get("wal")["object"])["in_flight"] and found, "an object in flight"
            )
        finally:
            own_broker.faults.heal()
            await sending

    (sealed, *_) = asyncio.run(send_and_look())["in_flight"]

    assert sealed["size_bytes"] > 0
    assert (sealed["partitions"], sealed["is_stored"]) == (1, False)
    eventually(lambda: rest.get("wal")["object"]["in_flight"] == [], "no object in flight")


# --- segments ---


@pytest.fixture
def segmented(broker: Broker, rest: RestCaller) -> tuple[str, Any]:
    """A topic with one segment of several blocks, some of which compress, and what the list says of it."""
    topic = f"blocks-{uuid4().hex[:8]}"
    # Room for all of it: else a segment is made before the flush, if the machine is slow enough.
    broker.create_topic(topic, 1, {"segment.bytes": str(16 * 2**20)})
    for number in range(6):
        value = os.urandom(150_000).hex() if number % 2 else "a" * 300_000
        rest.post(f"topics/{topic}/records", {"records": [{"value": value, "partition": 0}]})
    broker.flush()
    (segment,) = rest.get(f"topics/{topic}/partitions/0/segments")["segments"]
    return topic, segment


def test_a_segment_is_opened_to_its_blocks(rest: RestCaller, segmented: tuple[str, Any]) -> None:
    topic, listed = segmented

    opened = rest.get(f"topics/{topic}/partitions/0/segments/0")

    assert (opened["topic"], opened["partition"], opened["segment"]) == (topic, 0, listed)
    blocks = opened["blocks"]
    assert opened["block_count"] == len(blocks) == 6
    assert [(each["block"], each["first_offset"], each["end_offset"]) for each in blocks] == [
        (number, number, number + 1) for number in range(6)
    ]
    assert sum(each["record_count"] for each in blocks) == listed["record_count"]
    ends = [each["position"] + each["size_bytes"] for each in blocks]
    assert [each["position"] for each in blocks[1:]] == ends[:-1]
    assert opened["index_position"] == ends[-1] < listed["size_bytes"]
    assert [each["codec"] for each in blocks] == ["lz4", "none"] * 3
    assert all(each["raw_bytes"] > 300_000 for each in blocks)
    assert all(each["size_bytes"] < 10_000 for each in blocks[::2])
    assert max(each["max_timestamp_ms"] for each in blocks) == listed["max_timestamp_ms"]
    assert all(each["problem"] is None for each in blocks)
    assert opened["next"] is None


def test_blocks_come_in_pages(rest: RestCaller, segmented: tuple[str, Any]) -> None:
    topic, _ = segmented
    path = f"topics/{topic}/partitions/0/segments/0"

    first = rest.get(f"{path}?limit=4")
    following = rest.get(f"{path}?limit=4&after={first['next']}")

    assert ([each["block"] for each in first["blocks"]], first["next"]) == ([0, 1, 2, 3], 3)
    assert ([each["block"] for each in following["blocks"]], following["next"]) == ([4, 5], None)
    assert rest.get(f"{path}?after=100")["blocks"] == []


def test_a_block_that_is_damaged_does_not_hide_the_others(
    broker: Broker, rest: RestCaller, segmented: tuple[str, Any]
) -> None:
    topic, listed = segmented
    damage_header(broker, listed["object_key"], rest.get(f"topics/{topic}/partitions/0/segments/0")["blocks"][2])

    blocks = rest.get(f"topics/{topic}/partitions/0/segments/0")["blocks"]

    assert [each["block"] for each in blocks if each["problem"] is not None] == [2]
    assert (blocks[2]["codec"], blocks[2]["raw_bytes"]) == (None, None)
    assert "block 2" in blocks[2]["problem"]
    assert blocks[4]["codec"] == "lz4"


def damage_header(broker: Broker, key: str, block: Any) -> None:
    async def work() -> None:
        objects = broker._objects
        data = bytearray(await objects.get(key))
        data[block["position"] : block["position"] + BLOCK_HEADER_BYTES] = bytes(BLOCK_HEADER_BYTES)
        await objects.delete([key])
        await objects.create(key, [bytes(data)])

    broker._run(work())


def test_what_is_no_segment_is_refused(rest: RestCaller, segmented: tuple[str, Any]) -> None:
    topic, _ = segmented
    problem = rest.refused(404, "not-found", "GET", f"topics/{topic}/partitions/0/segments/1")
    assert "offset 1" in problem["detail"]
    rest.refused(404, "not-found", "GET", f"topics/{topic}/partitions/1/segments/0")
    rest.refused(404, "not-found", "GET", "topics/nowhere/partitions/0/segments/0")
    rest.refused(404, "not-found", "GET", f"topics/{topic}/partitions/0/segments/{2**63 - 1}")
    for wrong in ("-1", "x", str(2**63)):
        rest.refused(400, "invalid-input", "GET", f"topics/{topic}/partitions/0/segments/{wrong}")
    rest.refused(400, "invalid-input", "GET", f"topics/{topic}/partitions/0/segments/0?limit=0")


def test_partitions_say_how_much_of_them_is_stored(broker: Broker, rest: RestCaller) -> None:
    topic = f"stored-{uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    for _ in range(2):
        send(broker, topic, partition=1, count=3)
        broker.flush()

    empty, filled = rest.get(f"topics/{topic}/partitions")["partitions"]

    segments = rest.get(f"topics/{topic}/partitions/1/segments")["segments"]
    assert (empty["segment_count"], empty["stored_bytes"]) == (0, 0)
    assert filled["segment_count"] == len(segments) == 2
    assert filled["stored_bytes"] == sum(segment["size_bytes"] for segment in segments)


def test_an_offset_inside_a_segment_does_not_name_the_next_one(broker: Broker, rest: RestCaller) -> None:
    topic = f"two-{uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    for _ in range(2):
        send(broker, topic, partition=0, count=3)
        broker.flush()

    path = f"topics/{topic}/partitions/0/segments"

    assert [rest.get(f"{path}/{offset}")["segment"]["base_offset"] for offset in (0, 3)] == [0, 3]
    rest.refused(404, "not-found", "GET", f"{path}/2")
