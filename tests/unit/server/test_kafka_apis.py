"""Every API in every version that is offered answers, and its answer can be read."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from log_parts.batches import real
from log_parts.kafka import Kafka, fetch_request, produce_request
from streamhouse.format.records import Record, decode_records, encode_records
from streamhouse.server.kafka.handlers import api_versions as api_versions_handler
from streamhouse.server.kafka.handlers import produce as produce_handler
from streamhouse.server.kafka.routing import ROUTES
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import (
    alter_configs,
    api_versions,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
)
from streamhouse.wire.kafka.registry import APIS

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
_OFFERED = [*(route.api for route in ROUTES.values()), produce_handler.API, api_versions_handler.API]
_OF_GROUPS = (11, 12, 13, 14, 15, 16, 42, 47, 68, 69, 77, 89)
"""They are asked in tests/unit/server/test_group_apis.py."""
_OF_OPERATORS = (34, 38, 39, 40, 41, 43, 45, 46, 48, 50, 55, 61, 65, 66, 74, 90, 91, 92)
"""They are asked in tests/unit/server/test_operators_apis.py."""
_EVERY_VERSION = [
    pytest.param(api.key, version, id=f"{api.name}-{version}")
    for api in _OFFERED
    if api.key not in (*_OF_GROUPS, *_OF_OPERATORS)
    for version in range(api.min_version, api.max_version + 1)
]


def topic_id_of(kafka: Kafka, topic: str) -> UUID:
    request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=topic)])
    found: UUID = kafka.call(metadata, request, 12).topics[0].topic_id
    return found


def a_request(key: int, version: int, topic: str, topic_id: UUID) -> Any:
    """A request about a topic that is there, with what the version has."""
    named = {"name": topic, "topic_id": topic_id}
    match APIS[key].name:
        case "Produce":
            data = produce.PartitionProduceData(index=0, records=bytes(real(b"value")))
            return produce.ProduceRequest(
                acks=-1,
                timeout_ms=1_000,
                topic_data=[produce.TopicProduceData(**named, partition_data=[data])],
            )
        case "Fetch":
            asked = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
            return fetch.FetchRequest(
                max_bytes=1_000,
                min_bytes=1,
                max_wait_ms=1,
                topics=[fetch.FetchTopic(topic=topic, topic_id=topic_id, partitions=[asked])],
            )
        case "ListOffsets":
            asked_offsets = [list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
            return list_offsets.ListOffsetsRequest(
                topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=asked_offsets)]
            )
        case "Metadata":
            return metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=topic)])
        case "OffsetCommit":
            committed = [offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)]
            return offset_commit.OffsetCommitRequest(
                group_id="group",
                topics=[offset_commit.OffsetCommitRequestTopic(**named, partitions=committed)],
            )
        case "OffsetFetch":
            return offset_fetch.OffsetFetchRequest(
                group_id="group",
                topics=[offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])],
                groups=[
                    offset_fetch.OffsetFetchRequestGroup(
                        group_id="group",
                        topics=[offset_fetch.OffsetFetchRequestTopics(**named, partition_indexes=[0])],
                    )
                ],
            )
        case "FindCoordinator":
            return find_coordinator.FindCoordinatorRequest(key="group", coordinator_keys=["group"])
        case "CreateTopics":
            wanted = create_topics.CreatableTopic(
                name=f"made-{version}-{topic}", num_partitions=1, replication_factor=1
            )
            return create_topics.CreateTopicsRequest(topics=[wanted], timeout_ms=1_000)
        case "DeleteTopics":
            return delete_topics.DeleteTopicsRequest(
                topics=[delete_topics.DeleteTopicState(name=topic)], topic_names=[topic]
            )
        case "DeleteRecords":
            before = [delete_records.DeleteRecordsPartition(partition_index=0, offset=0)]
            return delete_records.DeleteRecordsRequest(
                topics=[delete_records.DeleteRecordsTopic(name=topic, partitions=before)]
            )
        case "InitProducerId":
            return init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000)
        case "OffsetForLeaderEpoch":
            epochs = [offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=1)]
            return offset_for_leader_epoch.OffsetForLeaderEpochRequest(
                topics=[offset_for_leader_epoch.OffsetForLeaderTopic(topic=topic, partitions=epochs)]
            )
        case "DescribeAcls":
            return describe_acls.DescribeAclsRequest(resource_type_filter=TOPIC_RESOURCE, resource_name_filter=topic)
        case "CreateAcls":
            creation = create_acls.AclCreation(resource_type=TOPIC_RESOURCE, resource_name=topic, principal="User:a")
            return create_acls.CreateAclsRequest(creations=[creation])
        case "DeleteAcls":
            which = delete_acls.DeleteAclsFilter(resource_type_filter=TOPIC_RESOURCE, resource_name_filter=topic)
            return delete_acls.DeleteAclsRequest(filters=[which])
        case "DescribeConfigs":
            return describe_configs.DescribeConfigsRequest(
                resources=[
                    describe_configs.DescribeConfigsResource(
                        resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=None
                    )
                ],
                include_synonyms=True,
                include_documentation=True,
            )
        case "AlterConfigs":
            return alter_configs.AlterConfigsRequest(
                resources=[
                    alter_configs.AlterConfigsResource(
                        resource_type=TOPIC_RESOURCE,
                        resource_name=topic,
                        configs=[alter_configs.AlterableConfig(name="retention.ms", value="1000")],
                    )
                ]
            )
        case "DescribeLogDirs":
            return describe_log_dirs.DescribeLogDirsRequest(topics=None)
        case "CreatePartitions":
            return create_partitions.CreatePartitionsRequest(
                topics=[create_partitions.CreatePartitionsTopic(name=topic, count=9, assignments=None)]
            )
        case "IncrementalAlterConfigs":
            change = incremental_alter_configs.AlterableConfig(name="retention.ms", config_operation=0, value="1000")
            return incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=[
                    incremental_alter_configs.AlterConfigsResource(
                        resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[change]
                    )
                ]
            )
        case "DescribeCluster":
            return describe_cluster.DescribeClusterRequest()
        case "DescribeTopicPartitions":
            return describe_topic_partitions.DescribeTopicPartitionsRequest(
                topics=[describe_topic_partitions.TopicRequest(name=topic)], response_partition_limit=10
            )
        case "ApiVersions":
            return api_versions.ApiVersionsRequest(client_software_name="test", client_software_version="1")
        case name:
            raise AssertionError(f"there is no request for {name}")


def error_codes(answer: Any) -> set[int]:
    """Every error code anywhere in an answer."""
    if isinstance(answer, list):
        return set().union(*map(error_codes, answer))
    found = {answer.error_code} if hasattr(answer, "error_code") else set()
    for name in getattr(answer, "__struct_fields__", ()):
        found |= error_codes(getattr(answer, name))
    return found


_MODULES = {module.API_KEY: module for module in (
    alter_configs, api_versions, create_acls, create_partitions, create_topics, delete_acls, delete_records,
    delete_topics, describe_acls, describe_cluster, describe_configs, describe_log_dirs, describe_topic_partitions,
    fetch, find_coordinator, incremental_alter_configs, init_producer_id, list_offsets, metadata, offset_commit,
    offset_fetch, offset_for_leader_epoch, produce,
)}  # fmt: skip


_REFUSED = {
    describe_acls.API_KEY: ErrorCode.SECURITY_DISABLED,
    create_acls.API_KEY: ErrorCode.SECURITY_DISABLED,
    delete_acls.API_KEY: ErrorCode.SECURITY_DISABLED,
}
"""What is the same answer for everybody."""


@pytest.mark.parametrize(("key", "version"), _EVERY_VERSION)
def test_every_version_of_every_api_answers_well(kafka: Kafka, topic: str, key: int, version: int) -> None:
    request = a_request(key, version, topic, topic_id_of(kafka, topic))

    answer = kafka.call(_MODULES[key], request, version)

    assert error_codes(answer) in ({_REFUSED.get(key, ErrorCode.NONE)}, set())


@pytest.mark.parametrize(("key", "version"), _EVERY_VERSION)
def test_every_version_says_so_when_the_topic_is_not_there(kafka: Kafka, key: int, version: int) -> None:
    """An answer with an error must be as readable as one without."""
    request = a_request(key, version, "no-such-topic", UUID(int=99))
    if key == metadata.API_KEY:
        request = metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name="no-such-topic")], allow_auto_topic_creation=False
        )
        if version < 4:  # these have no way to ask without creating
            request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="not/a/name")])

    answer = kafka.call(_MODULES[key], request, version)

    about_topics = {
        produce, fetch, list_offsets, metadata, offset_commit, delete_topics, delete_records, offset_for_leader_epoch,
        describe_configs, alter_configs, create_partitions, incremental_alter_configs, describe_topic_partitions,
    }  # fmt: skip
    if _MODULES[key] in about_topics:
        assert error_codes(answer) - {ErrorCode.NONE} <= {
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        assert error_codes(answer) != {ErrorCode.NONE}


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("name", ["", "..", "a/b", "x" * 300])
def test_metadata_for_a_name_that_is_none_is_answered_in_every_version(kafka: Kafka, version: int, name: str) -> None:
    request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name)])

    (answer,) = kafka.call(metadata, request, version).topics

    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["", "..", "a/b", "x" * 300])
def test_a_name_that_is_none_is_told_apart_from_a_topic_that_is_not_there(kafka: Kafka, name: str) -> None:
    asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    described = describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[describe_topic_partitions.TopicRequest(name=name)], response_partition_limit=10
    )

    assert error_codes(kafka.call(metadata, asked, 12).topics) == {ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert error_codes(kafka.call(describe_topic_partitions, described, 0)) == {ErrorCode.INVALID_TOPIC_EXCEPTION}


@pytest.mark.parametrize("version", range(10, 14))
def test_metadata_for_an_id_that_is_not_there_is_answered_in_every_version(kafka: Kafka, version: int) -> None:
    asked = metadata.MetadataRequestTopic(name=None, topic_id=UUID(int=12345))

    (answer,) = kafka.call(metadata, metadata.MetadataRequest(topics=[asked]), version).topics

    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", range(10, 14))
def test_metadata_finds_a_topic_by_its_id(kafka: Kafka, topic: str, version: int) -> None:
    topic_id = topic_id_of(kafka, topic)
    asked = metadata.MetadataRequestTopic(name=None, topic_id=topic_id)

    (answer,) = kafka.call(metadata, metadata.MetadataRequest(topics=[asked]), version).topics

    assert (answer.error_code, answer.name, answer.topic_id) == (0, topic, topic_id)


def test_the_versions_that_are_told_are_the_versions_that_are_routed(kafka: Kafka) -> None:
    answer = kafka.call(api_versions, api_versions.ApiVersionsRequest(client_software_name="a"), 3)

    told = {item.api_key: (item.min_version, item.max_version) for item in answer.api_keys}
    routed = {api.key: (api.min_version, api.max_version) for api in _OFFERED}
    routed[produce.API_KEY] = (0, produce.MAX_VERSION)  # a white lie that librdkafka wants to hear
    assert told == routed


@pytest.mark.parametrize("version", [5, 100, 2**15 - 1])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(broker: Broker, version: int) -> None:
    with Kafka(broker.bootstrap) as kafka:
        request = bytearray(kafka.encode(api_versions, api_versions.ApiVersionsRequest(), 0))
        request[6:8] = version.to_bytes(2, "big")
        kafka.socket.sendall(request)

        answer = kafka.receive()

    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert len(answer.api_keys) == len(_OFFERED)


@pytest.mark.parametrize(
    ("key", "version"), [(0, 2), (0, 14), (1, 3), (1, 19), (3, 99), (11, 5), (12, 4), (999, 0), (-1, 0), (18, -1)]
)
def test_an_api_or_version_that_is_not_offered_closes_the_connection_and_no_other(
    broker: Broker, kafka: Kafka, topic: str, key: int, version: int
) -> None:
    with Kafka(broker.bootstrap) as other:
        header = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + bytes(4) + b"\xff\xff"
        other.socket.sendall((len(header) + 8).to_bytes(4, "big") + header + bytes(8))
        if key != api_versions.API_KEY:
            assert other.is_closed_by_broker()

    assert kafka.produce_values(topic, b"still here") == 0


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\1\0\4", b"\0\x03\0\x09\0\0\0\1\xff\xff", b"\xff" * 40])
def test_bytes_that_are_no_request_close_the_connection_and_no_other(
    broker: Broker, kafka: Kafka, topic: str, body: bytes
) -> None:
    with Kafka(broker.bootstrap) as other:
        other.socket.sendall(len(body).to_bytes(4, "big") + body)
        assert other.is_closed_by_broker()

    assert kafka.produce_values(topic, b"still here") == 0


def test_what_is_produced_in_any_version_is_fetched_in_any_version(kafka: Kafka, topic: str) -> None:
    topic_id = topic_id_of(kafka, topic)
    for version in range(produce.MIN_VERSION, produce.MAX_VERSION + 1):
        data = produce.PartitionProduceData(index=1, records=bytes(real(b"value-%d" % version)))
        request = produce.ProduceRequest(
            acks=1, topic_data=[produce.TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])]
        )
        assert error_codes(kafka.call(produce, request, version)) == {0}

    expected = [b"value-%d" % version for version in range(produce.MIN_VERSION, produce.MAX_VERSION + 1)]
    for version in range(fetch.MIN_VERSION, fetch.MAX_VERSION + 1):
        asked = fetch.FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=10**6)
        topics = [fetch.FetchTopic(topic=topic, topic_id=topic_id, partitions=[asked])]
        answer = kafka.call(fetch, fetch.FetchRequest(max_bytes=10**6, topics=topics), version)
        records = decode_records(bytes(answer.responses[0].partitions[0].records))
        assert [record.value for record in records] == expected


# --- one API after the other: what tells them apart ---


def test_a_batch_by_id_finds_its_topic_by_id_alone(broker: Broker, kafka: Kafka) -> None:
    """A topic whose name has sixteen letters is not found by an id made of them."""
    name = "orders-by-region"
    broker.create_topic(name)
    data = produce.PartitionProduceData(index=0, records=bytes(real(b"stray")))
    stray = produce.TopicProduceData(topic_id=UUID(bytes=name.encode()), partition_data=[data])

    answer = kafka.call(produce, produce.ProduceRequest(acks=-1, topic_data=[stray]), 13)

    assert error_codes(answer) == {ErrorCode.UNKNOWN_TOPIC_ID}


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_acks_that_mean_nothing_are_refused(kafka: Kafka, topic: str, acks: int) -> None:
    assert kafka.produce(topic, real(b"x"), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_a_transaction_is_refused(kafka: Kafka, topic: str) -> None:
    plain = produce_request(topic, real(b"x"))
    request = produce.ProduceRequest(transactional_id="tx", acks=-1, topic_data=plain.topic_data)

    assert error_codes(kafka.call(produce, request, 9)) == {ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT}


@pytest.mark.parametrize("version", range(1, 7))
def test_transactions_have_no_coordinator_and_clients_take_that_for_final(kafka: Kafka, version: int) -> None:
    request = find_coordinator.FindCoordinatorRequest(key="tx", coordinator_keys=["tx"], key_type=1)

    answer = kafka.call(find_coordinator, request, version)

    assert error_codes(answer) - {ErrorCode.NONE} == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_id_is_refused_for_good(kafka: Kafka, version: int) -> None:
    request = init_producer_id.InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1_000)

    assert error_codes(kafka.call(init_producer_id, request, version)) == {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    }


def test_a_damaged_batch_is_refused_and_the_rest_of_the_request_is_not(kafka: Kafka, topic: str) -> None:
    damaged = bytearray(real(b"x"))
    damaged[-1] ^= 1
    data = [
        produce.PartitionProduceData(index=0, records=bytes(damaged)),
        produce.PartitionProduceData(index=1, records=bytes(real(b"y"))),
        produce.PartitionProduceData(index=7, records=bytes(real(b"z"))),
    ]
    request = produce.ProduceRequest(acks=-1, topic_data=[produce.TopicProduceData(name=topic, partition_data=data)])

    answers = kafka.call(produce, request, 9).responses[0].partition_responses

    assert [answer.error_code for answer in answers] == [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [record.value for record in kafka.read(topic, partition=1)] == [b"y"]


def test_without_acks_nothing_is_answered_and_the_records_are_there(kafka: Kafka, topic: str) -> None:
    kafka.send_produce(topic, real(b"unanswered"), acks=0)
    assert kafka.produce_values(topic, b"answered") == 1

    assert [record.value for record in kafka.read(topic)] == [b"unanswered", b"answered"]


def test_without_acks_a_refusal_closes_the_connection(broker: Broker, topic: str) -> None:
    with Kafka(broker.bootstrap) as kafka:
        kafka.send_produce("no-such-topic", real(b"x"), acks=0)
        assert kafka.is_closed_by_broker()


@pytest.mark.parametrize("offset", [-5, 1, 10**15])
def test_an_offset_outside_the_log_is_out_of_range(kafka: Kafka, topic: str, offset: int) -> None:
    assert kafka.fetch(topic, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("max_bytes", "partition_max_bytes"), [(0, 10**6), (1, 10**6), (10**6, 0), (10**6, -1), (-1, 10**6)]
)
def test_however_little_is_asked_for_a_reader_gets_on(
    kafka: Kafka, topic: str, max_bytes: int, partition_max_bytes: int
) -> None:
    """Kafka gives the first batch whole, whatever its size, so that a consumer is never stuck."""
    for number in range(5):
        kafka.produce_values(topic, b"%d" % number)

    answer = kafka.fetch(topic, 0, max_bytes=max_bytes, partition_max_bytes=partition_max_bytes)

    assert [record.value for record in decode_records(bytes(answer.records or b""))] == [b"0"]


def test_a_fetch_of_a_session_that_nobody_has_is_refused(kafka: Kafka, topic: str) -> None:
    request = fetch_request(topic, 0, session_id=77, session_epoch=3)

    assert kafka.call(fetch, request, 12).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_fetch_of_a_session_that_nobody_has_is_refused_behind_a_produce_too(kafka: Kafka, topic: str) -> None:
    produced = kafka.encode(produce, produce_request(topic, real(b"x")), 9)
    fetched = kafka.encode(fetch, fetch_request(topic, 0, session_id=77, session_epoch=3), 12)
    kafka.socket.sendall(produced + fetched)

    kafka.receive()

    assert kafka.receive().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_leader_epoch_from_the_past_or_the_future_is_told_apart(kafka: Kafka, topic: str) -> None:
    def code(epoch: int) -> int:
        asked = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
        request = list_offsets.ListOffsetsRequest(
            topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=[asked])]
        )
        return int(kafka.call(list_offsets, request, 7).topics[0].partitions[0].error_code)

    assert code(-1) == ErrorCode.NONE
    assert code(1) == ErrorCode.NONE
    assert code(0) == ErrorCode.FENCED_LEADER_EPOCH
    assert code(2) == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_topics_named_twice_or_badly_are_refused_and_the_others_made(kafka: Kafka, topic: str) -> None:
    def wanted(name: str, count: int = 1, **config: str) -> create_topics.CreatableTopic:
        configs = [
            create_topics.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in config.items()
        ]
        return create_topics.CreatableTopic(name=name, num_partitions=count, replication_factor=1, configs=configs)

    fresh = f"{topic}-fresh"
    request = create_topics.CreateTopicsRequest(
        topics=[
            wanted(topic),
            wanted("twice"),
            wanted("twice"),
            wanted("not/a/name"),
            wanted("no-partitions", 0),
            wanted("too-many-partitions", 10_001),
            wanted("bad-config", retention_ms="soon"),
            wanted(fresh),
        ]
    )

    codes = [item.error_code for item in kafka.call(create_topics, request, 5).topics]

    assert codes == [
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.NONE,
    ]
    assert kafka.produce_values(fresh, b"x") == 0


def test_a_check_of_a_topic_makes_none(kafka: Kafka, topic: str) -> None:
    checked = create_topics.CreatableTopic(name=f"{topic}-checked", num_partitions=3, replication_factor=1)
    request = create_topics.CreateTopicsRequest(topics=[checked], validate_only=True)

    assert error_codes(kafka.call(create_topics, request, 5).topics) == {0}
    assert kafka.produce(f"{topic}-checked", real(b"x")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_configs_that_are_set_are_described_as_the_topics_own(kafka: Kafka, topic: str) -> None:
    alter = a_request(incremental_alter_configs.API_KEY, 1, topic, UUID(int=0))
    kafka.call(incremental_alter_configs, alter, 1)

    (answer,) = kafka.call(describe_configs, a_request(describe_configs.API_KEY, 4, topic, UUID(int=0)), 4).results

    found = {item.name: (item.value, item.config_source) for item in answer.configs}
    assert found["retention.ms"] == ("1000", 1)
    assert found["cleanup.policy"] == ("delete", 5)


def test_a_broker_tells_what_tools_ask_before_they_create_a_topic(broker: Broker, kafka: Kafka) -> None:
    node_id = str(broker.node.broker.identity.node_id)
    asked = describe_configs.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=node_id, configuration_keys=None
    )

    (answer,) = kafka.call(describe_configs, describe_configs.DescribeConfigsRequest(resources=[asked]), 4).results

    found = {item.name: item.value for item in answer.configs}
    assert len(found) == len(answer.configs)
    assert (
        found.items()
        >= {
            "auto.create.topics.enable": "true",
            "default.replication.factor": "1",
            "delete.topic.enable": "true",
            "min.insync.replicas": "1",
            "num.partitions": "2",
            "advertised.listeners": f"PLAINTEXT://{broker.bootstrap}",
            "node.id": node_id,
            "streamhouse.http.address": "",
            "log.retention.ms": "604800000",
            "group.consumer.migration.policy": "bidirectional",
            "group.max.session.timeout.ms": "1800000",
            "group.min.session.timeout.ms": "6000",
            "message.max.bytes": "1048588",
        }.items()
    )


def test_only_the_broker_configs_that_are_asked_for_are_told(broker: Broker, kafka: Kafka) -> None:
    asked = describe_configs.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=str(broker.node.broker.identity.node_id),
        configuration_keys=["num.partitions", "log.retention.ms"],
    )

    (answer,) = kafka.call(describe_configs, describe_configs.DescribeConfigsRequest(resources=[asked]), 4).results

    assert {item.name: item.read_only for item in answer.configs} == {"num.partitions": True, "log.retention.ms": False}


@pytest.mark.parametrize("asks", [True, False])
def test_who_asks_what_is_allowed_hears_of_all_that_there_is(kafka: Kafka, topic: str, asks: bool) -> None:
    """The bit fields that Kafka's own brokers answer with where nothing is restricted."""
    cluster = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=asks)
    described = metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=topic)],
        include_cluster_authorized_operations=asks,
        include_topic_authorized_operations=asks,
    )

    seen = kafka.call(metadata, described, 10)

    nothing_said = -(2**31)
    assert seen.topics[0].topic_authorized_operations == (3576 if asks else nothing_said)
    assert seen.cluster_authorized_operations == (8096 if asks else nothing_said)
    assert kafka.call(describe_cluster, cluster, 1).cluster_authorized_operations == (8096 if asks else nothing_said)
    page = kafka.call(describe_topic_partitions, a_request(75, 0, topic, UUID(int=0)), 0)
    assert page.topics[0].topic_authorized_operations == 3576


