"""What operators' tools ask and a node without replicas, quotas and transactions answers: what is true, and little."""

from __future__ import annotations

from typing import Any

import pytest

from log_parts.batches import real
from log_parts.kafka import PRODUCE_VERSION, Kafka, produce_request
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import (
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_share_group_offsets,
    create_delegation_token,
    delete_share_group_offsets,
    describe_client_quotas,
    describe_configs,
    describe_delegation_token,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_share_group_offsets,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    expire_delegation_token,
    list_config_resources,
    list_partition_reassignments,
    list_transactions,
    produce,
    renew_delegation_token,
)

ALL_TYPES = {2, 4, 8, 16, 32}


def node_id_of(broker: Broker) -> int:
    return broker.node.broker.identity.node_id


@pytest.mark.parametrize("topics", [None, [("a", [0])]])
def test_no_reassignment_is_ever_under_way(kafka: Kafka, topics: Any) -> None:
    asked = topics and [
        list_partition_reassignments.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
        for name, indexes in topics
    ]

    answer = kafka.call(
        list_partition_reassignments, list_partition_reassignments.ListPartitionReassignmentsRequest(topics=asked), 0
    )

    assert (answer.error_code, answer.error_message, answer.topics) == (0, None, [])


@pytest.mark.parametrize("version", [0, 1])
def test_a_partition_is_reassigned_to_its_leader_and_to_nobody_else(
    broker: Broker, kafka: Kafka, topic: str, version: int
) -> None:
    wanted = {0: [node_id_of(broker)], 1: [99], 2: None, 3: [1]}

    def codes(name: str, partitions: dict[int, list[int] | None]) -> list[int]:
        asked = [
            alter_partition_reassignments.ReassignablePartition(partition_index=index, replicas=replicas)
            for index, replicas in partitions.items()
        ]
        request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            topics=[alter_partition_reassignments.ReassignableTopic(name=name, partitions=asked)]
        )
        (answer,) = kafka.call(alter_partition_reassignments, request, version).responses
        return [each.error_code for each in answer.partitions]

    assert codes(topic, wanted) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert codes(topic, {1: None}) == [ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
    assert codes("no-such-topic", {0: [1]}) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize("version", [1, 2])
def test_a_partition_stays_in_the_directory_that_it_is_in(kafka: Kafka, topic: str, version: int) -> None:
    (told,) = kafka.call(describe_log_dirs, describe_log_dirs.DescribeLogDirsRequest(topics=None), 4).results

    def codes(directory: str, name: str, *partitions: int) -> list[int]:
        asked = alter_replica_log_dirs.AlterReplicaLogDirTopic(name=name, partitions=list(partitions))
        moved = alter_replica_log_dirs.AlterReplicaLogDir(path=directory, topics=[asked])
        request = alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[moved])
        (answer,) = kafka.call(alter_replica_log_dirs, request, version).results
        assert answer.topic_name == name
        return [each.error_code for each in answer.partitions]

    assert codes(told.log_dir, topic, 0, 1, 99, -1) == [0, 0, *2 * [ErrorCode.REPLICA_NOT_AVAILABLE]]
    assert codes(told.log_dir, "no-such-topic", 0) == [ErrorCode.REPLICA_NOT_AVAILABLE]
    assert codes("/elsewhere", topic, 0) == [ErrorCode.LOG_DIR_NOT_FOUND]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_no_election_is_needed(kafka: Kafka, topic: str, version: int) -> None:
    named = [
        elect_leaders.TopicPartitions(topic=topic, partitions=[0, 1, 7]),
        elect_leaders.TopicPartitions(topic="no-such-topic", partitions=[0]),
    ]

    answer = kafka.call(elect_leaders, elect_leaders.ElectLeadersRequest(topic_partitions=named), version)
    of_all = kafka.call(elect_leaders, elect_leaders.ElectLeadersRequest(topic_partitions=None), version)

    assert [
        [each.error_code for each in of_topic.partition_result] for of_topic in answer.replica_election_results
    ] == [
        [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    ]
    assert (of_all.error_code, of_all.replica_election_results) == (0, [])


def test_idempotent_producers_are_described(kafka: Kafka, topic: str) -> None:
    batch = real(b"a", b"b", producer=(42, 3, 0))
    kafka.call(produce, produce_request(topic, batch), PRODUCE_VERSION)
    asked = [
        describe_producers.TopicRequest(name=topic, partition_indexes=[0, 1, 9]),
        describe_producers.TopicRequest(name="no-such-topic", partition_indexes=[0]),
    ]

    here, elsewhere = kafka.call(
        describe_producers, describe_producers.DescribeProducersRequest(topics=asked), 0
    ).topics

    with_one, without, missing = here.partitions
    (producer,) = with_one.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (42, 3, 1)
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)
    assert producer.last_timestamp > 0
    assert (without.error_code, without.active_producers) == (0, [])
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elsewhere.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_producers_of_a_partition_that_is_named_often_are_described_once(kafka: Kafka, topic: str) -> None:
    kafka.call(produce, produce_request(topic, real(b"a", producer=(42, 3, 0))), PRODUCE_VERSION)
    often = [describe_producers.TopicRequest(name=topic, partition_indexes=[0, 1] * 1_000)] * 2

    (answer,) = kafka.call(describe_producers, describe_producers.DescribeProducersRequest(topics=often), 0).topics

    assert [(each.partition_index, len(each.active_producers)) for each in answer.partitions] == [(0, 1), (1, 0)]


