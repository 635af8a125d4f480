"""What goes through the listeners."""

from __future__ import annotations

from collections.abc import Iterator

from streamhouse.broker.measures import DoorMeasures
from streamhouse.server.metrics.exposition import Family, by_label
from streamhouse.server.metrics.node import NodeMeasures


def door_families(node: NodeMeasures) -> Iterator[Family]:
    doors = node.doors
    yield Family(
        "streamhouse_produce_requests_total",
        "counter",
        "Produce requests, by listener and by whether something in them was refused.",
        [
            ({"listener": name, "result": result}, count)
            for name, door in doors.items()
            for result, count in _by_result(door.produces_refused, _produces(door))
        ],
    )
    yield by_label(
        "counter",
        "streamhouse_produce_records_total",
        "Records that were taken in.",
        "listener",
        {name: door.produced_records for name, door in doors.items()},
    )
    yield by_label(
        "counter",
        "streamhouse_produce_bytes_total",
        "Bytes of record batches that were taken in.",
        "listener",
        {name: door.produced_bytes for name, door in doors.items()},
    )
    yield by_label(
        "histogram",
        "streamhouse_produce_seconds",
        "From a produce request to its answer, which says that all of it is durable.",
        "listener",
        {name: door.produce_seconds for name, door in doors.items()},
    )
    yield Family(
        "streamhouse_fetch_requests_total",
        "counter",
        "Fetch requests, by listener and by whether something in them was refused.",
        [
            ({"listener": name, "result": result}, count)
            for name, door in doors.items()
            for result, count in _by_result(door.fetches_refused, door.fetch_seconds.count)
        ],
    )
    yield by_label(
        "counter",
        "streamhouse_fetch_records_total",
        "Records that were given out, with those of a first batch that are before the offset that was asked for.",
        "listener",
        {name: door.fetched_records for name, door in doors.items()},
    )
    yield by_label(
        "counter",
        "streamhouse_fetch_bytes_total",
        "Bytes of record batches that were given out.",
        "listener",
        {name: door.fetched_bytes for name, door in doors.items()},
    )
    yield by_label(
        "histogram",
        "streamhouse_fetch_seconds",
        "From a fetch request to its answer, with the wait for new records that the client allowed.",
        "listener",
        {name: door.fetch_seconds for name, door in doors.items()},
    )


def connection_families(node: NodeMeasures) -> Iterator[Family]:
    """Of the listeners whose connections are ours; grpc and HTTP have libraries for theirs."""
    listeners = node.listeners()
    yield by_label(
        "gauge",
        "streamhouse_connections",
        "Open connections.",
        "listener",
        {name: len(listener.connections) for name, listener in listeners.items()},
    )
    yield by_label(
        "gauge",
        "streamhouse_connections_limit",
        "How many there may be.",
        "listener",
        {name: listener.max_connections for name, listener in listeners.items()},
    )
    yield by_label(
        "gauge",
        "streamhouse_receive_bytes",
        "Requests that are partly received, or wait for others before them.",
        "listener",
        {name: listener.receive_budget.used_bytes for name, listener in listeners.items()},
    )
    yield by_label(
        "gauge",
        "streamhouse_receive_limit_bytes",
        "How much of them there may be.",
        "listener",
        {name: listener.receive_budget.limit_bytes for name, listener in listeners.items()},
    )
    yield by_label(
        "gauge",
        "streamhouse_unsent_bytes",
        "Answers that clients have not taken yet.",
        "listener",
        {name: listener.unsent_bytes for name, listener in listeners.items()},
    )
    yield by_label(
        "counter",
        "streamhouse_kafka_requests_total",
        "Kafka requests other than produce and fetch, by API.",
        "api",
        {**node.kafka_requests()},
    )


def _produces(door: DoorMeasures) -> int:
    return door.produce_seconds.count + door.produces_unanswered


def _by_result(refused: int, total: int) -> Iterator[tuple[str, int]]:
    yield "ok", max(0, total - refused)  # one that is refused now is in the total when it is answered
    yield "refused", refused