def test_a_group_finds_its_offsets_again_in_every_pair_of_versions(kafka: Kafka, topic: str) -> None:
    topic_id = topic_id_of(kafka, topic)
    for commit_version in range(offset_commit.MIN_VERSION, offset_commit.MAX_VERSION + 1):
        for fetch_version in range(offset_fetch.MIN_VERSION, offset_fetch.MAX_VERSION + 1):
            group, wanted = f"{topic}-{commit_version}-{fetch_version}", commit_version * 100 + fetch_version
            partition = offset_commit.OffsetCommitRequestPartition(
                partition_index=1, committed_offset=wanted, committed_metadata="note"
            )
            commit = offset_commit.OffsetCommitRequest(
                group_id=group,
                topics=[offset_commit.OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[partition])],
            )
            assert error_codes(kafka.call(offset_commit, commit, commit_version)) == {0}
            asked = offset_fetch.OffsetFetchRequest(
                group_id=group,
                topics=[offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=[1])],
                groups=[
                    offset_fetch.OffsetFetchRequestGroup(
                        group_id=group,
                        topics=[
                            offset_fetch.OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[1])
                        ],
                    )
                ],
            )
            answer = kafka.call(offset_fetch, asked, fetch_version)
            found = (answer.groups[0] if fetch_version >= 8 else answer).topics[0].partitions[0]
            assert (found.committed_offset, found.metadata, found.error_code) == (wanted, "note", 0)


