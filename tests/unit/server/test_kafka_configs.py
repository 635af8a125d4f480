"""Changing a topic's configs: set, delete, append, subtract, and two who change them at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from log_parts.kafka import Kafka
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.handlers import incremental_alter_configs as handler
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.frame import RequestHeader
from streamhouse.wire.kafka.messages import alter_configs, incremental_alter_configs

TOPIC_RESOURCE = 2
SET, DELETE, APPEND, SUBTRACT = range(4)


def change(topic: str, *changes: tuple[int, str, str | None], kind: int = TOPIC_RESOURCE, check: bool = False) -> Any:
    configs = [
        incremental_alter_configs.AlterableConfig(name=name, config_operation=operation, value=value)
        for operation, name, value in changes
    ]
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=topic, configs=configs)
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=check)


def alter(kafka: Kafka, request: Any) -> int:
    return int(kafka.call(incremental_alter_configs, request, 1).responses[0].error_code)


def own_configs(broker: Broker, topic: str) -> dict[str, str]:
    return dict(broker.node.broker.topics.get(topic).config)


def test_configs_are_set_and_deleted_one_by_one(broker: Broker, kafka: Kafka, topic: str) -> None:
    assert alter(kafka, change(topic, (SET, "retention.ms", "5"), (SET, "segment.ms", "6"))) == 0
    assert alter(kafka, change(topic, (DELETE, "retention.ms", None))) == 0

    assert own_configs(broker, topic) == {"segment.ms": "6"}


def test_a_config_without_effect_is_set_and_deleted_like_any_other(broker: Broker, kafka: Kafka, topic: str) -> None:
    assert alter(kafka, change(topic, (SET, "min.insync.replicas", "2"), (SET, "flush.ms", "5"))) == 0
    assert own_configs(broker, topic) == {"min.insync.replicas": "2", "flush.ms": "5"}

    assert alter(kafka, change(topic, (DELETE, "flush.ms", None), (DELETE, "preallocate", None))) == 0

    assert own_configs(broker, topic) == {"min.insync.replicas": "2"}


def test_to_delete_a_config_that_does_not_exist_is_no_mistake(broker: Broker, kafka: Kafka, topic: str) -> None:
    assert alter(kafka, change(topic, (SET, "segment.ms", "6"), (DELETE, "no.such.config", None))) == 0

    assert own_configs(broker, topic) == {"segment.ms": "6"}


def test_lists_are_appended_to_and_subtracted_from(broker: Broker, kafka: Kafka, topic: str) -> None:
    assert alter(kafka, change(topic, (APPEND, "cleanup.policy", "compact"))) == 0
    assert own_configs(broker, topic) == {"cleanup.policy": "delete,compact"}
    assert alter(kafka, change(topic, (SUBTRACT, "cleanup.policy", "delete"))) == 0

    assert own_configs(broker, topic) == {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    "wrong",
    [
        (SET, "retention.ms", "soon"),
        (SET, "retention.ms", "7d"),  # which other doors take, and no Kafka broker
        (SET, "no.such.config", "1"),
        (SET, "min.insync.replicas", "many"),
        (APPEND, "retention.ms", "1"),
        (SUBTRACT, "retention.ms", "1"),
        (9, "retention.ms", "1"),
    ],
)
def test_one_wrong_change_leaves_all_as_it_was(
    broker: Broker, kafka: Kafka, topic: str, wrong: tuple[int, str, str | None]
) -> None:
    code = alter(kafka, change(topic, (SET, "segment.ms", "6"), wrong))

    assert code == ErrorCode.INVALID_CONFIG
    assert own_configs(broker, topic) == {}


def test_a_check_changes_nothing(broker: Broker, kafka: Kafka, topic: str) -> None:
    assert alter(kafka, change(topic, (SET, "segment.ms", "6"), check=True)) == 0

    assert own_configs(broker, topic) == {}


@pytest.mark.parametrize("operation", [SET, APPEND, SUBTRACT])
def test_a_config_without_a_value_is_refused_unless_it_is_deleted(
    broker: Broker, kafka: Kafka, topic: str, operation: int
) -> None:
    changes = (SET, "segment.ms", "6"), (operation, "cleanup.policy", None)

    assert alter(kafka, change(topic, *changes)) == ErrorCode.INVALID_REQUEST
    assert own_configs(broker, topic) == {}
    assert alter(kafka, change(topic, (DELETE, "cleanup.policy", None))) == ErrorCode.NONE
    assert alter(kafka, change(topic, (operation, "no.such.config", None))) == ErrorCode.INVALID_REQUEST
    assert alter(kafka, change("no-such-topic", (operation, "cleanup.policy", None))) == ErrorCode.INVALID_REQUEST


def test_a_list_may_be_subtracted_from_until_it_is_empty(broker: Broker, kafka: Kafka, topic: str) -> None:
    assert alter(kafka, change(topic, (SUBTRACT, "cleanup.policy", "delete"))) == ErrorCode.NONE

    found = broker.node.broker.topics.get(topic)
    assert own_configs(broker, topic) == {"cleanup.policy": ""}
    assert broker.node.broker.topics.config_of(found)["cleanup.policy"] == ""
    leader = broker.node.broker.topics.leader(found, 0)
    assert leader.config.cleanup_policy == frozenset()
    assert alter(kafka, change(topic, (SUBTRACT, "cleanup.policy", "delete"))) == ErrorCode.NONE
    assert alter(kafka, change(topic, (APPEND, "cleanup.policy", "compact"))) == ErrorCode.NONE
    assert own_configs(broker, topic) == {"cleanup.policy": "compact"}


def test_alter_configs_replaces_all(broker: Broker, kafka: Kafka, topic: str) -> None:
    alter(kafka, change(topic, (SET, "segment.ms", "6")))
    configs = [
        alter_configs.AlterableConfig(name="retention.ms", value="5"),
    ]
    resource = alter_configs.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=configs)

    kafka.call(alter_configs, alter_configs.AlterConfigsRequest(resources=[resource]), 2)

    assert own_configs(broker, topic) == {"retention.ms": "5"}


def test_two_who_change_different_configs_at_once_both_succeed(broker: Broker, topic: str) -> None:
    async def both() -> None:
        node = broker.node
        header = RequestHeader(44, 1, 1, None, 0)
        context = Context(node.broker, node.kafka.endpoint, header, 2**20, "127.0.0.1")
        await asyncio.gather(
            handler.handle(context, change(topic, (SET, "retention.ms", "5"))),
            handler.handle(context, change(topic, (SET, "segment.ms", "6"))),
        )

    asyncio.run_coroutine_threadsafe(both(), broker._loop).result(60)

    assert own_configs(broker, topic) == {"retention.ms": "5", "segment.ms": "6"}


def test_a_config_that_is_given_twice_is_refused_and_changes_nothing(broker: Broker, kafka: Kafka, topic: str) -> None:
    request = change(topic, (SET, "segment.ms", "6"), (SET, "retention.ms", "5"), (DELETE, "segment.ms", None))
    assert alter(kafka, request) == ErrorCode.INVALID_REQUEST

    configs = [alter_configs.AlterableConfig(name="segment.ms", value=value) for value in ("6", "7")]
    resource = alter_configs.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=configs)
    (answer,) = kafka.call(alter_configs, alter_configs.AlterConfigsRequest(resources=[resource]), 2).responses

    assert (answer.error_code, "segment.ms" in answer.error_message) == (ErrorCode.INVALID_REQUEST, True)
    assert own_configs(broker, topic) == {}


def test_a_resource_that_is_named_twice_is_refused_each_time_and_others_are_changed(
    broker: Broker, kafka: Kafka, topic: str
) -> None:
    broker.create_topic("other")
    once, again = change(topic, (SET, "segment.ms", "6")), change(topic, (SET, "retention.ms", "5"))
    request = change("other", (SET, "segment.ms", "6"))
    request.resources[:0] = once.resources + again.resources
    configs = [alter_configs.AlterableConfig(name="segment.ms", value="6")]
    resource = alter_configs.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=configs)
    replacing = alter_configs.AlterConfigsRequest(resources=[resource, resource])

    codes = [each.error_code for each in kafka.call(incremental_alter_configs, request, 1).responses]
    codes += [each.error_code for each in kafka.call(alter_configs, replacing, 2).responses]

    refused = ErrorCode.INVALID_REQUEST
    assert codes == [refused, refused, ErrorCode.NONE, refused, refused]
    assert (own_configs(broker, topic), own_configs(broker, "other")) == ({}, {"segment.ms": "6"})


def test_alter_configs_refuses_a_config_without_a_value(broker: Broker, kafka: Kafka, topic: str) -> None:
    configs = [alter_configs.AlterableConfig(name="retention.ms", value=None)]
    resource = alter_configs.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=configs)

    (answer,) = kafka.call(alter_configs, alter_configs.AlterConfigsRequest(resources=[resource]), 2).responses

    assert answer.error_code == ErrorCode.INVALID_REQUEST
