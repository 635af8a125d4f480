"""The Flume door, through its client library."""

from __future__ import annotations

from doors.record import Sample, Shown
from node.process import Node
from node.wait import eventually
from streamhouse.client.flume import Consumer, Producer


def write(node: Node, topic: str, samples: tuple[Sample, ...]) -> list[int]:
    with Producer(node.flume_address) as producer:
        return [producer.produce_to_partition(topic, 0, sample.key, sample.value or b"").offset for sample in samples]


def read(node: Node, topic: str, count: int) -> list[Shown]:
    """A null payload comes as an empty one."""
    found: list[Shown] = []
    with Consumer(node.flume_address, topic, 0, 0) as consumer:
        while len(found) < count:
            messages = eventually(consumer.fetch, f"more than {len(found)} of {count} messages")
            found += [Shown(offset=message.offset, value=message.payload) for message in messages]
    return found