def test_a_partition_named_twice_in_a_commit_is_answered_twice(kafka: Kafka, topic: str) -> None:
    twice = [
        offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset) for offset in (4, 5)
    ]
    request = offset_commit.OffsetCommitRequest(
        group_id=topic, topics=[offset_commit.OffsetCommitRequestTopic(name=topic, partitions=twice)]
    )

    answers = kafka.call(offset_commit, request, 7).topics[0].partitions

    assert [answer.error_code for answer in answers] == [0, 0]


def test_producer_ids_are_never_given_twice(broker: Broker) -> None:
    given: list[int] = []
    for _ in range(3):
        with Kafka(broker.bootstrap) as kafka:
            request = init_producer_id.InitProducerIdRequest(transactional_id=None)
            given += [kafka.call(init_producer_id, request, 4).producer_id for _ in range(5)]

    assert len(set(given)) == 15
    assert min(given) >= 0


def test_partitions_are_described_a_page_at_a_time(broker: Broker, kafka: Kafka) -> None:
    names = [f"paged-{number}" for number in range(3)]
    for name in names:
        broker.create_topic(name, partitions=3)
    found: list[tuple[str, int]] = []
    cursor = None
    for _ in range(10):
        request = describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name=name) for name in names],
            response_partition_limit=2,
            cursor=cursor,
        )
        answer = kafka.call(describe_topic_partitions, request, 0)
        found += [(item.name, part.partition_index) for item in answer.topics for part in item.partitions]
        if answer.next_cursor is None:
            break
        cursor = answer.next_cursor

    assert found == [(name, index) for name in names for index in range(3)]


