"""Topics and their configuration: names, types, defaults and limits as Kafka has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from uuid import UUID

from streamhouse.model.config_key import (
    INT32_MAX,
    INT64_MAX,
    ConfigKey,
    ConfigType,
    boolean,
    choice,
    cleanup_policy,
    integer,
    plain_name,
    plain_name_or_nothing,
)
from streamhouse.model.errors import InvalidConfig, InvalidPartitions
from streamhouse.model.idle_configs import IDLE_CONFIG_KEYS

MAX_PARTITIONS = 10_000
PARTITIONS_FIXED = "streamhouse.partitions.fixed"
LEAST_SEGMENT_BYTES = 1024 * 1024
MAX_SEGMENT_BYTES = 100 * 1024 * 1024
_LEAST_LAG, _MOST_LAG = "min.compaction.lag.ms", "max.compaction.lag.ms"

_EFFECTIVE_CONFIG_KEYS = (
    ConfigKey(
        name="cleanup.policy",
        type=ConfigType.LIST,
        default="delete",
        check=cleanup_policy,
        help="delete old segments, compact them by key, or both; empty keeps everything",
    ),
    ConfigKey(
        name="compression.type",
        type=ConfigType.STRING,
        default="producer",
        check=choice("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        help="the codec batches are stored with; 'producer' keeps what was sent",
    ),
    ConfigKey(
        name="delete.retention.ms",
        type=ConfigType.LONG,
        default="86400000",
        check=integer(0, INT64_MAX),
        help="how long compaction keeps a tombstone, a record without a value",
    ),
    ConfigKey(
        name="max.message.bytes",
        type=ConfigType.INT,
        default="1048588",
        check=integer(0, INT32_MAX),
        help="the largest record batch accepted",
    ),
    ConfigKey(
        name="message.timestamp.after.max.ms",
        type=ConfigType.LONG,
        default=str(INT64_MAX),
        check=integer(0, INT64_MAX),
        help="records whose time is further in the future are refused",
    ),
    ConfigKey(
        name="message.timestamp.before.max.ms",
        type=ConfigType.LONG,
        default=str(INT64_MAX),
        check=integer(0, INT64_MAX),
        help="records that are older than this are refused",
    ),
    ConfigKey(
        name="message.timestamp.type",
        type=ConfigType.STRING,
        default="CreateTime",
        check=choice("CreateTime", "LogAppendTime"),
        help="whose clock a record's timestamp is",
    ),
    ConfigKey(
        name="min.compaction.lag.ms",
        type=ConfigType.LONG,
        default="0",
        check=integer(0, INT64_MAX),
        help="compaction leaves records alone that are younger than this",
    ),
    ConfigKey(
        name="retention.bytes",
        type=ConfigType.LONG,
        default="-1",
        check=integer(-1, INT64_MAX),
        help="how many bytes a partition keeps; -1 keeps all",
    ),
    ConfigKey(
        name="retention.ms",
        type=ConfigType.LONG,
        default="604800000",
        check=integer(-1, INT64_MAX),
        help="how long records are kept; -1 keeps them forever",
    ),
    ConfigKey(
        name="segment.bytes",
        type=ConfigType.INT,
        default="1048576",
        check=integer(1024, INT32_MAX),
        help="a segment is uploaded when it holds this much, which is 1 MiB at least, or what the node's default is if "
        "that is less; more than 100 MiB means 100 MiB",
    ),
    ConfigKey(
        name="segment.ms",
        type=ConfigType.LONG,
        default="60000",
        check=integer(1, INT64_MAX),
        help="a segment is uploaded when its first record has waited this long",
    ),
    ConfigKey(
        name="streamhouse.agent.group",
        type=ConfigType.STRING,
        default="default",
        check=plain_name,
        help="the group of agents that may lead this topic",
    ),
    ConfigKey(
        name="streamhouse.durability",
        type=ConfigType.STRING,
        default="wal",
        check=choice("wal", "object"),
        help="where an acknowledged record is safe: on its agent's disk, or in the object store",
    ),
    ConfigKey(
        name=PARTITIONS_FIXED,
        type=ConfigType.BOOLEAN,
        default="false",
        check=boolean,
        help="whether the number of partitions stays as it is, so that a key stays in its partition",
    ),
    ConfigKey(
        name="streamhouse.validate",
        type=ConfigType.BOOLEAN,
        default="false",
        check=boolean,
        help="whether every record is read before its batch is taken, so that one which cannot be read is refused; "
        "compacted topics do so anyway",
    ),
    ConfigKey(
        name="streamhouse.zone",
        type=ConfigType.STRING,
        default="",
        check=plain_name_or_nothing,
        help="the zone whose agents lead this topic while there is one; empty for any",
    ),
)

CONFIG_KEYS: Mapping[str, ConfigKey] = MappingProxyType(
    {key.name: key for key in sorted((*_EFFECTIVE_CONFIG_KEYS, *IDLE_CONFIG_KEYS), key=lambda key: key.name)}
)
"""Every name that Kafka knows, and our own."""


def check_partition_count(count: int) -> None:
    if not 1 <= count <= MAX_PARTITIONS:
        raise InvalidPartitions(f"{count} is not a number of partitions", hint=f"use 1 to {MAX_PARTITIONS}")


def unknown_config(name: str) -> InvalidConfig:
    close = get_close_matches(name[:100], CONFIG_KEYS)
    hint = f"perhaps {' or '.join(close)}" if close else "the names are Kafka's, and some that begin with streamhouse."
    return InvalidConfig(f"unknown topic config {name[:100]!r}", hint=hint)


def check_config(
    config: Mapping[str, str | None],
    stored: Mapping[str, str] = MappingProxyType({}),
    *,
    least_segment_bytes: int = LEAST_SEGMENT_BYTES,
    node_defaults: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """The given overrides, normalised; raises InvalidConfig that names the key. What is `stored` already may stay,
    though it could not be set any more."""
    checked: dict[str, str] = {}
    for name, value in config.items():
        key = CONFIG_KEYS.get(name)
        if key is None:
            raise unknown_config(name)
        if value is None:
            raise InvalidConfig(f"topic config {name!r} has no value")
        try:
            checked[name] = key.check(value)
        except InvalidConfig as problem:
            raise InvalidConfig(f"topic config {name}: {problem.message}") from None
    new = {name: value for name, value in checked.items() if value != stored.get(name)}
    if "segment.bytes" in new and int(new["segment.bytes"]) < least_segment_bytes:
        raise InvalidConfig(f"topic config segment.bytes: {new['segment.bytes']} is less than {least_segment_bytes}")
    if new.get("remote.storage.enable") == "true":
        raise InvalidConfig(
            "topic config remote.storage.enable: there is no tiered storage",
            hint="leave it out: all segments are in the object store",
        )
    if new.keys() & {_LEAST_LAG, _MOST_LAG}:
        _check_lags(effective_config(checked, node_defaults))
    return checked


def _check_lags(config: Mapping[str, str]) -> None:
    least, most = config[_LEAST_LAG], config[_MOST_LAG]
    if int(least) > int(most):
        raise InvalidConfig(f"topic config {_LEAST_LAG}: {least} is more than {_MOST_LAG}, which is {most}")


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
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    validates_records: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_age_ms: int
    durability: str


def effective_config(overrides: Mapping[str, str], node_defaults: Mapping[str, str]) -> dict[str, str]:
    """Every config of a topic: its own, which may be empty, else the node's default, else Kafka's. What somebody wrote
    into the database that makes no sense counts for nothing: one topic may not keep all others from being led."""
    return {
        name: overrides[name]
        if name in overrides and _is_sound(key, overrides[name])
        else node_defaults.get(name, key.default)
        for name, key in CONFIG_KEYS.items()
    }


def _is_sound(key: ConfigKey, value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        key.check(value)
    except InvalidConfig:
        return False
    return True


def parse_log_config(config: Mapping[str, str]) -> LogConfig:
    """From an effective (complete) configuration."""
    return LogConfig(
        cleanup_policy=frozenset(filter(None, config["cleanup.policy"].split(","))),
        compression=config["compression.type"],
        delete_retention_ms=int(config["delete.retention.ms"]),
        max_message_bytes=int(config["max.message.bytes"]),
        min_compaction_lag_ms=int(config["min.compaction.lag.ms"]),
        stamps_append_time=config["message.timestamp.type"] == "LogAppendTime",
        timestamp_before_max_ms=int(config["message.timestamp.before.max.ms"]),
        timestamp_after_max_ms=int(config["message.timestamp.after.max.ms"]),
        validates_records=config["streamhouse.validate"] == "true",
        retention_bytes=int(config["retention.bytes"]),
        retention_ms=int(config["retention.ms"]),
        segment_bytes=min(int(config["segment.bytes"]), MAX_SEGMENT_BYTES),
        segment_age_ms=int(config["segment.ms"]),
        durability=config["streamhouse.durability"],
    )
