"""Doors whose clients know no leader, on a cluster: any agent takes and gives every record, also when leaders die."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import confluent_kafka
import grpc
import pytest

from doors import flume, grpc_door, kafka, rest
from doors.record import FLUME_SAMPLES, SAMPLES, Sample, Shown
from faults.workload import create_topic
from node.cluster import Agent, Cluster
from node.wait import HUNG_SECONDS, eventually
from rest_parts.caller import RestCaller
from streamhouse.client.flume import Producer
from streamhouse.model.errors import StreamHouseError
from streamhouse.wire.grpc import streamhouse_v1_pb2 as api

Write = Callable[[Agent, str, tuple[Sample, ...]], list[int]]
WRITERS: dict[str, tuple[Write, tuple[Sample, ...]]] = {
    "rest": (rest.write, SAMPLES),
    "grpc": (grpc_door.write, SAMPLES),
    "grpc-stream": (grpc_door.write_stream, SAMPLES),
    "flume": (flume.write, FLUME_SAMPLES),
}


@pytest.mark.parametrize("durability", ["object"])
def test_what_a_node_does_not_lead_it_passes_on_and_reads_for_its_clients(cluster: Cluster) -> None:
    for name, (write, samples) in WRITERS.items():
        topic = cluster.new_topic()
        create_topic(cluster.bootstrap, topic, 1)
        cluster.wait_led(topic)
        other, another = cluster.others(cluster.leader_of(topic, 0))

        assert write(other, topic, samples) == list(range(len(samples)))

        stored = kafka.read(other, topic, len(samples))
        for node in (other, another):
            for read in (rest.read, grpc_door.read, rest.read_events):
                found = read(node, topic, len(samples))
                assert all(map(Shown.agrees_with, found, stored)), f"{name}: {found}"
            offsets = [shown.offset for shown in flume.read(node, topic, len(samples))]
            assert offsets == list(range(len(samples)))


@pytest.mark.parametrize("durability", ["object"])
def test_a_group_is_joined_through_an_agent_that_does_not_coordinate_it(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 2)
    cluster.wait_led(topic)
    fresh = tuple(Sample(key=sample.key, value=sample.value) for sample in SAMPLES)  # retention would delete old ones
    kafka.write(next(iter(cluster.agents.values())), topic, fresh)
    for agent in cluster.agents.values():
        caller = RestCaller(agent.http)
        group = f"through-{agent.name}-{topic}"
        member = caller.post(f"groups/{group}/members", {"topics": [topic]}, status=201)["member_id"]
        found: list[int] = []

        def polled() -> bool:
            answer = caller.post(f"groups/{group}/members/{member}/poll", {"max_wait_ms": 1000})  # noqa: B023
            found.extend(record["offset"] for record in answer["records"])  # noqa: B023
            return len(found) >= len(SAMPLES)  # noqa: B023

        eventually(polled, f"the records through {agent.name}")
        assert found == list(range(len(SAMPLES)))
        caller.post(f"groups/{group}/members/{member}/commit", {}, status=204)
        for other in cluster.agents.values():
            lags = RestCaller(other.http).get(f"groups/{group}")["partitions"]
            assert [partition["lag"] for partition in lags if partition["partition"] == 0] == [0]


@pytest.mark.parametrize("durability", ["object", "wal"])
def test_every_node_shows_what_all_of_them_do(cluster: Cluster) -> None:
    """Whichever node somebody's console happens to be on; of records that are in no segment yet, too."""
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    cluster.wait_led(topic)
    leader = cluster.leader_of(topic, 0)
    watched = RestCaller(cluster.others(leader)[0].http)
    before = watched.get("overview")
    assert {node["agent_id"] for node in before["nodes"]} == set(cluster.agents)

    kafka.write(leader, topic, SAMPLES)

    def grown() -> bool:
        now = watched.get("overview")
        nodes = {node["agent_id"]: node for node in now["nodes"]}
        known = {node["agent_id"]: node for node in before["nodes"]}[leader.name]
        return bool(
            nodes[leader.name]["records_in"] >= known["records_in"] + len(SAMPLES)
            and now["cluster"]["records_written"] >= before["cluster"]["records_written"] + len(SAMPLES)
            and now["node"]["agent_id"] != leader.name
        )

    eventually(grown, "the leader's records on another node's overview")


class _Sender(threading.Thread):
    """One record after the other through one door; what is refused or unknown is not sent again."""

    def __init__(self, name: str, send: Callable[[str], int]) -> None:
        super().__init__(daemon=True)
        self.door = name
        self.acknowledged: dict[int, str] = {}
        self._send = send
        self._stopping = threading.Event()

    def run(self) -> None:
        for number in itertools.count():
            if self._stopping.is_set():
                return
            value = f"{self.door}-{number}"
            try:
                self.acknowledged[self._send(value)] = value
            except (AssertionError, OSError, StreamHouseError, grpc.RpcError):
                continue

    def stop(self) -> None:
        self._stopping.set()
        self.join(HUNG_SECONDS)
        assert not self.is_alive(), f"{self.door} hangs"


@pytest.mark.parametrize("durability", ["object"])
def test_what_was_acknowledged_through_other_doors_survives_its_leader(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    cluster.wait_led(topic)
    leader = cluster.leader_of(topic, 0)
    door = cluster.others(leader)[0]
    channel = grpc.insecure_channel(door.grpc_address)
    produce = channel.unary_unary(
        "/streamhouse.v1.Records/Produce", api.ProduceRequest.SerializeToString, api.ProduceResponse.FromString
    )

    def by_rest(value: str) -> int:
        return rest.write(door, topic, (Sample(key=None, value=value.encode()),))[0]

    def by_grpc(value: str) -> int:
        request = api.ProduceRequest(topic=topic, records=[api.NewRecord(value=value.encode(), partition=0)])
        answer = produce(request, timeout=HUNG_SECONDS)
        assert not answer.errors
        return int(answer.offsets[0])

    def by_flume(value: str) -> int:
        with Producer(door.flume_address) as producer:
            return producer.produce_to_partition(topic, 0, None, value.encode()).offset

    senders = [_Sender("rest", by_rest), _Sender("grpc", by_grpc), _Sender("flume", by_flume)]
    for sender in senders:
        sender.start()
    for sender in senders:
        eventually(lambda: len(sender.acknowledged) >= 5, f"records through {sender.door}")  # noqa: B023
    leader.kill9()
    before = {sender.door: len(sender.acknowledged) for sender in senders}
    for sender in senders:
        eventually(
            lambda: len(sender.acknowledged) >= before[sender.door] + 5,  # noqa: B023
            f"records through {sender.door} after the leader's death",
        )
        sender.stop()
    channel.close()

    stored = _all_values(door, topic)
    for sender in senders:
        lost = {offset: value for offset, value in sender.acknowledged.items() if stored.get(offset) != value}
        assert not lost, f"{sender.door}: {lost}"
    assert len(set(stored.values())) == len(stored), "a record was stored twice"


def _all_values(node: Agent, topic: str) -> dict[int, str]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": node.bootstrap, "group.id": "all", "enable.partition.eof": True}
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        found: dict[int, str] = {}
        while True:
            message = consumer.poll(HUNG_SECONDS)
            assert message is not None, "the end never came"
            if message.error() is not None:
                return found
            found[message.offset()] = (message.value() or b"").decode()
    finally:
        consumer.close()
