"""What Kafka clients are told of a cluster: leaders, racks, epochs, nearer readers, and whom to ask instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.protocol.consumer.offsets import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kafka.protocol.producer import ProduceResponse

from faults.cluster.values import NOT_LEADER, node_id_of, produce, read_from_leader
from faults.workload import create_topic
from node.cluster import Cluster
from node.process import Node
from node.raw import RawConnection, build_batch, produce_request, read_values
from node.wait import HUNG_SECONDS, eventually

FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
CURRENT_LEADER_VERSION = 10

pytestmark = pytest.mark.parametrize("durability", ["object"])


@pytest.fixture
def topic(cluster: Cluster) -> str:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    cluster.wait_led(topic)
    return topic


def test_metadata_names_leaders_and_racks_and_every_agent_says_the_same(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 12)
    # On a busy machine an agent may have lost what it led, and is about to be given it again.
    eventually(
        lambda: set(cluster.leaders(topic).values()) == set(cluster.agents),
        "every agent to lead some of twelve",
        pause=0.1,
    )
    cluster.wait_led(topic)
    racks = {agent.address: agent.zone for agent in cluster.agents.values()}
    epochs = {lease.partition: lease.epoch for lease in cluster.leases(topic)}
    for agent in cluster.agents.values():
        with RawConnection(agent.address) as raw:
            answer = raw.metadata(topic)
        assert {(broker.host, broker.port): broker.rack for broker in answer.brokers} == racks
        assert {at.partition_index: at.leader_epoch for at in answer.topics[0].partitions} == epochs
        nodes = {broker.node_id for broker in answer.brokers}
        assert all(at.leader_id in nodes for at in answer.topics[0].partitions)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    described = admin.describe_cluster().result(HUNG_SECONDS)
    assert {(node.host, node.port): node.rack for node in described.nodes} == racks


def test_a_produce_at_the_wrong_agent_is_refused_and_told_the_leader(cluster: Cluster, topic: str) -> None:
    leader = cluster.leader_of(topic, 0)
    expected = (node_id_of(cluster, leader), cluster.lease(topic, 0).epoch)
    for agent in cluster.others(leader):
        with RawConnection(agent.address) as raw:
            request = produce_request(topic, build_batch(b"lost"), version=CURRENT_LEADER_VERSION)
            answer = raw.call(request, ProduceResponse)
            refusal = answer.responses[0].partition_responses[0]
            assert refusal.error_code == NOT_LEADER
            assert (refusal.current_leader.leader_id, refusal.current_leader.leader_epoch) == expected
            endpoints = {node.node_id: (node.host, node.port) for node in answer.node_endpoints}
            assert endpoints[expected[0]] == leader.address
            assert raw.produce(topic, build_batch(b"lost")).error_code == NOT_LEADER
            fetched = raw.fetch(topic, 0)
            assert fetched.error_code == NOT_LEADER or fetched.records in (None, b"")
            if fetched.error_code == NOT_LEADER:
                assert (fetched.current_leader.leader_id, fetched.current_leader.leader_epoch) == expected
            assert raw.list_offset(topic, -1).error_code == NOT_LEADER
    assert produce(cluster, topic, b"first") == 0
    assert read_from_leader(cluster, topic) == {0: b"first"}


def test_epochs_tell_clients_where_each_leader_ended(cluster: Cluster, topic: str) -> None:
    first = cluster.leader_of(topic, 0)
    old_epoch = cluster.lease(topic, 0).epoch
    assert produce(cluster, topic, b"a", b"b", b"c") == 0
    first.kill9()
    assert produce(cluster, topic, b"d") == 3
    epoch = cluster.lease(topic, 0).epoch
    assert epoch > old_epoch
    with RawConnection(cluster.leader_of(topic, 0).address) as raw:
        ended = epoch_end(raw, topic, wanted=old_epoch, current=epoch)
        assert (ended.error_code, ended.leader_epoch, ended.end_offset) == (0, old_epoch, 3)
        ended = epoch_end(raw, topic, wanted=epoch, current=epoch)
        assert (ended.error_code, ended.leader_epoch, ended.end_offset) == (0, epoch, 4)
        assert epoch_end(raw, topic, wanted=old_epoch, current=old_epoch).error_code == FENCED_LEADER_EPOCH
        assert epoch_end(raw, topic, wanted=old_epoch, current=epoch + 1).error_code == UNKNOWN_LEADER_EPOCH
        assert raw.fetch(topic, 0, current_epoch=old_epoch).error_code == FENCED_LEADER_EPOCH
        assert raw.fetch(topic, 0, current_epoch=epoch + 1).error_code == UNKNOWN_LEADER_EPOCH
        whole = raw.fetch(topic, 0, current_epoch=epoch, last_fetched_epoch=old_epoch)
        assert (whole.error_code, whole.diverging_epoch) == (0, None)
        # A reader that was past the end of that epoch read something that never was.
        diverged = raw.fetch(topic, 4, current_epoch=epoch, last_fetched_epoch=old_epoch)
        assert (diverged.diverging_epoch.epoch, diverged.diverging_epoch.end_offset) == (old_epoch, 3)
    # In as many fetches as it takes: none crosses from segments into memory.
    assert read_from_leader(cluster, topic) == {0: b"a", 1: b"b", 2: b"c", 3: b"d"}


def epoch_end(raw: RawConnection, topic: str, *, wanted: int, current: int) -> Any:
    topics = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    at = topics.OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=wanted)
    request = OffsetForLeaderEpochRequest(version=4, replica_id=-1, topics=[topics(topic=topic, partitions=[at])])
    return raw.call(request, OffsetForLeaderEpochResponse).topics[0].partitions[0]


def sent_on(raw: RawConnection, topic: str, rack: str) -> int:
    """The node that a reader of that zone is told to read from; -1 if none."""
    answer = raw.fetch(topic, 0, rack=rack)
    assert answer.error_code == 0
    return int(answer.preferred_read_replica)


def test_a_consumer_reads_from_the_agent_of_its_zone(cluster: Cluster, topic: str) -> None:
    """KIP-392: the leader names the near one, and that one serves what is committed, never more."""
    leader = cluster.leader_of(topic, 0)
    near = cluster.others(leader)[0]
    values = [f"value {number}".encode() for number in range(20)]
    produce(cluster, topic, *values)
    eventually(lambda: segment_end(cluster, topic) == 20, "all records in segments")
    with RawConnection(leader.address) as raw:
        # The leader hears of its segment a moment after the database, and may have missed a heartbeat of the near one.
        eventually(lambda: sent_on(raw, topic, near.zone) == node_id_of(cluster, near), "readers to be sent on")
        assert raw.fetch(topic, 0, rack=leader.zone).preferred_read_replica == -1
        assert raw.fetch(topic, 0, rack="nowhere").preferred_read_replica == -1
        assert len(read_values(raw.fetch(topic, 0, rack="nowhere").records)) == 20

    def served() -> dict[int, bytes | None]:
        with RawConnection(near.address) as raw:
            answer = raw.fetch(topic, 0, rack=near.zone)
        assert answer.error_code == 0
        assert answer.high_watermark <= 20
        return read_values(answer.records)

    assert eventually(served, "records from the near agent") == dict(enumerate(values))
    assert consume(cluster, topic, near.zone, 20) == values
    more = [f"more {number}".encode() for number in range(20)]
    produce(cluster, topic, *more)
    assert consume(cluster, topic, near.zone, 40) == values + more


def segment_end(cluster: Cluster, topic: str) -> int:
    ((end,),) = cluster.storage.query(f"SELECT coalesce(max(end_offset), 0) FROM segments WHERE topic = '{topic}'")
    return int(end)


def consume(cluster: Cluster, topic: str, rack: str, count: int) -> list[bytes | None]:
    """With a real client that names its zone; it must get to the end of the log, whoever serves it."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "near",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "client.rack": rack,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes | None] = []

        def all_read() -> bool:
            for message in consumer.consume(count, timeout=0.05):
                assert message.error() is None, message.error()
                values.append(message.value())
            return len(values) >= count

        eventually(all_read, f"{count} records")
        return values
    finally:
        consumer.close()


