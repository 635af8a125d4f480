"""The settings of a broker inside a test: a node's, with defaults that suit tests, checked where they are given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from streamhouse.model.errors import InvalidConfig
from streamhouse.model.setting_values import did_you_mean, parse_setting
from streamhouse.model.settings import Kind, Settings, setting_kinds
from streamhouse.server.kafka.broker_configs import NUMBERS

PORTS = ("kafka_port", "http_port", "grpc_port", "flume_port")
_OWN_STORES = ("metadata", "objects", *(name for name in setting_kinds() if name.startswith("s3_")))
_OF_KAFKA = MappingProxyType(
    {
        **NUMBERS,
        "auto.create.topics.enable": "auto_create_topics",
        "broker.id": "node_id",
        "broker.rack": "zone",
        "group.consumer.migration.policy": "group_consumer_migration_policy",
        "log.retention.hours": "retention_ms",
        "log.retention.minutes": "retention_ms",
        "log.retention.ms": "retention_ms",
        "log.roll.hours": "segment_age",
        "log.roll.ms": "segment_age",
        "log.segment.bytes": "segment_bytes",
        "message.max.bytes": "max_message_bytes",
        "node.id": "node_id",
        "offsets.retention.minutes": "offsets_retention",
        "partitions": "default_partitions",
        "port": "kafka_port",
    }
)
"""Which setting it is that a Kafka broker's config is about."""
_COPIES = "the object store keeps the copies"
_THREADS = "a node has one event loop"
_OF_KAFKA_ALONE = MappingProxyType(
    {
        "default.replication.factor": _COPIES,
        "min.insync.replicas": _COPIES,
        "num.io.threads": _THREADS,
        "num.network.threads": _THREADS,
        "offsets.topic.replication.factor": _COPIES,
        "replication.factor": _COPIES,
    }
)
"""Why there is no setting for it."""
_WHERE = "every setting, with its default, is in docs/configuration.md and in `streamhouse config`"
_DAY_MS = 24 * 3_600_000

TEST_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        # Free ones.
        **dict.fromkeys(PORTS, 0),
        "wal_file_bytes": 4 * 2**20,
        # Samples have old timestamps. They stay however long a test takes, unless it says how often retention is to
        # look, or lets time pass.
        "retention_interval": _DAY_MS,
        # A test's consumer is alone, or its test waits for all of them anyway.
        "group_initial_rebalance_delay": 0,
        # KIP-848 members hear of a rebalance with their next heartbeat, and beat as often as the broker says.
        "group_consumer_heartbeat_interval": 500,
        # As in Kafka: who deletes a topic and names it again has it again.
        "auto_create_delay": 0,
    }
)


def checked_settings(given: Mapping[str, object], keywords: Collection[str]) -> dict[str, Any]:
    """What was given, as `Settings` has it: durations may be milliseconds or texts such as "7d". `keywords`: what else
    whoever gives them may have meant."""
    checked = {name: _checked(name, value, keywords) for name, value in given.items()}
    Settings(**{**TEST_DEFAULTS, **checked})  # how they must agree
    return checked


def texts_of_configs(configs: Mapping[str, str | float | bool]) -> dict[str, str]:
    """Of a topic, as Kafka has them."""
    return {name: _text_of_config(name, value) for name, value in configs.items()}


def _text_of_config(name: str, value: str | float | bool) -> str:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
    raise InvalidConfig(f"topic config {name}: {value!r} is neither text nor a number", hint='such as "7d" or 3600000')


def _checked(name: str, value: object, keywords: Collection[str]) -> object:
    kind = setting_kinds().get(name)
    if kind is None:
        meant = _meant(name, [*setting_kinds(), *keywords])
        raise InvalidConfig(f"a broker has no setting {name!r}", hint=f"{meant} {_WHERE}".lstrip())
    if name in _OWN_STORES:
        raise InvalidConfig(
            f"setting {name}: a broker inside a test has stores of its own",
            hint="durable=True keeps them in a directory for a while, data_dir=… in one of yours",
        )
    is_milliseconds = kind is Kind.DURATION and isinstance(value, int) and not isinstance(value, bool)
    return value if is_milliseconds else parse_setting(value, kind, f"setting {name}")


def _meant(name: str, known: Collection[str]) -> str:
    config = name.replace("_", ".").replace("-", ".").lower()
    if config in _OF_KAFKA:
        return f"Kafka's {config} is {_OF_KAFKA[config]} here;"
    if config in _OF_KAFKA_ALONE:
        return f"there is none for Kafka's {config}: {_OF_KAFKA_ALONE[config]};"
    return did_you_mean(name.replace("-", "_").lower(), known, "")
