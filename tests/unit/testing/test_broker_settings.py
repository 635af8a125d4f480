"""Settings of a broker inside a test: what is given is checked, and what is wrong is explained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition

from node.wait import eventually
from streamhouse.core.groups.classic_rebalance import ClassicState
from streamhouse.core.groups.classic_snapshot import GroupDescription
from streamhouse.model.errors import InvalidConfig
from streamhouse.model.settings import setting_kinds
from streamhouse.runtime.clock import SystemClock
from streamhouse.testing import Broker
from streamhouse.testing.broker_settings import _OF_KAFKA


def test_a_misspelled_setting_is_named_with_what_was_meant_and_where_the_list_is() -> None:
    with pytest.raises(InvalidConfig) as refused:
        Broker(defualt_partitions=1)

    said = str(refused.value)
    assert "no setting 'defualt_partitions'" in said
    assert "did you mean default_partitions?" in said
    assert "docs/configuration.md" in said


def test_a_keyword_of_the_broker_itself_is_found_as_well() -> None:
    with pytest.raises(InvalidConfig, match=r"no setting .durabel. \(did you mean durable"):
        Broker(durabel=True)


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("num_partitions", "default_partitions"),
        ("num.partitions", "default_partitions"),
        ("log.retention.ms", "retention_ms"),
        ("auto.create.topics.enable", "auto_create_topics"),
        ("partitions", "default_partitions"),
        ("port", "kafka_port"),
    ],
)
def test_who_names_a_kafka_brokers_config_is_told_the_setting(name: str, setting: str) -> None:
    config = name.replace("_", ".")
    with pytest.raises(
        InvalidConfig, match=rf"no setting '{name}' \(Kafka's {config} is {setting} here; every setting"
    ):
        Broker(**{name: 3})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("replication_factor", "replication.factor: the object store keeps the copies"),
        ("default.replication.factor", "default.replication.factor: the object store keeps the copies"),
        ("num.network.threads", "num.network.threads: a node has one event loop"),
    ],
)
def test_who_names_a_kafka_config_that_has_no_setting_is_told_why(name: str, why: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"no setting '{name}' \(there is none for Kafka's {why}; every setting"):
        Broker(**{name: 3})


def test_a_setting_in_capitals_is_found() -> None:
    with pytest.raises(InvalidConfig, match=r"did you mean group_initial_rebalance_delay\?"):
        Broker(GROUP_INITIAL_REBALANCE_DELAY=0)


def test_every_setting_that_is_told_so_is_one() -> None:
    assert set(_OF_KAFKA.values()) <= set(setting_kinds())


def test_a_name_like_no_other_is_told_where_the_list_is() -> None:
    with pytest.raises(InvalidConfig, match=r"no setting 'zookeeper' \(every setting, .* is in docs/configuration.md"):
        Broker(zookeeper="127.0.0.1:2181")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("default_partitions", "many", "not a whole number"),
        ("default_partitions", 1.5, "not a whole number"),
        ("auto_create_topics", "perhaps", "neither true nor false"),
        ("retention_ms", "a week", "write 250ms, 30s, 5m, 2h or 7d"),
        ("retention_ms", True, "not a duration"),
        ("segment_bytes", "big", "not a size"),
        ("log_level", 3, "not text"),
        ("default_partitions", 0, "must be 1 to"),
        ("kafka_port", 70_000, "0 to 65535"),
    ],
)
def test_a_value_that_is_none_names_its_setting(name: str, value: object, why: str) -> None:
    with pytest.raises(InvalidConfig, match=f"setting {name}.*{why}"):
        Broker(**{name: value})


def test_values_may_be_written_as_in_a_settings_file() -> None:
    with Broker(retention_ms="7d", segment_bytes="64KiB", lease_ttl=60_000, default_partitions="3") as broker:
        settings = broker.node.settings

    assert settings.retention_ms == 7 * 86_400_000
    assert settings.segment_bytes == 64 * 1024
    assert settings.lease_ttl == 60_000
    assert settings.default_partitions == 3


@pytest.mark.parametrize("name", ["objects", "metadata", "s3_endpoint"])
def test_a_store_elsewhere_is_refused_and_not_passed_over(name: str) -> None:
    with pytest.raises(InvalidConfig, match=f"setting {name}: .* stores of its own .*durable=True"):
        Broker(**{name: "s3://bucket"})


def test_a_broker_waits_for_nobody_before_the_first_generation_of_a_group_and_after_a_deletion() -> None:
    with Broker() as broker:
        assert broker.node.settings.group_initial_rebalance_delay == 0
        assert broker.node.settings.auto_create_delay == 0


def test_a_groups_first_consumer_has_its_partitions_while_time_stands_still() -> None:
    with Broker(default_partitions=1) as broker, joining_while_time_stands_still(broker) as consumer:
        eventually(lambda: assigned(consumer), "it has its partition")


def test_a_delay_that_was_asked_for_lets_time_pass_first() -> None:
    with (
        Broker(default_partitions=1, group_initial_rebalance_delay="3s") as broker,
        joining_while_time_stands_still(broker) as consumer,
    ):

        def has_joined() -> bool:
            consumer.poll(0.1)
            group = broker.node.broker.groups.describe("readers")
            return isinstance(group, GroupDescription) and group.state is ClassicState.PREPARING

        eventually(has_joined, "it has joined")
        assert not assigned(consumer)
        broker.faults.pass_time(3_000)
        eventually(lambda: assigned(consumer), "it has its partition")


@contextmanager
def joining_while_time_stands_still(broker: Broker) -> Iterator[Consumer]:
    """Nothing in the broker that waits for so long comes to its end, until it is told that time has passed."""
    broker.create_topic("orders")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers"})
    clock = SystemClock()
    now_ms, monotonic_ms = clock.now_ms(), clock.monotonic_ms()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemClock, "now_ms", lambda self: now_ms)
        patch.setattr(SystemClock, "monotonic_ms", lambda self: monotonic_ms)
        consumer.subscribe(["orders"])
        yield consumer
    consumer.close()


def assigned(consumer: Consumer) -> list[TopicPartition]:
    consumer.poll(0.1)
    return consumer.assignment()


def test_members_of_the_newer_protocol_beat_often_and_so_hear_of_a_rebalance_soon() -> None:
    with Broker() as broker:
        assert broker.node.settings.group_consumer_heartbeat_interval == 500


def test_waiting_may_be_asked_for() -> None:
    with Broker(group_initial_rebalance_delay="3s") as broker:
        assert broker.node.settings.group_initial_rebalance_delay == 3_000
