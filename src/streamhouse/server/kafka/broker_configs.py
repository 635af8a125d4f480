"""Configs of a Kafka broker that tools look at, as far as a node's settings and nature answer them; all read-only."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from streamhouse.broker.broker import Identity
from streamhouse.model.broker_config import HTTP_ADDRESS_CONFIG
from streamhouse.model.config_key import ConfigType
from streamhouse.model.settings import Settings
from streamhouse.server.kafka.context import Endpoint

NUMBERS: Mapping[str, str] = MappingProxyType(
    {
        "connections.max.idle.ms": "idle_timeout",
        "group.consumer.heartbeat.interval.ms": "group_consumer_heartbeat_interval",
        "group.consumer.session.timeout.ms": "group_consumer_session_timeout",
        "group.initial.rebalance.delay.ms": "group_initial_rebalance_delay",
        "group.max.session.timeout.ms": "group_max_session_timeout",
        "group.max.size": "group_max_size",
        "group.min.session.timeout.ms": "group_min_session_timeout",
        "log.retention.check.interval.ms": "retention_interval",
        "max.connections": "max_connections",
        "num.partitions": "default_partitions",
        "socket.request.max.bytes": "max_request_bytes",
    }
)
"""Those that are the same number as a setting, with its name."""

_MINUTE_MS = 60_000


class BrokerConfig(NamedTuple):
    name: str
    type: ConfigType
    value: str
    help: str


def broker_configs(settings: Settings, identity: Identity, endpoint: Endpoint) -> list[BrokerConfig]:
    """By name."""
    return sorted([*_of_its_nature(settings, identity, endpoint), *_of_its_settings(settings)])


def _of_its_nature(settings: Settings, identity: Identity, endpoint: Endpoint) -> list[BrokerConfig]:
    node_id = identity.node_id
    address = f"PLAINTEXT://{endpoint.host}:{endpoint.port}"
    bound = f"PLAINTEXT://{settings.host}:{settings.kafka_port or endpoint.port}"
    return [
        BrokerConfig("advertised.listeners", ConfigType.LIST, address, "the setting advertise, or where it listens"),
        BrokerConfig("broker.id", ConfigType.INT, str(node_id), "the node id"),
        BrokerConfig("broker.rack", ConfigType.STRING, settings.zone, "the setting zone"),
        BrokerConfig("default.replication.factor", ConfigType.INT, "1", "the object store keeps the copies"),
        BrokerConfig("delete.topic.enable", ConfigType.BOOLEAN, "true", "topics can be deleted"),
        BrokerConfig("listeners", ConfigType.LIST, bound, "the settings host and kafka_port"),
        BrokerConfig("log.dirs", ConfigType.STRING, settings.data_dir, "the setting data_dir"),
        BrokerConfig("node.id", ConfigType.INT, str(node_id), "the node id"),
        BrokerConfig(
            HTTP_ADDRESS_CONFIG,
            ConfigType.STRING,
            identity.http_address,
            "where its HTTP port is: the setting advertise_http, or the host of advertise; empty if it has none",
        ),
        BrokerConfig("process.roles", ConfigType.LIST, "broker", "the metadata is in a database"),
    ]


def _of_its_settings(settings: Settings) -> list[BrokerConfig]:
    return [
        BrokerConfig(
            "auto.create.topics.enable",
            ConfigType.BOOLEAN,
            str(settings.auto_create_topics).lower(),
            "the setting auto_create_topics",
        ),
        BrokerConfig(
            "group.consumer.migration.policy",
            ConfigType.STRING,
            settings.group_consumer_migration_policy,
            "the setting group_consumer_migration_policy",
        ),
        BrokerConfig(
            "offsets.retention.minutes",
            ConfigType.INT,
            str(settings.offsets_retention // _MINUTE_MS),
            "the setting offsets_retention",
        ),
        *(
            BrokerConfig(name, ConfigType.INT, str(getattr(settings, setting)), f"the setting {setting}")
            for name, setting in NUMBERS.items()
        ),
    ]
