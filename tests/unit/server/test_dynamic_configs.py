"""Configs of brokers and groups that are set while nodes run: who they hold for, how long, and what wins over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from log_parts.batches import real
from log_parts.kafka import PRODUCE_VERSION, Kafka, produce_request
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import (
    alter_configs,
    consumer_group_heartbeat,
    describe_configs,
    incremental_alter_configs,
    produce,
)

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
OF_TOPIC, OF_NODE, OF_ALL, STATIC, DEFAULT, OF_GROUP = 1, 2, 3, 4, 5, 8


@pytest.fixture
def broker() -> Iterator[Broker]:
    """One for each test: what is set holds for all of its topics."""
    with Broker(default_partitions=1, segment_bytes=2**21) as broker:
        broker.create_topic("t")
        yield broker


def node_id_of(broker: Broker) -> str:
    return str(broker.node.broker.identity.node_id)


def alter(kafka: Kafka, kind: int, name: str, *changes: tuple[int, str, str | None], check: bool = False) -> Any:
    configs = [
        incremental_alter_configs.AlterableConfig(name=config, config_operation=operation, value=value)
        for operation, config, value in changes
    ]
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=check)
    return kafka.call(incremental_alter_configs, request, 1).responses[0]


def describe(kafka: Kafka, kind: int, name: str) -> dict[str, Any]:
    resource = describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    request = describe_configs.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (answer,) = kafka.call(describe_configs, request, 4).results
    assert answer.error_code == 0, answer.error_message
    return {each.name: each for each in answer.configs}


def synonyms(config: Any) -> list[tuple[str, str, int]]:
    return [(each.name, each.value, each.source) for each in config.synonyms]


def test_a_default_for_all_brokers_holds_for_topics_without_their_own(broker: Broker, kafka: Kafka) -> None:
    assert alter(kafka, BROKER, "", (SET, "log.retention.ms", "5000")).error_code == 0

    config = describe(kafka, TOPIC, "t")["retention.ms"]
    assert (config.value, config.config_source) == ("5000", OF_ALL)
    assert ("log.retention.ms", "604800000", DEFAULT) in synonyms(config)
    assert {name: each.value for name, each in describe(kafka, BROKER, "").items()} == {"log.retention.ms": "5000"}


def test_a_topics_config_may_not_contradict_the_brokers(broker: Broker, kafka: Kafka) -> None:
    alter(kafka, BROKER, "", (SET, "log.cleaner.max.compaction.lag.ms", "5000"))

    refused = alter(kafka, TOPIC, "t", (SET, "min.compaction.lag.ms", "5001"))
    assert (refused.error_code, "5000" in refused.error_message) == (ErrorCode.INVALID_CONFIG, True)
    assert alter(kafka, TOPIC, "t", (SET, "min.compaction.lag.ms", "5000")).error_code == 0


def test_the_nodes_own_wins_over_that_of_all_and_the_topics_own_over_both(broker: Broker, kafka: Kafka) -> None:
    node_id = node_id_of(broker)
    alter(kafka, BROKER, "", (SET, "log.segment.bytes", "3000000"))
    alter(kafka, BROKER, node_id, (SET, "log.segment.bytes", "4000000"))

    config = describe(kafka, BROKER, node_id)["log.segment.bytes"]
    assert (config.value, config.config_source, config.read_only) == ("4000000", OF_NODE, False)
    assert synonyms(config) == [
        ("log.segment.bytes", "4000000", OF_NODE),
        ("log.segment.bytes", "3000000", OF_ALL),
        ("log.segment.bytes", str(2**21), STATIC),
        ("log.segment.bytes", "1048576", DEFAULT),
    ]
    alter(kafka, TOPIC, "t", (SET, "segment.bytes", "5000000"))
    of_topic = describe(kafka, TOPIC, "t")["segment.bytes"]
    assert (of_topic.value, of_topic.config_source) == ("5000000", OF_TOPIC)
    assert len(of_topic.synonyms) == 5

    alter(kafka, TOPIC, "t", (DELETE, "segment.bytes", None))
    alter(kafka, BROKER, node_id, (DELETE, "log.segment.bytes", None))
    assert describe(kafka, TOPIC, "t")["segment.bytes"].value == "3000000"


def test_a_smaller_largest_message_is_refused_at_once_and_taken_again_after(broker: Broker, kafka: Kafka) -> None:
    batch = real(b"x" * 2000)

    def produced() -> int:
        answer = kafka.call(produce, produce_request("t", batch), PRODUCE_VERSION)
        return int(answer.responses[0].partition_responses[0].error_code)

    alter(kafka, BROKER, node_id_of(broker), (SET, "message.max.bytes", "1000"))
    assert produced() == ErrorCode.MESSAGE_TOO_LARGE

    alter(kafka, BROKER, node_id_of(broker), (DELETE, "message.max.bytes", None))
    assert produced() == ErrorCode.NONE


def test_they_are_there_after_a_restart(broker: Broker) -> None:
    with Kafka(broker.bootstrap) as kafka:
        alter(kafka, BROKER, "", (SET, "log.retention.ms", "5000"))
        alter(kafka, BROKER, node_id_of(broker), (SET, "message.max.bytes", "7000"))
    broker.restart()

    with Kafka(broker.bootstrap) as kafka:
        found = describe(kafka, TOPIC, "t")
        assert (found["retention.ms"].value, found["max.message.bytes"].value) == ("5000", "7000")
    (leader,) = broker.node.broker.led
    assert (leader.config.retention_ms, leader.config.max_message_bytes) == (5000, 7000)


def test_lists_are_appended_to_and_subtracted_from(broker: Broker, kafka: Kafka) -> None:
    assert alter(kafka, BROKER, "", (APPEND, "log.cleanup.policy", "compact")).error_code == 0
    assert describe(kafka, TOPIC, "t")["cleanup.policy"].value == "delete,compact"
    assert alter(kafka, BROKER, "", (SUBTRACT, "log.cleanup.policy", "delete")).error_code == 0

    assert describe(kafka, TOPIC, "t")["cleanup.policy"].value == "compact"


def test_a_broker_has_throttles_only_while_they_are_set(broker: Broker, kafka: Kafka) -> None:
    def throttles() -> dict[str, str]:
        found = describe(kafka, BROKER, node_id_of(broker))
        return {name: each.value for name, each in found.items() if "throttled" in name or "io.max" in name}

    assert throttles() == {}
    alter(kafka, BROKER, "", (SET, "leader.replication.throttled.rate", "5000"))
    alter(kafka, BROKER, node_id_of(broker), (SET, "follower.replication.throttled.rate", "6000"))

    rates = {"follower.replication.throttled.rate": "6000", "leader.replication.throttled.rate": "5000"}
    assert throttles() == rates


def test_alter_configs_replaces_all_that_were_set(broker: Broker, kafka: Kafka) -> None:
    alter(kafka, BROKER, "", (SET, "log.retention.ms", "5000"), (SET, "log.roll.ms", "6000"))
    configs = [alter_configs.AlterableConfig(name="log.roll.ms", value="7000")]
    resource = alter_configs.AlterConfigsResource(resource_type=BROKER, resource_name="", configs=configs)

    (answer,) = kafka.call(alter_configs, alter_configs.AlterConfigsRequest(resources=[resource]), 2).responses

    assert answer.error_code == 0
    assert {name: each.value for name, each in describe(kafka, BROKER, "").items()} == {"log.roll.ms": "7000"}


@pytest.mark.parametrize(
    ("kind", "name", "change", "code"),
    [
        (BROKER, "", (SET, "log.retention.ms", "soon"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", (SET, "log.segment.bytes", "2000"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", (SET, "retention.ms", "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", (SET, "num.partitions", "3"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", (SET, "no.such.config", "3"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", (DELETE, "num.partitions", None), ErrorCode.INVALID_REQUEST),
        (BROKER, "", (APPEND, "log.retention.ms", "3"), ErrorCode.INVALID_CONFIG),
        (BROKER, "99", (SET, "log.retention.ms", "3"), ErrorCode.INVALID_REQUEST),
        (BROKER, "x", (SET, "log.retention.ms", "3"), ErrorCode.INVALID_REQUEST),
        (GROUP, "", (SET, "consumer.session.timeout.ms", "50000"), ErrorCode.INVALID_REQUEST),
        (GROUP, "g", (SET, "no.such.config", "50000"), ErrorCode.INVALID_CONFIG),
        (GROUP, "g", (SET, "consumer.session.timeout.ms", "-1"), ErrorCode.INVALID_CONFIG),
        (GROUP, "g", (SET, "consumer.session.timeout.ms", "44999"), ErrorCode.INVALID_CONFIG),
        (GROUP, "g", (SET, "consumer.session.timeout.ms", "60001"), ErrorCode.INVALID_CONFIG),
        (LOGGER, "1", (SET, "root", "DEBUG"), ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "m", (SET, "interval.ms", "1000"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    broker: Broker, kafka: Kafka, kind: int, name: str, change: tuple[int, str, str | None], code: ErrorCode
) -> None:
    good = (SET, "consumer.heartbeat.interval.ms" if kind == GROUP else "log.roll.ms", "6000")

    answer = alter(kafka, kind, name, good, change)

    assert (answer.error_code, bool(answer.error_message)) == (code, True)
    assert describe(kafka, BROKER, "") == {}
    unchanged = str(broker.node.settings.group_consumer_heartbeat_interval)
    assert describe(kafka, GROUP, "g")["consumer.heartbeat.interval.ms"].value == unchanged


def test_what_is_deleted_of_client_metrics_is_gone_already(broker: Broker, kafka: Kafka) -> None:
    assert alter(kafka, CLIENT_METRICS, "m").error_code == ErrorCode.NONE
    assert alter(kafka, CLIENT_METRICS, "m", (DELETE, "interval.ms", None)).error_code == ErrorCode.NONE

    assert alter(kafka, CLIENT_METRICS, "", (DELETE, "interval.ms", None)).error_code == ErrorCode.INVALID_REQUEST
    both = (DELETE, "metrics", None), (SET, "interval.ms", "1000")
    assert alter(kafka, CLIENT_METRICS, "m", *both).error_code == ErrorCode.INVALID_REQUEST


def test_a_check_changes_nothing(broker: Broker, kafka: Kafka) -> None:
    assert alter(kafka, BROKER, "", (SET, "log.retention.ms", "5000"), check=True).error_code == 0
    assert alter(kafka, BROKER, "", (SET, "log.retention.ms", "x"), check=True).error_code == ErrorCode.INVALID_REQUEST

    assert describe(kafka, BROKER, "") == {}


def test_a_groups_configs_are_its_own(broker: Broker, kafka: Kafka) -> None:
    assert alter(kafka, GROUP, "g", (SET, "consumer.session.timeout.ms", "50000")).error_code == 0

    config = describe(kafka, GROUP, "g")["consumer.session.timeout.ms"]
    assert synonyms(config) == [
        ("consumer.session.timeout.ms", "50000", OF_GROUP),
        ("consumer.session.timeout.ms", "45000", DEFAULT),
    ]
    assert describe(kafka, GROUP, "other")["consumer.session.timeout.ms"].value == "45000"


def test_a_groups_config_without_effect_is_kept_and_told_again(broker: Broker, kafka: Kafka) -> None:
    assert alter(kafka, GROUP, "g", (SET, "share.auto.offset.reset", "earliest")).error_code == 0
    assert describe(kafka, GROUP, "g")["share.auto.offset.reset"].value == "earliest"
    assert alter(kafka, GROUP, "g", (SET, "streams.num.standby.replicas", "3")).error_code == ErrorCode.INVALID_CONFIG

    assert alter(kafka, GROUP, "g", (DELETE, "share.auto.offset.reset", None)).error_code == 0
    assert describe(kafka, GROUP, "g")["share.auto.offset.reset"].value == "latest"


def test_to_delete_what_a_group_never_had_is_no_mistake(broker: Broker, kafka: Kafka) -> None:
    changes = (SET, "consumer.session.timeout.ms", "50000"), (DELETE, "no.such.config", None)

    assert alter(kafka, GROUP, "g", *changes).error_code == 0
    assert describe(kafka, GROUP, "g")["consumer.session.timeout.ms"].value == "50000"


def test_a_groups_configs_hold_from_the_next_heartbeat_on(broker: Broker, kafka: Kafka) -> None:
    def beat(member_epoch: int) -> Any:
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id="beating",
            member_id="m",
            member_epoch=member_epoch,
            rebalance_timeout_ms=60_000 if member_epoch == 0 else -1,
            subscribed_topic_names=["t"] if member_epoch == 0 else None,
            topic_partitions=[] if member_epoch == 0 else None,
        )
        answer = kafka.call(consumer_group_heartbeat, request, 1)
        assert answer.error_code == 0, answer.error_message
        return answer

    assert beat(0).heartbeat_interval_ms == broker.node.settings.group_consumer_heartbeat_interval

    alter(kafka, GROUP, "beating", (SET, "consumer.heartbeat.interval.ms", "12345"))
    assert beat(1).heartbeat_interval_ms == 12345
