"""Kafka's configs of topics and groups that have no effect here: taken and told again, so that tools need no change.

Their types, limits and defaults are those of Kafka's `TopicConfig`, `LogConfig` and `GroupConfig`; where a release
changed a default, it is the one that says what happens here."""

from __future__ import annotations

import re

from streamhouse.model.config_key import (
    INT32_MAX,
    INT64_MAX,
    ConfigKey,
    ConfigType,
    boolean,
    choice,
    idle_key,
    integer,
    plain_name,
    ratio,
    throttled_replicas,
)
from streamhouse.model.errors import InvalidConfig

_NO_REPLICAS = "a partition has one leader and no followers"
_NO_FILES = "segments are objects, without files and indexes of their own on a disk"
_SYNCED = "what is acknowledged is durable already"
_TWO_LIMITS = "before.max.ms and after.max.ms have taken its place"
_COMPACTS_WHEN_TOLD = "compaction runs when it is told to"
_ONE_FORMAT = "there is one message format"
_ALL_IN_OBJECTS = "all segments are in the object store"
_OWN_LEVEL = "each codec has one level here"
_NO_SHARE_GROUPS = "there are no share groups"
_NO_STREAMS_GROUPS = "there are no streams groups"
_ASSIGNS_AT_ONCE = "members are assigned at once"
_DURATION = re.compile(r"P(?=[0-9T])([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+([.][0-9]+)?S)?)?")


def _flag(name: str, default: bool, reason: str) -> ConfigKey:
    return idle_key(name, ConfigType.BOOLEAN, str(default).lower(), boolean, reason)


def _long(name: str, default: int, reason: str, *, low: int = 0) -> ConfigKey:
    return idle_key(name, ConfigType.LONG, str(default), integer(low, INT64_MAX), reason)


def _int(name: str, default: int, reason: str, *, low: int = 0, high: int = INT32_MAX) -> ConfigKey:
    return idle_key(name, ConfigType.INT, str(default), integer(low, high), reason)


def _gzip_level(text: str) -> str:
    """1 to 9, and -1 for zlib's own choice."""
    level = integer(-1, 9)(text)
    return integer(1, 9)(text) if level == "0" else level


def _share_reset(text: str) -> str:
    kind, _, duration = text.partition(":")
    if text not in ("earliest", "latest") and not (kind == "by_duration" and _DURATION.fullmatch(duration)):
        raise InvalidConfig(f"{text[:50]!r} is not earliest, latest, or by_duration: and a duration such as PT1H")
    return text


IDLE_CONFIG_KEYS: tuple[ConfigKey, ...] = (
    idle_key("compression.gzip.level", ConfigType.INT, "-1", _gzip_level, _OWN_LEVEL),
    _int("compression.lz4.level", 9, _OWN_LEVEL, low=1, high=17),
    _int("compression.zstd.level", 3, _OWN_LEVEL, low=-131_072, high=22),
    _long("file.delete.delay.ms", 60_000, _NO_FILES),
    _long("flush.messages", INT64_MAX, _SYNCED, low=1),
    _long("flush.ms", INT64_MAX, _SYNCED),
    idle_key("follower.replication.throttled.replicas", ConfigType.LIST, "", throttled_replicas, _NO_REPLICAS),
    _int("index.interval.bytes", 4096, _NO_FILES),
    idle_key("leader.replication.throttled.replicas", ConfigType.LIST, "", throttled_replicas, _NO_REPLICAS),
    _long("local.retention.bytes", -2, _ALL_IN_OBJECTS, low=-2),
    _long("local.retention.ms", -2, _ALL_IN_OBJECTS, low=-2),
    _long("max.compaction.lag.ms", INT64_MAX, _COMPACTS_WHEN_TOLD, low=1),
    _flag("message.downconversion.enable", True, _ONE_FORMAT),
    idle_key("message.format.version", ConfigType.STRING, "3.0-IV1", plain_name, _ONE_FORMAT),
    _long("message.timestamp.difference.max.ms", INT64_MAX, _TWO_LIMITS),
    idle_key("min.cleanable.dirty.ratio", ConfigType.DOUBLE, "0.5", ratio, _COMPACTS_WHEN_TOLD),
    _int("min.insync.replicas", 1, _NO_REPLICAS, low=1),
    _flag("preallocate", False, _NO_FILES),
    _flag("remote.log.copy.disable", False, _ALL_IN_OBJECTS),
    _flag("remote.log.delete.on.disable", False, _ALL_IN_OBJECTS),
    _flag("remote.storage.enable", False, f"{_ALL_IN_OBJECTS}, and cannot be true"),
    _int("segment.index.bytes", 10 * 1024 * 1024, _NO_FILES, low=4),
    _long("segment.jitter.ms", 0, "each partition uploads by its own first record"),
    _flag("unclean.leader.election.enable", False, "only an operator's command gives up what a lost disk had"),
)

IDLE_GROUP_CONFIG_KEYS: tuple[ConfigKey, ...] = (
    _int("consumer.assignment.interval.ms", 1000, _ASSIGNS_AT_ONCE, high=15_000),
    _flag("consumer.assignor.offload.enable", True, _ASSIGNS_AT_ONCE),
    _int("share.assignment.interval.ms", 1000, _NO_SHARE_GROUPS, high=15_000),
    _flag("share.assignor.offload.enable", True, _NO_SHARE_GROUPS),
    idle_key("share.auto.offset.reset", ConfigType.STRING, "latest", _share_reset, _NO_SHARE_GROUPS),
    _int("share.delivery.count.limit", 5, _NO_SHARE_GROUPS, low=2, high=10),
    _int("share.heartbeat.interval.ms", 5000, _NO_SHARE_GROUPS, low=5000, high=15_000),
    idle_key(
        "share.isolation.level",
        ConfigType.STRING,
        "read_uncommitted",
        choice("read_uncommitted", "read_committed"),
        _NO_SHARE_GROUPS,
    ),
    _int("share.partition.max.record.locks", 2000, _NO_SHARE_GROUPS, low=100, high=4000),
    _int("share.record.lock.duration.ms", 30_000, _NO_SHARE_GROUPS, low=15_000, high=60_000),
    _flag("share.renew.acknowledge.enable", True, _NO_SHARE_GROUPS),
    _int("share.session.timeout.ms", 45_000, _NO_SHARE_GROUPS, low=45_000, high=60_000),
    _int("streams.assignment.interval.ms", 1000, _NO_STREAMS_GROUPS, high=15_000),
    _flag("streams.assignor.offload.enable", True, _NO_STREAMS_GROUPS),
    _int("streams.heartbeat.interval.ms", 5000, _NO_STREAMS_GROUPS, low=5000, high=15_000),
    _int("streams.initial.rebalance.delay.ms", 3000, _NO_STREAMS_GROUPS),
    _int("streams.num.standby.replicas", 0, _NO_STREAMS_GROUPS, high=2),
    _int("streams.session.timeout.ms", 45_000, _NO_STREAMS_GROUPS, low=45_000, high=60_000),
)
