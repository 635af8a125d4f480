"""Configs of a Kafka broker that tools look at, as far as a node's settings and nature answer them."""

from __future__ import annotations

from typing import NamedTuple

from streamhouse.model.config_key import ConfigType
from streamhouse.model.settings import Settings


class BrokerConfig(NamedTuple):
    name: str
    type: ConfigType
    value: str
    help: str


def broker_configs(settings: Settings) -> list[BrokerConfig]:
    creates = str(settings.auto_create_topics).lower()
    return [
        BrokerConfig("auto.create.topics.enable", ConfigType.BOOLEAN, creates, "the setting auto_create_topics"),
        BrokerConfig("default.replication.factor", ConfigType.INT, "1", "the object store keeps the copies"),
        BrokerConfig("delete.topic.enable", ConfigType.BOOLEAN, "true", "topics can be deleted"),
        BrokerConfig(
            "num.partitions", ConfigType.INT, str(settings.default_partitions), "the setting default_partitions"
        ),
    ]