def test_lists_that_javas_admin_client_goes_through_are_not_null(kafka: Kafka, topic: str) -> None:
    """It throws a NullPointerException at a null in these, which the protocol allows."""
    request = a_request(describe_topic_partitions.API_KEY, 0, topic, UUID(int=0))

    answer = kafka.call(describe_topic_partitions, request, 0)

    partition = answer.topics[0].partitions[0]
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, None), (-(2**63), None), (0, 1)],
)
def test_a_special_timestamp_is_known_since_its_version(
    kafka: Kafka, topic: str, timestamp: int, since: int | None
) -> None:
    asked = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = list_offsets.ListOffsetsRequest(topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=[asked])])
    for version in range(1, 12):
        (answer,) = kafka.call(list_offsets, request, version).topics[0].partitions
        is_known = since is not None and version >= since
        assert answer.error_code == (ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION), version


def test_records_of_a_topic_that_is_only_compacted_are_not_deleted(broker: Broker, kafka: Kafka) -> None:
    broker.create_topic("compacted", 1, {"cleanup.policy": "compact"})
    kafka.produce("compacted", encode_records([Record(0, 1_000, b"key", b"kept")]))
    asked = delete_records.DeleteRecordsPartition(partition_index=0, offset=1)
    request = delete_records.DeleteRecordsRequest(
        topics=[delete_records.DeleteRecordsTopic(name="compacted", partitions=[asked])], timeout_ms=30_000
    )

    (answer,) = kafka.call(delete_records, request, 2).topics[0].partitions

    assert answer.error_code == ErrorCode.POLICY_VIOLATION
    assert [record.value for record in kafka.read("compacted")] == [b"kept"]


