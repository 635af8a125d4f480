"""Kafka's command-line tools do with a node what they do with a Kafka broker, and none ends in a stack trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from apache_kafka import topics
from apache_kafka.jvm import Jvm
from node.process import Node

TOOLS = "org.apache.kafka.tools"
TOPICS = f"{TOOLS}.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
SHARE_GROUPS = f"{TOOLS}.consumer.group.ShareGroupCommand"
STREAMS_GROUPS = f"{TOOLS}.streams.StreamsGroupCommand"
TOKENS = f"{TOOLS}.DelegationTokenCommand"
Tool = Callable[..., str]


@pytest.fixture
def tool(jvm: Jvm, shared_node: Node) -> Tool:
    def run(main: str, *arguments: str, stdin: str = "") -> str:
        return jvm.run(main, "--bootstrap-server", shared_node.bootstrap, *arguments, stdin=stdin)

    return run


def produce(node: Node, topic: str, count: int) -> None:
    topics.produce(node.bootstrap, topic, (f"value-{number}" for number in range(count)))


def consume(node: Node, topic: str, group: str, count: int, **settings: str) -> None:
    """Read and commit that many, and leave."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([topic])
    read = 0
    while read < count:
        message = consumer.poll(60)
        assert message is not None, f"only {read} of {count}"
        assert message.error() is None, message.error()
        read += 1
    consumer.commit(asynchronous=False)
    consumer.close()


def test_topics_are_made_grown_described_and_deleted(tool: Tool) -> None:
    tool(TOPICS, "--create", "--topic", "made", "--partitions", "3", "--config", "retention.ms=3600000")
    assert "made" in tool(TOPICS, "--list").split()
    described = tool(TOPICS, "--describe", "--topic", "made")
    assert "PartitionCount: 3" in described
    assert "retention.ms=3600000" in described

    tool(TOPICS, "--alter", "--topic", "made", "--partitions", "5")
    assert "PartitionCount: 5" in tool(TOPICS, "--describe", "--topic", "made")

    tool(TOPICS, "--delete", "--topic", "made")
    assert "made" not in tool(TOPICS, "--list").split()


def test_configs_of_topics_brokers_and_groups_are_set_and_described(tool: Tool, shared_node: Node) -> None:
    tool(TOPICS, "--create", "--topic", "configured", "--partitions", "1")

    def alter(*arguments: str) -> None:
        tool(CONFIGS, "--alter", *arguments)

    def described(*arguments: str) -> str:
        return tool(CONFIGS, "--describe", *arguments)

    of_topic = ("--entity-type", "topics", "--entity-name", "configured")
    of_broker = ("--entity-type", "brokers", "--entity-name", "1")
    of_all = ("--entity-type", "brokers", "--entity-default")
    of_group = ("--entity-type", "groups", "--entity-name", "readers")
    alter(*of_topic, "--add-config", "cleanup.policy=[compact,delete],segment.ms=7000")
    alter(*of_all, "--add-config", "log.retention.ms=7200000")
    alter(*of_broker, "--add-config", "message.max.bytes=2000000")
    alter(*of_group, "--add-config", "consumer.session.timeout.ms=50000")

    assert "cleanup.policy=compact,delete" in described(*of_topic)
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000" in described(*of_topic, "--all")
    assert "log.retention.ms=7200000" in described(*of_all)
    assert "message.max.bytes=2000000" in described(*of_broker)
    assert f"advertised.listeners=PLAINTEXT://{shared_node.bootstrap}" in described(*of_broker, "--all")
    assert "consumer.session.timeout.ms=50000" in described(*of_group)

    alter(*of_topic, "--delete-config", "segment.ms")
    alter(*of_all, "--delete-config", "log.retention.ms")
    alter(*of_broker, "--delete-config", "message.max.bytes")
    alter(*of_group, "--delete-config", "consumer.session.timeout.ms")
    assert "segment.ms" not in described(*of_topic)
    assert "log.retention.ms" not in described(*of_all)