def test_a_server_without_an_agent_leads_nothing_and_sends_clients_on(
    cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    storage = cluster.storage
    with Node(tmp_path / "server", *storage.options, env={"DISABLE_EMBEDDED_AGENT": "1"}) as server:
        assert cluster.leaders(topic, asked=server) == {0: cluster.leader_of(topic, 0).name}
        assert {row[0] for row in storage.query("SELECT agent_id FROM agents")} == set(cluster.agents)
        with RawConnection(server.address) as raw:
            assert raw.produce(topic, build_batch(b"x")).error_code == NOT_LEADER
        once = {"enable.idempotence": True, "log_level": 0}
        producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, **once})
        producer.produce(topic, b"by the server's word", partition=0)
        assert producer.flush(HUNG_SECONDS) == 0
        assert read_from_leader(cluster, topic) == {0: b"by the server's word"}
        # A topic made through it is led at once: agents are woken, not only by the clock.
        made = cluster.new_topic()
        create_topic(server.bootstrap, made, 3)
        cluster.wait_led(made)
        assert server.terminate() == 0


def test_the_queries_of_the_phase_4_document_work_as_printed(cluster: Cluster, topic: str) -> None:
    agents = cluster.storage.query("SELECT agent_id, address, availability_zone, last_heartbeat FROM agents")
    assert {(row[0], row[2]) for row in agents} == {(agent.name, agent.zone) for agent in cluster.agents.values()}
    assert all(":" in row[1] for row in agents)
    leases = cluster.storage.query(
        """SELECT topic, partition_id, leader_agent_id,
                  lease_expires_at - extract(epoch from now())*1000 as ttl_ms,
                  epoch
           FROM partition_leases"""
    )
    mine = next(row for row in leases if row[0] == topic)
    assert mine[2] in cluster.agents
    assert 0 < mine[3] <= 2000
    alive = "SELECT * FROM agents WHERE last_heartbeat > extract(epoch from now())*1000 - 60000"
    assert len(cluster.storage.query(alive)) == 3
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = '{}' ORDER BY ordinal_position"
    assert [row[0] for row in cluster.storage.query(columns.format("agents"))] == [
        "agent_id", "address", "availability_zone", "agent_group", "last_heartbeat", "started_at", "metadata",
    ]  # fmt: skip
    assert [row[0] for row in cluster.storage.query(columns.format("partition_leases"))] == [
        "topic", "partition_id", "leader_agent_id", "lease_expires_at", "acquired_at", "epoch",
    ]  # fmt: skip
