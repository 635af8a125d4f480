"""The bytes in which consumers of the classic protocol subscribe and are assigned partitions, behind their version.

They are made and read by clients; a node reads them only where it must know what they mean, and none that name more
than a request may."""

from __future__ import annotations

from collections.abc import Iterable

from streamhouse.core.groups.embedded import EmbeddedSubscription, NamedPartition
from streamhouse.model.errors import MalformedRequest
from streamhouse.wire.kafka.embedded_size import check_assignment, check_subscription
from streamhouse.wire.kafka.items import MAX_ITEMS
from streamhouse.wire.kafka.messages import consumer_protocol_assignment as assignments
from streamhouse.wire.kafka.messages import consumer_protocol_subscription as subscriptions

_VERSION_BYTES = 2


class KafkaEmbeddedProtocol:
    def read_subscription(self, metadata: bytes) -> EmbeddedSubscription | None:
        version = min(_version(metadata), subscriptions.MAX_VERSION)
        try:
            check_subscription(metadata, _VERSION_BYTES, version, MAX_ITEMS)
            found = subscriptions.decode(memoryview(metadata), _VERSION_BYTES, len(metadata), version)
        except MalformedRequest:
            return None
        return EmbeddedSubscription(
            topics=tuple(found.topics),
            owned=tuple((topic.topic, index) for topic in found.owned_partitions for index in topic.partitions),
            rack_id=found.rack_id,
        )

    def read_assignment(self, assignment: bytes) -> tuple[NamedPartition, ...]:
        version = min(_version(assignment), assignments.MAX_VERSION)
        try:
            check_assignment(assignment, _VERSION_BYTES, MAX_ITEMS)
            found = assignments.decode(memoryview(assignment), _VERSION_BYTES, len(assignment), version)
        except MalformedRequest:
            return ()
        return tuple((topic.topic, index) for topic in found.assigned_partitions for index in topic.partitions)

    def write_assignment(self, partitions: Iterable[NamedPartition], metadata: bytes) -> bytes:
        by_topic: dict[str, list[int]] = {}
        for topic, index in partitions:
            by_topic.setdefault(topic, []).append(index)
        version = min(max(_version(metadata), assignments.MIN_VERSION), assignments.MAX_VERSION)
        message = assignments.ConsumerProtocolAssignment(
            assigned_partitions=[
                assignments.TopicPartition(topic=topic, partitions=indexes) for topic, indexes in by_topic.items()
            ]
        )
        return version.to_bytes(_VERSION_BYTES, "big") + b"".join(assignments.encode(message, version))


def _version(embedded: bytes) -> int:
    """Newer versions only add to older ones; what has none is refused when it is read."""
    return int.from_bytes(embedded[:_VERSION_BYTES], "big", signed=True) if len(embedded) >= _VERSION_BYTES else -1
