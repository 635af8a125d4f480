"""Kafka's topic configs that have no effect here: taken and told again, so that tools which set them need no change.

Their types, limits and defaults are those of Kafka's `TopicConfig` and `LogConfig`; where a release changed a default,
it is the one that says what happens here."""

from __future__ import annotations

from collections.abc import Callable

from streamhouse.model.config_key import (
    INT32_MAX,
    INT64_MAX,
    ConfigKey,
    ConfigType,
    boolean,
    integer,
    plain_name,
    ratio,
    throttled_replicas,
)

_NO_REPLICAS = "a partition has one leader and no followers"
_NO_FILES = "segments are objects, without files and indexes of their own on a disk"
_SYNCED = "what is acknowledged is durable already"
_TWO_LIMITS = "before.max.ms and after.max.ms have taken its place"
_COMPACTS_WHEN_TOLD = "compaction runs when it is told to"
_ONE_FORMAT = "there is one message format"
_ALL_IN_OBJECTS = "all segments are in the object store"
_OWN_LEVEL = "each codec has one level here"


def _idle(name: str, type: ConfigType, default: str, check: Callable[[str], str], reason: str) -> ConfigKey:
    return ConfigKey(
        name=name, type=type, default=default, check=check, help=f"for Kafka's tools; has no effect, since {reason}"
    )


def _flag(name: str, default: bool, reason: str) -> ConfigKey:
    return _idle(name, ConfigType.BOOLEAN, str(default).lower(), boolean, reason)


def _long(name: str, default: int, reason: str, *, low: int = 0) -> ConfigKey:
    return _idle(name, ConfigType.LONG, str(default), integer(low, INT64_MAX), reason)


def _int(name: str, default: int, reason: str, *, low: int = 0, high: int = INT32_MAX) -> ConfigKey:
    return _idle(name, ConfigType.INT, str(default), integer(low, high), reason)


def _gzip_level(text: str) -> str:
    """1 to 9, and -1 for zlib's own choice."""
    level = integer(-1, 9)(text)
    return integer(1, 9)(text) if level == "0" else level


IDLE_CONFIG_KEYS: tuple[ConfigKey, ...] = (
    _idle("compression.gzip.level", ConfigType.INT, "-1", _gzip_level, _OWN_LEVEL),
    _int("compression.lz4.level", 9, _OWN_LEVEL, low=1, high=17),
    _int("compression.zstd.level", 3, _OWN_LEVEL, low=-131_072, high=22),
    _long("file.delete.delay.ms", 60_000, _NO_FILES),
    _long("flush.messages", INT64_MAX, _SYNCED, low=1),
    _long("flush.ms", INT64_MAX, _SYNCED),
    _idle("follower.replication.throttled.replicas", ConfigType.LIST, "", throttled_replicas, _NO_REPLICAS),
    _int("index.interval.bytes", 4096, _NO_FILES),
    _idle("leader.replication.throttled.replicas", ConfigType.LIST, "", throttled_replicas, _NO_REPLICAS),
    _long("local.retention.bytes", -2, _ALL_IN_OBJECTS, low=-2),
    _long("local.retention.ms", -2, _ALL_IN_OBJECTS, low=-2),
    _long("max.compaction.lag.ms", INT64_MAX, _COMPACTS_WHEN_TOLD, low=1),
    _flag("message.downconversion.enable", True, _ONE_FORMAT),
    _idle("message.format.version", ConfigType.STRING, "3.0-IV1", plain_name, _ONE_FORMAT),
    _long("message.timestamp.difference.max.ms", INT64_MAX, _TWO_LIMITS),
    _idle("min.cleanable.dirty.ratio", ConfigType.DOUBLE, "0.5", ratio, _COMPACTS_WHEN_TOLD),
    _int("min.insync.replicas", 1, _NO_REPLICAS, low=1),
    _flag("preallocate", False, _NO_FILES),
    _flag("remote.log.copy.disable", False, _ALL_IN_OBJECTS),
    _flag("remote.log.delete.on.disable", False, _ALL_IN_OBJECTS),
    _flag("remote.storage.enable", False, _ALL_IN_OBJECTS),
    _int("segment.index.bytes", 10 * 1024 * 1024, _NO_FILES, low=4),
    _long("segment.jitter.ms", 0, "each partition uploads by its own first record"),
    _flag("unclean.leader.election.enable", False, "only an operator's command gives up what a lost disk had"),
)
