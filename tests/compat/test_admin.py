"""Topics, configs, offsets and the cluster, through each client's own admin."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import aiokafka
import aiokafka.admin
import confluent_kafka
import kafka
import kafka.admin
import kafka.errors
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from compat.clients import CLIENTS
from compat.conftest import Broker, NewTopicName, unused_name
from compat.record import Record
from node.raw import RawConnection, build_batch, read_values
from node.wait import HUNG_SECONDS, eventually

START_MS = 1_700_000_000_000
Result = TypeVar("Result")


def with_kafka_python(broker: Broker, use: Callable[[Any], Result]) -> Result:
    client = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        return use(client)
    finally:
        client.close()


def with_aiokafka(broker: Broker, use: Callable[[Any], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        client = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await client.start()
        try:
            return await use(client)
        finally:
            await client.close()

    return asyncio.run(run())


def config_of(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return dict(admin.describe_configs([resource])[resource].result(HUNG_SECONDS))


def error_of(failure: pytest.ExceptionInfo[KafkaException]) -> int:
    return int(failure.value.args[0].code())


# -- topics ---------------------------------------------------------------------------------------------------------


def test_confluent_creates_describes_and_deletes_a_topic(admin: AdminClient) -> None:
    name = unused_name()
    admin.create_topics([NewTopic(name, 3, 1, config={"retention.ms": "12345"})])[name].result(HUNG_SECONDS)
    partitions = admin.list_topics(name, HUNG_SECONDS).topics[name].partitions
    assert sorted(partitions) == [0, 1, 2]
    assert all(partition.leader in partition.replicas for partition in partitions.values())
    assert config_of(admin, name)["retention.ms"].value == "12345"
    admin.delete_topics([name])[name].result(HUNG_SECONDS)
    eventually(lambda: name not in admin.list_topics(timeout=HUNG_SECONDS).topics, "the topic to be gone")


def test_kafka_python_creates_describes_and_deletes_a_topic(broker: Broker) -> None:
    name = unused_name()

    def use(client: Any) -> None:
        client.create_topics({name: {"num_partitions": 2, "replication_factor": 1, "configs": {"segment.ms": "777"}}})
        (description,) = client.describe_topics([name])
        assert sorted(partition["partition_index"] for partition in description["partitions"]) == [0, 1]
        assert name in client.list_topics()
        client.delete_topics([name])
        eventually(lambda: name not in client.list_topics(), "the topic to be gone")

    with_kafka_python(broker, use)


def test_aiokafka_creates_describes_and_deletes_a_topic(broker: Broker) -> None:
    name = unused_name()

    async def use(client: Any) -> None:
        await client.create_topics([aiokafka.admin.NewTopic(name, 2, 1)])
        (description,) = await client.describe_topics([name])
        assert len(description["partitions"]) == 2
        await client.delete_topics([name])

    with_aiokafka(broker, use)
    assert name not in with_aiokafka(broker, lambda client: client.list_topics())


def test_kcat_lists_brokers_and_topics(broker: Broker, new_topic: NewTopicName) -> None:
    name = new_topic(partitions=3)
    listing = subprocess.run(
        ["kcat", "-L", "-J", "-b", broker.bootstrap], capture_output=True, timeout=HUNG_SECONDS, check=True
    )
    cluster = json.loads(listing.stdout)
    assert [server["name"] for server in cluster["brokers"]] == [broker.bootstrap]
    (topic,) = [topic for topic in cluster["topics"] if topic["topic"] == name]
    assert len(topic["partitions"]) == 3


def test_a_topic_that_exists_is_not_created_again(admin: AdminClient, new_topic: NewTopicName) -> None:
    name = new_topic()
    with pytest.raises(KafkaException) as failure:
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(HUNG_SECONDS)
    assert error_of(failure) == KafkaError.TOPIC_ALREADY_EXISTS


def test_deleting_a_topic_that_does_not_exist_says_so(admin: AdminClient) -> None:
    with pytest.raises(KafkaException) as failure:
        admin.delete_topics(["never-was"])["never-was"].result(HUNG_SECONDS)
    assert error_of(failure) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_validate_only_creates_nothing(admin: AdminClient) -> None:
    name = unused_name()
    admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)[name].result(HUNG_SECONDS)
    assert name not in admin.list_topics(timeout=HUNG_SECONDS).topics


@pytest.mark.parametrize(
    ("partitions", "config", "code"),
    [
        (0, {}, KafkaError.INVALID_PARTITIONS),
        (1, {"no.such.config": "1"}, KafkaError.INVALID_CONFIG),
        (1, {"retention.ms": "soon"}, KafkaError.INVALID_CONFIG),
        (1, {"cleanup.policy": "shred"}, KafkaError.INVALID_CONFIG),
        (1, {"segment.bytes": "2000"}, KafkaError.INVALID_CONFIG),
    ],
)
def test_a_topic_that_makes_no_sense_is_refused_by_name(
    admin: AdminClient, partitions: int, config: dict[str, str], code: int
) -> None:
    name = unused_name()
    with pytest.raises(KafkaException) as failure:
        admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(HUNG_SECONDS)
    assert error_of(failure) == code
    assert name not in admin.list_topics(timeout=HUNG_SECONDS).topics


def test_a_replication_factor_of_0_is_refused(admin: AdminClient) -> None:
    name = unused_name()
    with pytest.raises(KafkaException) as failure:
        admin.create_topics([NewTopic(name, 1, 0)])[name].result(HUNG_SECONDS)
    assert error_of(failure) == KafkaError.INVALID_REPLICATION_FACTOR


def test_brokers_that_do_not_exist_cannot_be_assigned(admin: AdminClient) -> None:
    name = unused_name()
    with pytest.raises(KafkaException) as failure:
        admin.create_topics([NewTopic(name, 1, replica_assignment=[[7777]])])[name].result(HUNG_SECONDS)
    assert error_of(failure) == KafkaError.INVALID_REPLICA_ASSIGNMENT


def test_names_that_differ_only_in_dots_and_underscores_collide(admin: AdminClient) -> None:
    name = unused_name()
    admin.create_topics([NewTopic(f"{name}.b", 1, 1)])[f"{name}.b"].result(HUNG_SECONDS)
    with pytest.raises(KafkaException) as failure:
        admin.create_topics([NewTopic(f"{name}_b", 1, 1)])[f"{name}_b"].result(HUNG_SECONDS)
    assert error_of(failure) == KafkaError.TOPIC_EXCEPTION


def test_a_list_of_configs_may_be_emptied(admin: AdminClient, new_topic: NewTopicName) -> None:
    name = new_topic()
    change = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SUBTRACT)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(HUNG_SECONDS)
    assert config_of(admin, name)["cleanup.policy"].value == ""


def test_one_bad_topic_does_not_hinder_the_others(admin: AdminClient) -> None:
    good, bad = unused_name(), "not/allowed"
    results = admin.create_topics([NewTopic(bad, 1, 1), NewTopic(good, 1, 1)])
    with pytest.raises(KafkaException) as failure:
        results[bad].result(HUNG_SECONDS)
    assert error_of(failure) == KafkaError.TOPIC_EXCEPTION
    results[good].result(HUNG_SECONDS)


def test_a_topic_deleted_and_made_again_is_empty(
    admin: AdminClient, raw: RawConnection, new_topic: NewTopicName
) -> None:
    name = new_topic()
    raw.produce(name, build_batch(b"old"))
    admin.delete_topics([name])[name].result(HUNG_SECONDS)

    def created_again() -> bool:
        """Apache Kafka deletes in the background, so the name may be taken for a moment."""
        try:
            admin.create_topics([NewTopic(name, 1, 1)])[name].result(HUNG_SECONDS)
        except KafkaException:
            return False
        return True

    eventually(created_again, "the name to be free")
    answer = eventually(lambda: _produced(raw, name, build_batch(b"new")), "the new topic's leader")
    assert answer.base_offset == 0
    assert read_values(raw.fetch(name, 0).records) == {0: b"new"}


def _produced(raw: RawConnection, topic: str, batch: bytes) -> Any:
    answer = raw.produce(topic, batch)
    return answer if answer.error_code == 0 else None


# -- partitions -----------------------------------------------------------------------------------------------------


def test_a_topic_grows_and_a_consumer_of_it_reads_its_new_partitions(
    broker: Broker, admin: AdminClient, new_topic: NewTopicName
) -> None:
    name = new_topic(partitions=2)
    admin.create_partitions([NewPartitions(name, 4)])[name].result(HUNG_SECONDS)
    assert_partitions(admin, name, 4)
    for client in CLIENTS.values():
        record = Record(key=None, value=client.name.encode(), timestamp_ms=START_MS)
        client.produce(broker.bootstrap, name, 3, [record], "none")
    for client in CLIENTS.values():
        read = client.consume(broker.bootstrap, name, 3, len(CLIENTS))
        assert [record.value for record in read] == [sent.encode() for sent in CLIENTS]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_runs_is_given_the_new_partitions(
    broker: Broker, admin: AdminClient, new_topic: NewTopicName, protocol: str
) -> None:
    name = new_topic(partitions=1)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": name, "auto.offset.reset": "earliest"}
    # A classic consumer hears of them by asking; a member of the newer protocol is told.
    often = {"topic.metadata.refresh.interval.ms": 200} if protocol == "classic" else {}
    consumer = confluent_kafka.Consumer({**settings, "group.protocol": protocol, **often})
    consumer.subscribe([name])
    try:
        eventually(lambda: consumer.poll(0.1) or len(consumer.assignment()) == 1, "the first assignment", pause=0)
        admin.create_partitions([NewPartitions(name, 3)])[name].result(HUNG_SECONDS)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        for partition in range(3):
            producer.produce(name, f"{partition}", partition=partition)
        assert producer.flush(HUNG_SECONDS) == 0
        read: set[int] = set()

        def has_all() -> bool:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                read.add(message.partition())
            return read == {0, 1, 2}

        eventually(has_all, "a record of every partition", pause=0)
    finally:
        consumer.close()


def test_kafka_python_adds_partitions(broker: Broker, admin: AdminClient, new_topic: NewTopicName) -> None:
    name = new_topic(partitions=1)
    with_kafka_python(broker, lambda client: client.create_partitions({name: 3}))
    assert_partitions(admin, name, 3)


@pytest.mark.parametrize("count", [1, 2])
def test_a_topic_does_not_shrink(admin: AdminClient, new_topic: NewTopicName, count: int) -> None:
    name = new_topic(partitions=2)
    with pytest.raises(KafkaException) as failure:
        admin.create_partitions([NewPartitions(name, count)])[name].result(HUNG_SECONDS)
    assert error_of(failure) == KafkaError.INVALID_PARTITIONS
    assert_partitions(admin, name, 2)


def test_more_partitions_are_only_checked(admin: AdminClient, new_topic: NewTopicName) -> None:
    name = new_topic(partitions=2)
    admin.create_partitions([NewPartitions(name, 4)], validate_only=True)[name].result(HUNG_SECONDS)
    assert_partitions(admin, name, 2)


def assert_partitions(admin: AdminClient, name: str, count: int) -> None:
    """Apache Kafka's broker hears of it a moment after its controller has answered."""
    eventually(
        lambda: len(admin.list_topics(name, HUNG_SECONDS).topics[name].partitions) == count, f"{count} partitions"
    )