@pytest.mark.parametrize(
    "entity", ["topics", "brokers", "broker-loggers", "groups", "client-metrics", "users", "clients", "ips"]
)
def test_every_kind_of_config_has_an_answer(tool: Tool, entity: str) -> None:
    which = ("--entity-name", "1") if entity in ("brokers", "broker-loggers") else ()

    tool(CONFIGS, "--describe", "--entity-type", entity, *which)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_are_listed_described_reset_and_deleted(tool: Tool, shared_node: Node, protocol: str) -> None:
    topic, group = f"read-{protocol}", f"group-{protocol}"
    tool(TOPICS, "--create", "--topic", topic, "--partitions", "1")
    produce(shared_node, topic, 20)
    consume(shared_node, topic, group, 15, **{"group.protocol": protocol})

    assert group in tool(GROUPS, "--list").split()
    assert group in tool(f"{TOOLS}.GroupsCommand", "--list")
    row = next(line.split() for line in tool(GROUPS, "--describe", "--group", group).splitlines() if topic in line)
    assert row[3:6] == ["15", "20", "5"]
    assert "Empty" in tool(GROUPS, "--describe", "--group", group, "--state")
    tool(GROUPS, "--describe", "--group", group, "--members", "--verbose")

    tool(GROUPS, "--group", group, "--topic", topic, "--reset-offsets", "--to-offset", "3", "--execute")
    row = next(line.split() for line in tool(GROUPS, "--describe", "--group", group).splitlines() if topic in line)
    assert row[3] == "3"
    tool(GROUPS, "--group", group, "--topic", topic, "--delete-offsets")
    tool(GROUPS, "--group", group, "--delete")
    assert group not in tool(GROUPS, "--list").split()


NOT_FOUND = "GroupIdNotFoundException"
NO_TOKENS = "Delegation Token requests are not allowed on PLAINTEXT"


@pytest.mark.parametrize(
    ("main", "arguments", "said"),
    [
        (SHARE_GROUPS, "--describe --group none", NOT_FOUND),
        (SHARE_GROUPS, "--describe --group none --members", NOT_FOUND),
        (SHARE_GROUPS, "--describe --group none --state", NOT_FOUND),
        (SHARE_GROUPS, "--reset-offsets --group none --all-topics --to-latest --execute", NOT_FOUND),
        (SHARE_GROUPS, "--delete-offsets --group none --topic absent", "no share group 'none'"),
        (STREAMS_GROUPS, "--describe --group none", NOT_FOUND),
        (STREAMS_GROUPS, "--describe --group none --members", NOT_FOUND),
        (STREAMS_GROUPS, "--reset-offsets --group none --all-input-topics --to-latest --execute", NOT_FOUND),
        (STREAMS_GROUPS, "--delete-offsets --group none --all-input-topics", NOT_FOUND),
        (TOKENS, "--describe", NO_TOKENS),
        (TOKENS, "--create --max-life-time-period -1", NO_TOKENS),
        (TOKENS, "--renew --renew-time-period -1 --hmac YQ==", NO_TOKENS),
        (TOKENS, "--expire --expiry-time-period -1 --hmac YQ==", NO_TOKENS),
    ],
)
def test_what_is_not_there_is_refused_in_the_words_of_kafka(
    jvm: Jvm, shared_node: Node, tmp_path: Path, main: str, arguments: str, said: str
) -> None:
    """The tools print the refusal's stack trace with Kafka too; what they must not say is that they cannot ask."""
    client = tmp_path / "client.properties"
    client.touch()
    where = ("--bootstrap-server", shared_node.bootstrap, "--command-config", str(client))

    done = jvm.try_to_run(main, *where, *arguments.split())

    assert said in done.stdout + done.stderr
    assert "does not support" not in done.stdout + done.stderr


@pytest.mark.parametrize("main", [SHARE_GROUPS, STREAMS_GROUPS])
def test_there_are_no_groups_of_some_kinds(tool: Tool, main: str) -> None:
    assert tool(main, "--list").split() == []
    assert tool(main, "--describe", "--all-groups").split() == []


