"""Partitions by the names of their topics, as the classic protocol has them, and by their ids, as KIP-848 has them."""

from __future__ import annotations

from collections.abc import Iterable

from streamhouse.core.groups.consumer_heartbeat import TopicIdPartition
from streamhouse.core.groups.consumer_target import Topics
from streamhouse.core.groups.embedded import NamedPartition


def identify(partitions: Iterable[NamedPartition], topics: Topics) -> frozenset[TopicIdPartition]:
    """Those that exist."""
    return frozenset(
        (topics[name].topic_id, partition)
        for name, partition in partitions
        if name in topics and 0 <= partition < topics[name].partition_count
    )


def name(partitions: Iterable[TopicIdPartition], topics: Topics) -> list[NamedPartition]:
    """In order, without those of topics that are gone."""
    names = {shape.topic_id: topic for topic, shape in topics.items()}
    return sorted((names[topic_id], partition) for topic_id, partition in partitions if topic_id in names)