# -- configs --------------------------------------------------------------------------------------------------------


def test_incremental_changes_keep_the_other_configs(admin: AdminClient, new_topic: NewTopicName) -> None:
    name = new_topic(retention_ms="111000", max_message_bytes="5000")
    change = ConfigEntry("retention.ms", "222000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(HUNG_SECONDS)
    config = config_of(admin, name)
    assert (config["retention.ms"].value, config["max.message.bytes"].value) == ("222000", "5000")
    drop = ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[drop])
    admin.incremental_alter_configs([resource])[resource].result(HUNG_SECONDS)
    assert config_of(admin, name)["retention.ms"].value == "604800000"
    assert config_of(admin, name)["retention.ms"].is_default


def test_a_config_change_that_makes_no_sense_is_refused_and_changes_nothing(
    admin: AdminClient, new_topic: NewTopicName
) -> None:
    name = new_topic(retention_ms="111000")
    changes = [
        ConfigEntry("retention.ms", "333000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("cleanup.policy", "shred", incremental_operation=AlterConfigOpType.SET),
    ]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=changes)
    with pytest.raises(KafkaException) as failure:
        admin.incremental_alter_configs([resource])[resource].result(HUNG_SECONDS)
    assert error_of(failure) == KafkaError.INVALID_CONFIG
    assert config_of(admin, name)["retention.ms"].value == "111000"


