"""What goes in through any door comes out of every door, the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from doors import flume, grpc_door, kafka, python_client, rest
from doors.record import FLUME_SAMPLES, SAMPLES, Sample, Shown
from faults.workload import create_topic
from node.process import Node

Write = Callable[[Node, str, tuple[Sample, ...]], list[int]]
Read = Callable[[Node, str, int], list[Shown]]

WRITERS: dict[str, tuple[Write, tuple[Sample, ...]]] = {
    "kafka": (kafka.write, SAMPLES),
    "rest": (rest.write, SAMPLES),
    "grpc": (grpc_door.write, SAMPLES),
    "grpc-stream": (grpc_door.write_stream, SAMPLES),
    "flume": (flume.write, FLUME_SAMPLES),
    "python-over-kafka": (python_client.writer(python_client.over_kafka), SAMPLES),
    "python-over-grpc": (python_client.writer(python_client.over_grpc), SAMPLES),
}
READERS: dict[str, Read] = {
    "kafka": kafka.read,
    "rest": rest.read,
    "rest-messages": rest.read_messages,
    "server-sent-events": rest.read_events,
    "websocket": rest.read_socket,
    "grpc": grpc_door.read,
    "flume": flume.read,
    "python-over-kafka": python_client.reader(python_client.over_kafka),
    "python-over-grpc": python_client.reader(python_client.over_grpc),
}
_topics = itertools.count()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Its samples have times of their own, so that retention would delete them as old."""
    with Node(tmp_path_factory.mktemp("node"), "--retention-interval", "24h") as node:
        yield node


@pytest.mark.parametrize("writer", WRITERS)
def test_what_one_door_wrote_every_door_reads(node: Node, writer: str) -> None:
    write, samples = WRITERS[writer]
    topic = f"matrix-{next(_topics)}"
    create_topic(node.bootstrap, topic, 1)

    offsets = write(node, topic, samples)

    assert offsets == list(range(len(samples)))
    reference = kafka.read(node, topic, len(samples))
    for sample, stored in zip(samples, reference, strict=True):
        assert (stored.key, stored.value, stored.headers) == (sample.key, sample.value, sample.headers)
        assert sample.timestamp_ms in (None, stored.timestamp_ms)
    for name, read in READERS.items():
        expected = [_as_flume_shows(stored) for stored in reference] if name == "flume" else reference
        found = read(node, topic, len(samples))
        wrong = [(theirs, ours) for theirs, ours in zip(expected, found, strict=True) if not ours.agrees_with(theirs)]
        assert not wrong, f"{name} reads what {writer} wrote differently: {wrong}"


def _as_flume_shows(stored: Shown) -> Shown:
    """Its frames cannot tell null from empty."""
    return replace(stored, value=stored.value or b"")


def test_a_key_has_one_partition_whatever_the_door(node: Node) -> None:
    """Flume's own hash aside, which its clients compute themselves."""
    topic = f"matrix-{next(_topics)}"
    create_topic(node.bootstrap, topic, 7)
    keys = [f"customer-{number}".encode() for number in range(40)]

    by_door = {
        "kafka": kafka.partitions_of(node, topic, keys),
        "rest": rest.partitions_of(node, topic, keys),
        "grpc": grpc_door.partitions_of(node, topic, keys),
    }

    assert len(set(by_door["kafka"])) == 7
    assert by_door["rest"] == by_door["kafka"] == by_door["grpc"]
