"""(k) The other doors beside Kafka's in the same run: REST, gRPC and Flume."""

from __future__ import annotations

import json
import statistics
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.batches import order_values
from bench.native import finished
from bench.rows import Row, at_least
from bench.run import Run
from bench.servers import Server, serving, start_node
from bench.topics import create_topic

TOPIC = "bench"
PARTITIONS = 4
CONNECTIONS = 32
BATCH_SIZES = (100, 1_000)
BATCH_CONNECTIONS = 4
IN_FLIGHT = 5
VALUE_BYTES = 100
WARM_UP_SECONDS = 0.3

Measure = Callable[[], dict[str, float]]


def rows(run: Run) -> Iterator[Row]:
    directory = run.directory("doors")
    empty = Server([sys.executable, "-m", "bench.empty_app"], directory / "empty.log")
    with serving(empty), serving(start_node(directory / "node")) as node:
        create_topic(node.address, TOPIC, PARTITIONS)
        doors = _Doors(run, node, empty)
        run.say(f"single records, {CONNECTIONS} connections")
        yield doors.row("REST, one record a request", doors.rest_single, doors.empty_handler, "empty handler", 0.4)
        yield doors.row("Flume, one record a request", doors.flume_single, doors.kafka_single, "Kafka's door", 0.8)
        for size in BATCH_SIZES:
            run.say(f"{size:,} records a request, {BATCH_CONNECTIONS * IN_FLIGHT} requests under way")
            batches = _Batches(run, node, size)
            for name, measure in (("REST", batches.rest), ("gRPC stream", batches.grpc)):
                yield doors.row(
                    f"{name}, {size:,} records a request", measure, batches.kafka, "Kafka's door", 0.25, size
                )


class _Doors:
    """Every measurement is `requests` answered in `seconds`, from clients that cost the machine little."""

    def __init__(self, run: Run, node: Server, empty: Server) -> None:
        self._run = run
        self._node = node
        self._empty = empty
        (value,) = order_values(VALUE_BYTES, 1)
        self._kafka_single = run.one_record_frames(TOPIC, PARTITIONS)
        self._flume = _frames_file(run, "flume", [_flume_produce(number, value) for number in range(PARTITIONS)])
        self._rest = _frames_file(run, "rest", [_rest_produce(number, [value]) for number in range(PARTITIONS)])

    def row(self, name: str, ours: Measure, limit: Measure, limit_name: str, goal: float, records: int = 1) -> Row:
        figures: list[dict[str, float]] = []
        limits: list[dict[str, float]] = []
        for _ in range(self._run.plan.repeats):
            limits.append(limit())
            self._node.settle()
            figures.append(ours())
            self._node.settle()
        return Row(
            scenario="doors",
            name=name,
            figure=records * _rate(figures),
            unit="records/s",
            limit=records * _rate(limits),
            limit_name=limit_name,
            goal=at_least(goal),
        )

    def rest_single(self) -> dict[str, float]:
        return self._exchange(self._node.doors["http"], self._rest, CONNECTIONS, "http")

    def empty_handler(self) -> dict[str, float]:
        return self._exchange(self._empty.doors["http"], self._rest, CONNECTIONS, "http")

    def flume_single(self) -> dict[str, float]:
        return self._exchange(self._node.doors["flume"], self._flume, CONNECTIONS, "framed")

    def kafka_single(self) -> dict[str, float]:
        return self._exchange(self._node.doors["kafka"], self._kafka_single, CONNECTIONS, "framed")

    def _exchange(self, door: tuple[str, int], frames: Path, connections: int, protocol: str) -> dict[str, float]:
        seconds = self._run.plan.request_seconds
        return self._run.native.run("exchange", *door, frames, connections, WARM_UP_SECONDS, seconds, protocol)


class _Batches:
    """Requests of many records, so many under way at a time: where a connection has one, by more connections."""

    def __init__(self, run: Run, node: Server, size: int) -> None:
        self._run = run
        self._node = node
        self._size = size
        values = order_values(VALUE_BYTES, size)
        self._kafka = run.batch_frames(f"doors-{size}", TOPIC, range(PARTITIONS), values)
        requests = [_rest_produce(number, values) for number in range(PARTITIONS)]
        self._rest = _frames_file(run, f"rest-{size}", requests)

    def kafka(self) -> dict[str, float]:
        arguments = (self._kafka, BATCH_CONNECTIONS, IN_FLIGHT, WARM_UP_SECONDS, self._run.plan.request_seconds)
        return self._run.native.run("requests", self._node.host, self._node.port, *arguments)

    def rest(self) -> dict[str, float]:
        times = (WARM_UP_SECONDS, self._run.plan.request_seconds)
        connections = BATCH_CONNECTIONS * IN_FLIGHT
        return self._run.native.run("exchange", *self._node.doors["http"], self._rest, connections, *times, "http")

    def grpc(self) -> dict[str, float]:
        shape = (TOPIC, PARTITIONS, self._size, VALUE_BYTES, BATCH_CONNECTIONS, IN_FLIGHT)
        arguments = (*self._node.doors["grpc"], *shape, WARM_UP_SECONDS, self._run.plan.request_seconds)
        command = [sys.executable, "-m", "bench.grpc_stream", *map(str, arguments)]
        return finished(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))


def _rate(results: Sequence[dict[str, float]]) -> float:
    return statistics.median(result["requests"] / result["seconds"] for result in results)


def _frames_file(run: Run, name: str, requests: Sequence[bytes]) -> Path:
    """Each request behind its length."""
    path = run.directory(f"doors-{name}") / "requests.frames"
    path.write_bytes(b"".join(struct.pack(">i", len(request)) + request for request in requests))
    return path


def _flume_produce(partition: int, value: bytes) -> bytes:
    topic = TOPIC.encode()
    produce, request_id, no_key = 0, 1, 0
    header = struct.pack(">hi", produce, request_id)
    place = struct.pack(f">h{len(topic)}si", len(topic), topic, partition)
    return header + place + struct.pack(">ii", no_key, len(value)) + value


def _rest_produce(partition: int, values: Sequence[bytes]) -> bytes:
    records = [{"value": value.decode(), "partition": partition} for value in values]
    body = json.dumps({"records": records}).encode()
    head = f"POST /api/v1/topics/{TOPIC}/records HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