def test_what_is_wrong_with_a_name_is_told_in_brief_of_each_partition(kafka: Kafka) -> None:
    named = [elect_leaders.TopicPartitions(topic="\0" * 300, partitions=list(range(100)))]

    answer = kafka.call(elect_leaders, elect_leaders.ElectLeadersRequest(topic_partitions=named), 2)

    (told,) = answer.replica_election_results
    assert {each.error_code for each in told.partition_result} == {ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert max(len(each.error_message) for each in told.partition_result) <= 101


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_the_controller_alone(broker: Broker, kafka: Kafka, version: int) -> None:
    def asked(topic: str) -> Any:
        wanted = describe_quorum.TopicData(topic_name=topic, partitions=[describe_quorum.PartitionData()])
        return kafka.call(describe_quorum, describe_quorum.DescribeQuorumRequest(topics=[wanted]), version)

    answer = asked("__cluster_metadata")
    (partition,) = answer.topics[0].partitions

    assert (answer.error_code, partition.error_code, partition.leader_id) == (0, 0, node_id_of(broker))
    assert [voter.replica_id for voter in partition.current_voters] == [node_id_of(broker)]
    assert partition.observers == []
    if version == 2:
        (node,) = answer.nodes
        assert f"{node.listeners[0].host}:{node.listeners[0].port}" == broker.bootstrap
    assert asked("other").topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_nobody_has_a_quota_a_password_or_a_transaction(kafka: Kafka) -> None:
    quotas = kafka.call(describe_client_quotas, describe_client_quotas.DescribeClientQuotasRequest(), 1)
    users = kafka.call(
        describe_user_scram_credentials,
        describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=None),
        0,
    )
    user = kafka.call(
        describe_user_scram_credentials,
        describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
            users=[describe_user_scram_credentials.UserName(name="alice")]
        ),
        0,
    )
    transactions = kafka.call(list_transactions, list_transactions.ListTransactionsRequest(), 2)
    transaction = kafka.call(
        describe_transactions, describe_transactions.DescribeTransactionsRequest(transactional_ids=["t"]), 0
    )

    assert (quotas.error_code, quotas.entries) == (0, [])
    assert (users.error_code, users.results) == (0, [])
    assert [(each.user, each.error_code) for each in user.results] == [("alice", ErrorCode.RESOURCE_NOT_FOUND)]
    assert (transactions.error_code, transactions.transaction_states) == (0, [])
    assert [each.error_code for each in transaction.transaction_states] == [ErrorCode.TRANSACTIONAL_ID_NOT_FOUND]


@pytest.mark.parametrize(
    ("messages", "request_type"),
    [
        (create_delegation_token, create_delegation_token.CreateDelegationTokenRequest),
        (renew_delegation_token, renew_delegation_token.RenewDelegationTokenRequest),
        (expire_delegation_token, expire_delegation_token.ExpireDelegationTokenRequest),
        (describe_delegation_token, describe_delegation_token.DescribeDelegationTokenRequest),
    ],
)
def test_delegation_tokens_are_refused_as_where_nobody_logs_in(kafka: Kafka, messages: Any, request_type: Any) -> None:
    for version in range(messages.MIN_VERSION, messages.MAX_VERSION + 1):
        answer = kafka.call(messages, request_type(), version)
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_no_share_group_stands_anywhere(kafka: Kafka, topic: str) -> None:
    named = describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(group_id="nowhere", topics=None)
    beginning = alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    altered = alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[beginning])
    deleted = delete_share_group_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name=topic)

    told = [
        kafka.call(
            describe_share_group_offsets,
            describe_share_group_offsets.DescribeShareGroupOffsetsRequest(groups=[named, named]),
            version,
        ).groups
        for version in (0, 1)
    ]
    not_altered = kafka.call(
        alter_share_group_offsets,
        alter_share_group_offsets.AlterShareGroupOffsetsRequest(group_id="nowhere", topics=[altered]),
        0,
    )
    not_deleted = kafka.call(
        delete_share_group_offsets,
        delete_share_group_offsets.DeleteShareGroupOffsetsRequest(group_id="nowhere", topics=[deleted]),
        0,
    )

    for answer in (*told[0], *told[1], not_altered, not_deleted):
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert answer.error_message == "there is no share group 'nowhere'"
    assert [len(groups) for groups in told] == [1, 1]
    assert not_altered.responses == not_deleted.responses == []


def test_resources_with_configs_are_listed_by_their_type(broker: Broker, kafka: Kafka, topic: str) -> None:
    def listed(*types: int, version: int = 1) -> Any:
        request = list_config_resources.ListConfigResourcesRequest(resource_types=list(types))
        return kafka.call(list_config_resources, request, version)

    everything = {(each.resource_type, each.resource_name) for each in listed().config_resources}
    assert everything >= {(2, topic), (4, str(node_id_of(broker))), (8, str(node_id_of(broker)))}
    assert {kind for kind, _ in everything} <= ALL_TYPES
    assert {each.resource_type for each in listed(4).config_resources} == {4}
    assert listed(16).config_resources == []
    assert listed(2, 99).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert listed(version=0).config_resources == []


@pytest.mark.parametrize(("kind", "name", "told"), [(16, "any", {}), (8, "node", {"root": "INFO"})])
def test_loggers_and_client_metrics_have_what_there_is(
    broker: Broker, kafka: Kafka, kind: int, name: str, told: dict[str, str]
) -> None:
    asked = describe_configs.DescribeConfigsResource(
        resource_type=kind,
        resource_name=str(node_id_of(broker)) if name == "node" else name,
        configuration_keys=None,
    )

    (answer,) = kafka.call(describe_configs, describe_configs.DescribeConfigsRequest(resources=[asked]), 4).results

    assert (answer.error_code, {each.name: each.value for each in answer.configs}) == (0, told)
