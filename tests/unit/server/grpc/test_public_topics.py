"""Topics and the cluster, over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import grpc
import pytest

from grpc_parts.calls import Api, api_of
from streamhouse.testing import Broker
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(grpc=True, default_partitions=2) as broker:
        yield broker


@pytest.fixture
def api(broker: Broker, event_loop_runner: asyncio.Runner) -> Iterator[Api]:
    yield from api_of(broker, event_loop_runner)


async def test_a_topic_is_created_with_what_was_asked_for(api: Api) -> None:
    request = pb.CreateTopicRequest(name="orders", partition_count=3, config={"retention.ms": "60000"})

    created = await api("Topics.CreateTopic", request)

    assert (created.name, created.partition_count, dict(created.config)) == ("orders", 3, {"retention.ms": "60000"})
    assert created.effective_config["retention.ms"] == "60000"
    assert created.effective_config["cleanup.policy"] == "delete"
    assert await api("Topics.GetTopic", pb.GetTopicRequest(name="orders")) == created


async def test_a_topic_without_a_number_of_partitions_has_the_default(api: Api) -> None:
    created = await api("Topics.CreateTopic", pb.CreateTopicRequest(name="default-sized"))

    assert created.partition_count == 2


async def test_what_is_only_validated_is_not_created(api: Api) -> None:
    await api("Topics.CreateTopic", pb.CreateTopicRequest(name="only-asked", validate_only=True))

    assert await api.refusal("Topics.GetTopic", pb.GetTopicRequest(name="only-asked")) == ("NOT_FOUND", "not-found")


async def test_topics_are_listed_by_name(api: Api) -> None:
    for name in ("listed-b", "listed-a"):
        await api.create_topic(name)

    listed = await api("Topics.ListTopics", pb.ListTopicsRequest())

    names = [topic.name for topic in listed.topics]
    assert names == sorted(names)
    assert {"listed-a", "listed-b"} <= set(names)


async def test_configs_are_set_and_reset_and_others_stay(api: Api) -> None:
    await api.create_topic("configured", retention_ms="1000", segment_bytes="2000000")

    changed = await api(
        "Topics.ConfigureTopic",
        pb.ConfigureTopicRequest(name="configured", set={"cleanup.policy": "compact"}, reset=["retention.ms"]),
    )

    assert dict(changed.config) == {"cleanup.policy": "compact", "segment.bytes": "2000000"}
    assert (await api("Topics.GetTopic", pb.GetTopicRequest(name="configured"))).config == changed.config


async def test_durations_and_sizes_may_have_units_and_are_stored_without(api: Api) -> None:
    config = {"retention.ms": "7d", "segment.bytes": "8MiB"}
    made = await api("Topics.CreateTopic", pb.CreateTopicRequest(name="with-units", config=config))

    changed = await api("Topics.ConfigureTopic", pb.ConfigureTopicRequest(name="with-units", set={"segment.ms": "30s"}))

    assert dict(made.config) == {"retention.ms": "604800000", "segment.bytes": "8388608"}
    assert dict(changed.config) == {**made.config, "segment.ms": "30000"}


async def test_a_topic_is_given_more_partitions(api: Api) -> None:
    await api.create_topic("growing", 2)
    checked = pb.CreatePartitionsRequest(name="growing", partition_count=3, validate_only=True)
    assert (await api("Topics.CreatePartitions", checked)).partition_count == 3
    assert (await api("Topics.GetTopic", pb.GetTopicRequest(name="growing"))).partition_count == 2

    grown = await api("Topics.CreatePartitions", pb.CreatePartitionsRequest(name="growing", partition_count=4))

    assert grown.partition_count == 4
    await api.produce("growing", [b"one"], partition=3)


@pytest.mark.parametrize(
    ("name", "count", "refusal"),
    [
        ("at-most", 2, ("INVALID_ARGUMENT", "invalid-partitions")),
        ("at-most", 0, ("INVALID_ARGUMENT", "invalid-partitions")),
        ("at-most", 10_001, ("INVALID_ARGUMENT", "invalid-partitions")),
        ("at-most", 3, ("FAILED_PRECONDITION", "policy-violation")),
        ("never-was", 3, ("NOT_FOUND", "not-found")),
    ],
)
async def test_partitions_that_cannot_be_added_are_refused(
    api: Api, name: str, count: int, refusal: tuple[str, str]
) -> None:
    if name != "never-was":
        with suppress(grpc.RpcError):
            await api.create_topic(name, 2, streamhouse_partitions_fixed="true")
    request = pb.CreatePartitionsRequest(name=name, partition_count=count)
    assert await api.refusal("Topics.CreatePartitions", request) == refusal


async def test_a_deleted_topic_is_gone(api: Api) -> None:
    await api.create_topic("short-lived")

    await api("Topics.DeleteTopic", pb.DeleteTopicRequest(name="short-lived"))

    again = pb.DeleteTopicRequest(name="short-lived")
    assert await api.refusal("Topics.DeleteTopic", again) == ("NOT_FOUND", "not-found")


async def test_partitions_say_who_leads_and_where_the_log_ends(api: Api, broker: Broker) -> None:
    await api.create_topic("led", 2)
    await api.produce("led", [b"one", b"two"], partition=1)

    listed = await api("Topics.ListPartitions", pb.ListPartitionsRequest(topic="led"))

    first, second = listed.partitions
    assert [first.partition, second.partition] == [0, 1]
    assert f"{second.leader.host}:{second.leader.port}" == broker.bootstrap
    assert second.leader.epoch >= 1
    assert (first.ends.high_watermark, second.ends.log_start_offset, second.ends.high_watermark) == (0, 0, 2)


@pytest.mark.parametrize(
    "name", ["../x", ".", "", "nul\0", "x" * 250, "naïve", "'; DROP TABLE topics; --", "<script>alert(1)</script>"]
)
async def test_a_name_that_is_none_is_refused_at_the_door(api: Api, name: str) -> None:
    assert await api.refusal("Topics.CreateTopic", pb.CreateTopicRequest(name=name)) == (
        "INVALID_ARGUMENT",
        "invalid-name",
    )


@pytest.mark.parametrize(
    ("request_", "refusal"),
    [
        (pb.CreateTopicRequest(name="twice"), ("ALREADY_EXISTS", "already-exists")),
        (pb.CreateTopicRequest(name="x", partition_count=2**31), ("INVALID_ARGUMENT", "invalid-partitions")),
        (pb.CreateTopicRequest(name="x", config={"retention.ms": "soon"}), ("INVALID_ARGUMENT", "invalid-config")),
        (pb.CreateTopicRequest(name="x", config={"no.such": "1"}), ("INVALID_ARGUMENT", "invalid-config")),
    ],
    ids=["exists", "too many partitions", "not a number", "no such config"],
)
async def test_a_topic_that_cannot_be_made_says_why(
    api: Api, request_: pb.CreateTopicRequest, refusal: tuple[str, str]
) -> None:
    if request_.name == "twice":
        await api.create_topic("twice")

    assert await api.refusal("Topics.CreateTopic", request_) == refusal


# --- the cluster ---


async def test_the_cluster_tells_its_agents(api: Api, broker: Broker) -> None:
    described = await api("Cluster.DescribeCluster", pb.DescribeClusterRequest())

    (agent,) = described.agents
    assert described.cluster_id == broker.node.broker.identity.cluster_id
    assert (agent.node_id, agent.kafka_address, agent.is_draining) == (described.node_id, broker.bootstrap, False)


async def test_leases_are_those_of_the_topic_asked_for(api: Api, broker: Broker) -> None:
    await api.create_topic("leased", 2)

    listed = await api("Cluster.ListLeases", pb.ListLeasesRequest(topic="leased"))

    agent_id = broker.node.broker.identity.agent_id
    assert [(lease.partition, lease.agent_id) for lease in listed.leases] == [(0, agent_id), (1, agent_id)]
    assert all(lease.left_ms > 0 and lease.epoch >= 1 for lease in listed.leases)
    everything = await api("Cluster.ListLeases", pb.ListLeasesRequest())
    assert len(everything.leases) > len(listed.leases) - 1
    assert await api.refusal("Cluster.ListLeases", pb.ListLeasesRequest(topic="nowhere")) == ("NOT_FOUND", "not-found")


async def test_segments_come_in_pages(api: Api, broker: Broker) -> None:
    await api.create_topic("cut", 1)
    for value in (b"a", b"b", b"c"):
        await api.produce("cut", [value])
        broker.flush()

    first = await api("Cluster.ListSegments", pb.ListSegmentsRequest(topic="cut", limit=2))
    second = await api("Cluster.ListSegments", pb.ListSegmentsRequest(topic="cut", from_offset=first.next_offset))

    assert [(segment.base_offset, segment.end_offset) for segment in first.segments] == [(0, 1), (1, 2)]
    assert [(segment.base_offset, segment.record_count) for segment in second.segments] == [(2, 1)]
    assert not second.HasField("next_offset")
    missing = pb.ListSegmentsRequest(topic="cut", partition=7)
    assert await api.refusal("Cluster.ListSegments", missing) == ("NOT_FOUND", "not-found")


async def test_transfers_are_none_where_there_is_nobody_to_take_over(api: Api) -> None:
    assert list((await api("Cluster.ListTransfers", pb.ListTransfersRequest())).transfers) == []


async def test_a_partition_is_pinned_to_an_agent_that_lives_and_let_go_again(api: Api, broker: Broker) -> None:
    await api.create_topic("pinned")
    agent_id = broker.node.broker.identity.agent_id

    async def pinned_to() -> str:
        (lease,) = (await api("Cluster.ListLeases", pb.ListLeasesRequest(topic="pinned"))).leases
        return str(lease.pinned_to)

    await api("Cluster.PinPartition", pb.PinPartitionRequest(topic="pinned", agent_id=agent_id))
    assert await pinned_to() == agent_id
    await api("Cluster.PinPartition", pb.PinPartitionRequest(topic="pinned"))
    assert await pinned_to() == ""

    nobody = pb.PinPartitionRequest(topic="pinned", agent_id="nobody")
    assert await api.refusal("Cluster.PinPartition", nobody) == ("NOT_FOUND", "not-found")


async def test_only_agents_that_there_are_can_be_drained(api: Api) -> None:
    nobody = pb.DrainAgentRequest(agent_id="nobody")

    assert await api.refusal("Cluster.DrainAgent", nobody) == ("NOT_FOUND", "not-found")