def test_aiokafka_replaces_the_configs_as_a_whole(broker: Broker, admin: AdminClient, new_topic: NewTopicName) -> None:
    name = new_topic(retention_ms="111000", max_message_bytes="5000")

    async def use(client: Any) -> None:
        resource_type = aiokafka.admin.config_resource.ConfigResourceType.TOPIC
        wanted = {"retention.ms": "444000"}
        await client.alter_configs([aiokafka.admin.config_resource.ConfigResource(resource_type, name, wanted)])

    with_aiokafka(broker, use)
    config = config_of(admin, name)
    assert config["retention.ms"].value == "444000"
    assert config["max.message.bytes"].value == "1048588"


@pytest.mark.parametrize("incremental", [True, False])
def test_kafka_python_alters_and_describes_configs(broker: Broker, new_topic: NewTopicName, incremental: bool) -> None:
    name = new_topic()

    def use(client: Any) -> None:
        wanted = {"retention.bytes": "99999", "message.timestamp.type": "LogAppendTime"}
        resource = kafka.admin.ConfigResource("TOPIC", name, wanted)
        answer = client.alter_configs([resource], incremental=incremental)
        assert answer == {"topic": {name: "OK"}}
        described = client.describe_configs([kafka.admin.ConfigResource("TOPIC", name)])["topic"][name]
        assert {key: value["value"] for key, value in described.items()} == wanted

    with_kafka_python(broker, use)


