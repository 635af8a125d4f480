"""Topics and their configuration: names, types, defaults and limits as Kafka has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from uuid import UUID

from streamhouse.model.errors import InvalidConfig

MAX_PARTITIONS = 10_000
MAX_SEGMENT_BYTES = 100 * 1024 * 1024
_INT64_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")


class ConfigType(Enum):
    """What DescribeConfigs calls a config's type; the values are Kafka's."""

    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One topic config: how a client's string is checked and what it means when absent."""

    name: str
    type: ConfigType
    default: str
    check: Callable[[str], str]
    help: str


def _integer(low: int, high: int) -> Callable[[str], str]:
    def check(text: str) -> str:
        try:
            value = int(text)
        except ValueError:
            raise InvalidConfig(f"{text[:50]!r} is not a whole number") from None
        if not low <= value <= high:
            raise InvalidConfig(f"{value} is not between {low} and {high}")
        return str(value)

    return check


def _ratio(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        raise InvalidConfig(f"{text[:50]!r} is not a number") from None
    if not 0 <= value <= 1:
        raise InvalidConfig(f"{text[:50]!r} is not between 0 and 1")
    return str(value)


def _choice(*allowed: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in allowed:
            raise InvalidConfig(f"{text[:50]!r} is not one of {', '.join(allowed)}")
        return text

    return check


def _cleanup_policy(text: str) -> str:
    parts = [part.strip() for part in text.split(",")]
    if not parts or any(part not in ("delete", "compact") for part in parts) or len(set(parts)) != len(parts):
        raise InvalidConfig(f"{text[:50]!r} is not 'delete', 'compact' or both, separated by a comma")
    return ",".join(parts)


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise InvalidConfig(f"{text[:50]!r} is not 1 to 128 letters, digits, '.', '_' or '-'")
    return text


def _name_or_nothing(text: str) -> str:
    return _name(text) if text else text


CONFIG_KEYS: Mapping[str, ConfigKey] = MappingProxyType(
    {
        key.name: key
        for key in (
            ConfigKey(
                name="cleanup.policy",
                type=ConfigType.LIST,
                default="delete",
                check=_cleanup_policy,
                help="delete old segments, compact them by key, or both",
            ),
            ConfigKey(
                name="compression.type",
                type=ConfigType.STRING,
                default="producer",
                check=_choice("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
                help="the codec batches are stored with; 'producer' keeps what was sent",
            ),
            ConfigKey(
                name="delete.retention.ms",
                type=ConfigType.LONG,
                default="86400000",
                check=_integer(0, _INT64_MAX),
                help="how long compaction keeps a tombstone, a record without a value",
            ),
            ConfigKey(
                name="max.compaction.lag.ms",
                type=ConfigType.LONG,
                default=str(_INT64_MAX),
                check=_integer(1, _INT64_MAX),
                help="for Kafka's tools; has no effect, since compaction runs when it is told to",
            ),
            ConfigKey(
                name="max.message.bytes",
                type=ConfigType.INT,
                default="1048588",
                check=_integer(0, _INT32_MAX),
                help="the largest record batch accepted",
            ),
            ConfigKey(
                name="message.timestamp.type",
                type=ConfigType.STRING,
                default="CreateTime",
                check=_choice("CreateTime", "LogAppendTime"),
                help="whose clock a record's timestamp is",
            ),
            ConfigKey(
                name="min.cleanable.dirty.ratio",
                type=ConfigType.DOUBLE,
                default="0.5",
                check=_ratio,
                help="for Kafka's tools; has no effect, since compaction runs when it is told to",
            ),
            ConfigKey(
                name="min.compaction.lag.ms",
                type=ConfigType.LONG,
                default="0",
                check=_integer(0, _INT64_MAX),
                help="compaction leaves records alone that are younger than this",
            ),
            ConfigKey(
                name="retention.bytes",
                type=ConfigType.LONG,
                default="-1",
                check=_integer(-1, _INT64_MAX),
                help="how many bytes a partition keeps; -1 keeps all",
            ),
            ConfigKey(
                name="retention.ms",
                type=ConfigType.LONG,
                default="604800000",
                check=_integer(-1, _INT64_MAX),
                help="how long records are kept; -1 keeps them forever",
            ),
            ConfigKey(
                name="segment.bytes",
                type=ConfigType.INT,
                default="1048576",
                check=_integer(1024, MAX_SEGMENT_BYTES),
                help="a segment is uploaded when it holds this much",
            ),
            ConfigKey(
                name="segment.ms",
                type=ConfigType.LONG,
                default="60000",
                check=_integer(1, _INT64_MAX),
                help="a segment is uploaded when its first record has waited this long",
            ),
            ConfigKey(
                name="streamhouse.agent.group",
                type=ConfigType.STRING,
                default="default",
                check=_name,
                help="the group of agents that may lead this topic",
            ),
            ConfigKey(
                name="streamhouse.durability",
                type=ConfigType.STRING,
                default="wal",
                check=_choice("wal", "object"),
                help="where an acknowledged record is safe: on its agent's disk, or in the object store",
            ),
            ConfigKey(
                name="streamhouse.zone",
                type=ConfigType.STRING,
                default="",
                check=_name_or_nothing,
                help="the zone whose agents lead this topic while there is one; empty for any",
            ),
        )
    }
)


def check_config(config: Mapping[str, str | None]) -> dict[str, str]:
    """The given overrides, normalised; raises InvalidConfig that names the key."""
    checked: dict[str, str] = {}
    for name, value in config.items():
        key = CONFIG_KEYS.get(name)
        if key is None:
            raise InvalidConfig(f"unknown topic config {name[:100]!r}", hint=f"known: {', '.join(CONFIG_KEYS)}")
        if value is None:
            raise InvalidConfig(f"topic config {name!r} has no value")
        try:
            checked[name] = key.check(value)
        except InvalidConfig as problem:
            raise InvalidConfig(f"topic config {name}: {problem.message}") from None
    return checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as the metadata store holds it; `config` has only what differs from the node's defaults."""

    name: str
    topic_id: UUID
    partition_count: int
    config: Mapping[str, str]
    created_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """A topic's effective configuration, parsed: what its partition logs go by."""

    cleanup_policy: frozenset[str]
    compression: str
    delete_retention_ms: int
    max_message_bytes: int
    min_compaction_lag_ms: int
    stamps_append_time: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_age_ms: int
    durability: str


def effective_config(overrides: Mapping[str, str], node_defaults: Mapping[str, str]) -> dict[str, str]:
    """Every config of a topic: its own, else the node's default, else Kafka's."""
    return {name: overrides.get(name) or node_defaults.get(name) or key.default for name, key in CONFIG_KEYS.items()}


def parse_log_config(config: Mapping[str, str]) -> LogConfig:
    """From an effective (complete) configuration."""
    return LogConfig(
        cleanup_policy=frozenset(config["cleanup.policy"].split(",")),
        compression=config["compression.type"],
        delete_retention_ms=int(config["delete.retention.ms"]),
        max_message_bytes=int(config["max.message.bytes"]),
        min_compaction_lag_ms=int(config["min.compaction.lag.ms"]),
        stamps_append_time=config["message.timestamp.type"] == "LogAppendTime",
        retention_bytes=int(config["retention.bytes"]),
        retention_ms=int(config["retention.ms"]),
        segment_bytes=int(config["segment.bytes"]),
        segment_age_ms=int(config["segment.ms"]),
        durability=config["streamhouse.durability"],
    )