def test_offsets_are_found_by_position_and_time(tool: Tool, shared_node: Node) -> None:
    tool(TOPICS, "--create", "--topic", "offsets", "--partitions", "2")
    produce(shared_node, "offsets", 7)

    def offsets(time: str) -> list[str]:
        return tool(f"{TOOLS}.GetOffsetShell", "--topic", "offsets", "--time", time).split()

    assert offsets("latest") == ["offsets:0:7", "offsets:1:0"]
    assert offsets("earliest") == ["offsets:0:0", "offsets:1:0"]
    assert offsets("max-timestamp")[0].startswith("offsets:0:")
    assert offsets("0")[0] == "offsets:0:0"
    for special in ("earliest-local", "latest-tiered"):
        tool(f"{TOOLS}.GetOffsetShell", "--topic", "offsets", "--time", special)


def test_records_are_deleted(tool: Tool, shared_node: Node, tmp_path: Path) -> None:
    tool(TOPICS, "--create", "--topic", "shortened", "--partitions", "1")
    produce(shared_node, "shortened", 9)
    wanted = tmp_path / "wanted.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": "shortened", "partition": 0, "offset": 4}]}))

    assert "low_watermark: 4" in tool(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(wanted))

    assert tool(f"{TOOLS}.GetOffsetShell", "--topic", "shortened", "--time", "earliest").split() == ["shortened:0:4"]


def test_what_a_cluster_is_made_of_is_told(jvm: Jvm, tool: Tool, shared_node: Node) -> None:
    assert "LeaderId:               1" in tool(f"{TOOLS}.MetadataQuorumCommand", "describe", "--status")
    assert "Leader" in tool(f"{TOOLS}.MetadataQuorumCommand", "describe", "--replication")
    tool(f"{TOOLS}.FeatureCommand", "describe")
    assert '"broker":1' in tool(f"{TOOLS}.LogDirsCommand", "--describe")
    assert "No partition reassignments found" in tool(f"{TOOLS}.reassign.ReassignPartitionsCommand", "--list")
    tool(f"{TOOLS}.LeaderElectionCommand", "--election-type", "PREFERRED", "--all-topic-partitions")
    tool(f"{TOOLS}.ClientMetricsCommand", "--list")
    tool(f"{TOOLS}.ClientMetricsCommand", "--describe")
    tool(f"{TOOLS}.TransactionsCommand", "list")
    assert "usable" in tool(f"{TOOLS}.BrokerApiVersionsCommand")
    assert "Cluster ID" in jvm.run(f"{TOOLS}.ClusterTool", "cluster-id", "--bootstrap-server", shared_node.bootstrap)
    assert str(shared_node.port) in jvm.run(
        f"{TOOLS}.ClusterTool", "list-endpoints", "--bootstrap-server", shared_node.bootstrap
    )


def test_a_partition_is_described_elected_and_reassigned_to_where_it_is(
    tool: Tool, shared_node: Node, tmp_path: Path
) -> None:
    tool(TOPICS, "--create", "--topic", "placed", "--partitions", "1")
    produce(shared_node, "placed", 1)
    where_it_is = {"topic": "placed", "partition": 0, "replicas": [1]}
    for place in (where_it_is, {**where_it_is, "log_dirs": [str(shared_node.data_dir)]}):
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [place]}))
        reassign = (f"{TOOLS}.reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(plan))
        assert "Successfully started" in tool(*reassign, "--execute")
        assert "is completed" in tool(*reassign, "--verify")
    described = ("describe-producers", "--topic", "placed", "--partition", "0")
    assert "ProducerEpoch" in tool(f"{TOOLS}.TransactionsCommand", *described)
    elected = ("--election-type", "PREFERRED", "--topic", "placed", "--partition", "0")
    assert "already elected" in tool(f"{TOOLS}.LeaderElectionCommand", *elected)


def test_the_console_producer_and_consumer_pass_records_on(tool: Tool) -> None:
    tool(TOPICS, "--create", "--topic", "typed", "--partitions", "1")
    tool(f"{TOOLS}.ConsoleProducer", "--topic", "typed", stdin="first\nsecond\n")

    read = ("--topic", "typed", "--from-beginning", "--max-messages", "2", "--timeout-ms", "60000")
    assert tool(f"{TOOLS}.consumer.ConsoleConsumer", *read).split() == ["first", "second"]