def test_every_topic_config_of_the_contract_is_described(admin: AdminClient, new_topic: NewTopicName) -> None:
    described = config_of(admin, new_topic())
    assert {
        "retention.ms", "retention.bytes", "cleanup.policy", "segment.bytes", "segment.ms", "max.message.bytes",
        "message.timestamp.type", "compression.type",
    } <= set(described)  # fmt: skip


def test_a_topic_made_for_kafka_is_made_with_all_its_configs(admin: AdminClient) -> None:
    name = unused_name()
    config = {
        "min.insync.replicas": "1",
        "unclean.leader.election.enable": "false",
        "segment.bytes": "1073741824",
        "segment.index.bytes": "10485760",
        "flush.messages": "10000",
        "file.delete.delay.ms": "60000",
        "message.timestamp.after.max.ms": "3600000",
        "preallocate": "false",
        "max.compaction.lag.ms": "86400000",
    }
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result(HUNG_SECONDS)
    described = config_of(admin, name)
    assert {key: described[key].value for key in config} == config


def test_the_config_of_an_unknown_topic_is_an_error(admin: AdminClient) -> None:
    resource = ConfigResource(ResourceType.TOPIC, "never-was")
    with pytest.raises(KafkaException) as failure:
        admin.describe_configs([resource])[resource].result(HUNG_SECONDS)
    assert error_of(failure) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_the_broker_describes_its_own_config(admin: AdminClient) -> None:
    broker_id = next(iter(admin.list_topics(timeout=HUNG_SECONDS).brokers))
    resource = ConfigResource(ResourceType.BROKER, str(broker_id))
    described = admin.describe_configs([resource])[resource].result(HUNG_SECONDS)
    asked_first = {"default.replication.factor", "num.partitions", "auto.create.topics.enable", "min.insync.replicas"}
    assert asked_first <= set(described)
    assert described["default.replication.factor"].value == "1"


