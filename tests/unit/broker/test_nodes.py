"""The nodes of a cluster as clients are told of them."""

from __future__ import annotations

from cluster_parts.agents import LIVENESS_MS, TTL_MS, Cluster, a_cluster, info
from streamhouse.broker.nodes import Node, Nodes
from streamhouse.cluster.view import ClusterView
from streamhouse.core.placement.shards import shard_of
from streamhouse.metadata.cluster import AgentInfo
from streamhouse.metadata.store import EpochStart
from streamhouse.model.names import TopicPartition


async def nodes_of(cluster: Cluster) -> Nodes:
    view = ClusterView(cluster.store, cluster.clock, agent_id="", liveness_ms=LIVENESS_MS, lease_ttl_ms=TTL_MS)
    await view.refresh()
    return Nodes(view)


async def test_nodes_are_listed_by_their_id_with_their_zone_as_rack() -> None:
    async with a_cluster() as cluster:
        await cluster.store.register_agent(info("z", zone="east"), 2)
        await cluster.store.register_agent(info("a", zone="west"), 9)

        nodes = await nodes_of(cluster)

        assert nodes.all() == [Node(2, "z", 9092, "east"), Node(9, "a", 9092, "west")]
        assert nodes.controller_id == 2
        assert not nodes.is_alone


async def test_without_any_node_there_is_no_controller() -> None:
    async with a_cluster() as cluster:
        nodes = await nodes_of(cluster)

        assert (nodes.all(), nodes.controller_id, nodes.is_alone) == ([], -1, True)


async def test_a_silent_node_is_not_named_and_a_draining_one_is() -> None:
    async with a_cluster() as cluster:
        await cluster.store.register_agent(info("silent"), 1)
        cluster.clock.pass_time(LIVENESS_MS)
        await cluster.store.register_agent(info("draining"), 2)
        await cluster.store.drain_agent("draining")

        nodes = await nodes_of(cluster)

        assert [node.node_id for node in nodes.all()] == [2]
        assert nodes.is_alone


async def test_an_address_of_the_sixth_version_is_taken_apart() -> None:
    async with a_cluster() as cluster:
        about = AgentInfo(agent_id="a", address="", kafka_address="::1:9092", zone="", agent_group="default")
        await cluster.store.register_agent(about, 1)

        assert (await nodes_of(cluster)).all() == [Node(1, "::1", 9092, "")]


async def test_an_agent_without_a_kafka_port_is_not_a_node_for_clients() -> None:
    async with a_cluster() as cluster:
        about = AgentInfo(agent_id="a", address="a:50051", kafka_address="", zone="", agent_group="default")
        await cluster.store.register_agent(about, 1)
        topic = await cluster.topic(1)
        partition = TopicPartition(topic.topic_id, 0)
        await cluster.store.acquire_leases("a", [partition], TTL_MS)
        await cluster.store.acquire_shards("a", [shard_of("group")], TTL_MS)

        nodes = await nodes_of(cluster)

        assert nodes.all() == []
        assert nodes.leader_of(partition) is None
        assert nodes.coordinator_of("group") is None
        assert nodes.peer_that_leads(partition) == ("a", "a:50051")


async def test_the_leader_of_a_partition_is_named_with_its_epoch() -> None:
    async with a_cluster() as cluster:
        await cluster.store.register_agent(info("a", zone="east"), 7)
        topic = await cluster.topic(2)
        led, unled = (TopicPartition(topic.topic_id, number) for number in range(2))
        for _ in range(2):
            await cluster.store.acquire_leases("a", [led], TTL_MS)

        nodes = await nodes_of(cluster)

        assert nodes.leader_of(led) == (Node(7, "a", 9092, "east"), 2)
        assert nodes.peer_that_leads(led) == ("a", "a:50051")
        assert (nodes.leader_of(unled), nodes.peer_that_leads(unled)) == (None, None)


async def test_a_partition_without_a_leader_waits_for_the_node_whose_disk_it_needs() -> None:
    async with a_cluster() as cluster:
        await cluster.store.register_agent(info("a"), 7)
        topic = await cluster.topic(2)
        awaited, free = (TopicPartition(topic.topic_id, number) for number in range(2))
        (lease,) = await cluster.store.acquire_leases("a", [awaited], 1_000)
        assert lease is not None
        await cluster.store.begin_epochs("a", [EpochStart(lease=lease, offset=0, in_local_wal=True)])
        cluster.clock.pass_time(1_001)

        nodes = await nodes_of(cluster)

        assert nodes.leader_of(awaited) is None
        assert (nodes.awaited(awaited), nodes.awaited(free)) == (7, None)


async def test_the_coordinator_of_a_group_holds_its_shard() -> None:
    async with a_cluster() as cluster:
        await cluster.store.register_agent(info("a"), 7)
        await cluster.store.acquire_shards("a", [shard_of("group")], TTL_MS)
        other = next(f"group-{number}" for number in range(100) if shard_of(f"group-{number}") != shard_of("group"))

        nodes = await nodes_of(cluster)

        assert nodes.coordinator_of("group") == Node(7, "a", 9092, "")
        assert nodes.coordinator_of(other) is None


async def test_a_reader_is_sent_to_a_node_of_its_zone_unless_the_leader_is_there() -> None:
    async with a_cluster() as cluster:
        for node_id, zone in ((1, "east"), (2, "west"), (3, "west"), (4, "")):
            await cluster.store.register_agent(info(f"agent-{node_id}", zone=zone), node_id)

        nodes = await nodes_of(cluster)

        nearer = nodes.nearer_to("west", 1)
        assert nearer is not None
        assert nearer.node_id == 2
        assert nodes.nearer_to("east", 1) is None
        assert nodes.nearer_to("west", 3) is None
        assert nodes.nearer_to("north", 1) is None


async def test_who_cannot_look_any_more_stops_naming_leaders_after_their_leases_and_some() -> None:
    async with a_cluster() as cluster:
        await cluster.store.register_agent(info("a"), 7)
        topic = await cluster.topic(1)
        partition = TopicPartition(topic.topic_id, 0)
        await cluster.store.acquire_leases("a", [partition], TTL_MS)
        nodes = await nodes_of(cluster)

        cluster.clock.pass_time(TTL_MS + TTL_MS // 2 - 1_000)
        assert nodes.leader_of(partition) is not None
        cluster.clock.pass_time(2_000)
        assert nodes.leader_of(partition) is None