def test_a_topic_that_is_named_often_is_described_once(kafka: Kafka, topic: str) -> None:
    """By its id, whatever names come with it, and by its name."""
    topic_id = topic_id_of(kafka, topic)
    by_id = [metadata.MetadataRequestTopic(name=f"name-{number}", topic_id=topic_id) for number in range(1_000)]
    by_name = [metadata.MetadataRequestTopic(name=topic)] * 1_000

    answer = kafka.call(metadata, metadata.MetadataRequest(topics=by_id + by_name), 12)

    assert [(each.name, each.topic_id, each.error_code) for each in answer.topics] == [(topic, topic_id, 0)] * 2


@pytest.mark.parametrize("version", range(1, 12))
def test_the_offsets_of_a_partition_that_is_named_twice_are_not_told(kafka: Kafka, topic: str, version: int) -> None:
    latest, earliest, other = (
        list_offsets.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        for index, timestamp in ((0, -1), (0, -2), (1, -1))
    )
    named = list_offsets.ListOffsetsTopic(name=topic, partitions=[latest, other, earliest])

    (answer,) = kafka.call(list_offsets, list_offsets.ListOffsetsRequest(topics=[named]), version).topics

    assert [(each.partition_index, each.error_code) for each in answer.partitions] == [
        (0, ErrorCode.INVALID_REQUEST),
        (1, ErrorCode.NONE),
    ]