# -- offsets --------------------------------------------------------------------------------------------------------


def test_offsets_are_listed_by_place_and_time(admin: AdminClient, raw: RawConnection, new_topic: NewTopicName) -> None:
    name = new_topic()
    raw.produce(name, build_batch(b"a", b"b", b"c", timestamp=START_MS))
    raw.produce(name, build_batch(b"late", timestamp=START_MS + 500))
    raw.produce(name, build_batch(b"early", timestamp=START_MS - 500))

    def listed(spec: OffsetSpec) -> tuple[int, int]:
        target = TopicPartition(name, 0)
        info = admin.list_offsets({target: spec})[target].result(HUNG_SECONDS)
        return info.offset, info.timestamp

    assert listed(OffsetSpec.earliest())[0] == 0
    assert listed(OffsetSpec.latest())[0] == 5
    assert listed(OffsetSpec.max_timestamp()) == (3, START_MS + 500)
    assert listed(OffsetSpec.for_timestamp(START_MS + 1)) == (1, START_MS + 1)
    assert listed(OffsetSpec.for_timestamp(START_MS + 3)) == (3, START_MS + 500)
    assert listed(OffsetSpec.for_timestamp(START_MS + 501))[0] == -1
    assert listed(OffsetSpec.for_timestamp(0))[0] == 0


def test_kafka_python_lists_the_same_offsets(broker: Broker, raw: RawConnection, new_topic: NewTopicName) -> None:
    name = new_topic()
    raw.produce(name, build_batch(b"a", b"b", timestamp=START_MS))
    target = kafka.TopicPartition(name, 0)

    def use(client: Any) -> None:
        for spec, offset in ((-2, 0), (-1, 2), (-3, 1), (START_MS + 1, 1)):
            assert client.list_partition_offsets({target: spec})[target].offset == offset, f"spec {spec}"

    with_kafka_python(broker, use)


def test_deleted_records_are_not_served_any_more(
    admin: AdminClient, raw: RawConnection, new_topic: NewTopicName
) -> None:
    name = new_topic()
    for number in range(6):
        raw.produce(name, build_batch(f"{number}".encode()))
    target = TopicPartition(name, 0, 4)
    assert admin.delete_records([target])[target].result(HUNG_SECONDS).low_watermark == 4
    assert raw.list_offset(name, -2).offset == 4
    assert raw.fetch(name, 3).error_code == 1  # OFFSET_OUT_OF_RANGE
    answer = raw.fetch(name, 4)
    assert answer.log_start_offset == 4
    assert read_values(answer.records) == {4: b"4", 5: b"5"}


def test_kafka_python_deletes_records_up_to_the_end(
    broker: Broker, raw: RawConnection, new_topic: NewTopicName
) -> None:
    name = new_topic()
    raw.produce(name, build_batch(b"a", b"b", b"c"))
    with_kafka_python(broker, lambda client: client.delete_records({kafka.TopicPartition(name, 0): -1}))
    assert raw.list_offset(name, -2).offset == 3
    assert raw.list_offset(name, -1).offset == 3
    assert raw.produce(name, build_batch(b"d")).base_offset == 3


def test_aiokafka_deletes_records(broker: Broker, raw: RawConnection, new_topic: NewTopicName) -> None:
    name = new_topic()
    raw.produce(name, build_batch(b"a"))
    raw.produce(name, build_batch(b"b"))
    target = aiokafka.TopicPartition(name, 0)
    wanted = {target: aiokafka.admin.RecordsToDelete(before_offset=1)}
    assert with_aiokafka(broker, lambda client: client.delete_records(wanted)) == {target: 1}


