"""A broker's configs as Kafka spells them, where they are the defaults of topic configs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from streamhouse.model.config_key import INT32_MAX, INT64_MAX, ConfigKey, ConfigType, idle_key, integer
from streamhouse.model.topic import CONFIG_KEYS, LEAST_SEGMENT_BYTES

_SPELLINGS = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""A topic config, and what Kafka calls the broker's default for it."""

HTTP_ADDRESS_CONFIG = "streamhouse.http.address"
"""Of a broker, read-only: how who knows a node's Kafka port finds its HTTP port."""

THROTTLES = (
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
"""What a tool that reassigns partitions sets before and takes back after: a broker has them only in between."""

BROKER_CONFIG_KEYS: Mapping[str, ConfigKey] = MappingProxyType(
    dict(
        sorted(
            {
                **{_SPELLINGS[name]: CONFIG_KEYS[name] for name in _SPELLINGS},
                # As for a topic: what is newly set is not below Kafka's minimum.
                "log.segment.bytes": replace(
                    CONFIG_KEYS["segment.bytes"], check=integer(LEAST_SEGMENT_BYTES, INT32_MAX)
                ),
                **{
                    name: idle_key(
                        name,
                        ConfigType.LONG,
                        str(INT64_MAX),
                        integer(0, INT64_MAX),
                        "a partition has one leader and no followers",
                    )
                    for name in THROTTLES
                },
            }.items()
        )
    )
)
"""What can be set of a broker while it runs, by its spelling there; most are defaults of a topic config, and have that
one's name."""


def broker_spelling(topic_config: str) -> str:
    """Ours have one name wherever they stand."""
    return _SPELLINGS.get(topic_config, topic_config)