def test_records_past_the_end_cannot_be_deleted(
    admin: AdminClient, raw: RawConnection, new_topic: NewTopicName
) -> None:
    name = new_topic()
    raw.produce(name, build_batch(b"a"))
    target = TopicPartition(name, 0, 7)
    with pytest.raises(KafkaException) as failure:
        admin.delete_records([target])[target].result(HUNG_SECONDS)
    assert error_of(failure) == KafkaError.OFFSET_OUT_OF_RANGE
    assert read_values(raw.fetch(name, 0).records) == {0: b"a"}


# -- permissions ----------------------------------------------------------------------------------------------------


def test_there_are_no_acls_to_create_or_delete(admin: AdminClient) -> None:
    topic = (ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:alice", "*")
    binding = AclBinding(*topic, AclOperation.READ, AclPermissionType.ALLOW)
    every = AclBindingFilter(*topic, AclOperation.ANY, AclPermissionType.ANY)
    for asked in (admin.create_acls([binding])[binding], admin.delete_acls([every])[every]):
        with pytest.raises(KafkaException) as failure:
            asked.result(HUNG_SECONDS)
        assert error_of(failure) == KafkaError.SECURITY_DISABLED


def test_there_are_no_acls_to_describe(broker: Broker, admin: AdminClient) -> None:
    """confluent-kafka makes an empty list of the refusal."""
    topic = (ResourceType.TOPIC, None, ResourcePatternType.ANY, None, None)
    every = AclBindingFilter(*topic, AclOperation.ANY, AclPermissionType.ANY)
    assert admin.describe_acls(every).result(HUNG_SECONDS) == []
    any_topic = kafka.admin.ResourcePatternFilter(
        kafka.admin.ResourceType.TOPIC, None, kafka.admin.ACLResourcePatternType.ANY
    )
    wanted = kafka.admin.ACLFilter(
        None, None, kafka.admin.ACLOperation.ANY, kafka.admin.ACLPermissionType.ANY, any_topic
    )
    with pytest.raises(kafka.errors.SecurityDisabledError):
        with_kafka_python(broker, lambda client: client.describe_acls(wanted))


def test_everything_that_a_topic_supports_is_allowed(admin: AdminClient, new_topic: NewTopicName) -> None:
    name = new_topic()
    asked = admin.describe_topics(TopicCollection([name]), include_authorized_operations=True)[name]
    cluster = admin.describe_cluster(include_authorized_operations=True).result(HUNG_SECONDS)
    allowed = asked.result(HUNG_SECONDS).authorized_operations
    assert {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER_CONFIGS} <= set(allowed)
    assert {AclOperation.CREATE, AclOperation.DESCRIBE} <= set(cluster.authorized_operations)


# -- the cluster ----------------------------------------------------------------------------------------------------


def test_the_cluster_is_described_alike_by_every_client(broker: Broker, admin: AdminClient) -> None:
    confluent = admin.describe_cluster().result(HUNG_SECONDS)
    other = with_kafka_python(broker, lambda client: client.describe_cluster())
    third = with_aiokafka(broker, lambda client: client.describe_cluster())
    assert confluent.cluster_id == other["cluster_id"] == third["cluster_id"]
    assert [f"{node.host}:{node.port}" for node in confluent.nodes] == [broker.bootstrap]
    assert [node["broker_id"] for node in other["brokers"]] == [node.id for node in confluent.nodes]
    assert confluent.controller is not None


def test_log_dirs_tell_the_size_of_each_partition(broker: Broker, raw: RawConnection, new_topic: NewTopicName) -> None:
    name = new_topic(partitions=2)
    raw.produce(name, build_batch(b"x" * 10_000))

    def use(client: Any) -> dict[int, int]:
        (answer,) = client.describe_log_dirs()
        assert all(directory["error_code"] == 0 for directory in answer["log_dirs"])
        return {
            partition["partition_index"]: partition["partition_size"]
            for directory in answer["log_dirs"]
            for topic in directory["topics"]
            if topic["name"] == name
            for partition in topic["partitions"]
        }

    sizes = with_kafka_python(broker, use)
    assert sorted(sizes) == [0, 1]
    assert sizes[0] > sizes[1] >= 0
