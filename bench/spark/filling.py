"""Topics full of records with keys, as ordinary producers write them, in segments before anything is measured."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from bench.batches import order_values, produce_frame
from bench.native import Native
from bench.servers import Server, ServerFailed
from bench.spark.plan import Topic
from bench.topics import create_topic
from streamhouse.client.planning import PlanningClient
from streamhouse.format.records import encode_columns
from streamhouse.format.rows import Record, columns_of

BATCH_BYTES = 128 << 10
"""Of values, in one request."""
DISTINCT_VALUES = 10_000
COMMIT_SECONDS = 120.0


def fill(
    native: Native,
    node: Server,
    endpoint: str,
    topic: Topic,
    frames: Path,
    *,
    partitions: int = 1,
    copies_of_key: int = 1,
    rounds: int = 1,
    config: dict[str, str] | None = None,
    name: str = "",
) -> str:
    """Creates the topic and writes its records in turn to all partitions; returns its name. What one round wrote
    is in segments before the next begins, so that there are as many segments at least."""
    name = name or topic.name
    create_topic(node.address, name, partitions, config)
    requests = list(_requests(topic, name, partitions, copies_of_key))
    client = PlanningClient(endpoint)
    try:
        for start in range(rounds):
            part = requests[len(requests) * start // rounds : len(requests) * (start + 1) // rounds]
            frames.write_bytes(b"".join(frame for _, frame in part))
            # One connection, so that each request goes out once and in order.
            native.run("requests", node.host, node.port, frames, 1, 5, 0, 600, len(part))
            _wait_in_segments(client, name, partitions, part[-1][0])
    finally:
        client.close()
        frames.unlink(missing_ok=True)
    node.settle()
    return name


def _requests(topic: Topic, name: str, partitions: int, copies_of_key: int) -> Iterator[tuple[int, bytes]]:
    """Each with the number of records that there are once it is written."""
    values = order_values(topic.value_bytes, min(DISTINCT_VALUES, topic.records))
    size = max(1, BATCH_BYTES // topic.value_bytes)
    # Whole rounds over the partitions, so that all copies of a key are in the same one.
    keys = max(1, topic.records // copies_of_key // (size * partitions)) * size * partitions
    now_ms = int(time.time() * 1000)
    for number, start in enumerate(range(0, topic.records, size)):
        records = [
            Record(
                offset=index - start,
                timestamp_ms=now_ms,
                key=b"customer-%08d" % (index % keys),
                value=values[index % len(values)],
                headers=(),
            )
            for index in range(start, min(start + size, topic.records))
        ]
        [batch] = encode_columns(columns_of(records))
        yield start + len(records), produce_frame(name, number % partitions, batch)


def _wait_in_segments(client: PlanningClient, name: str, partitions: int, records: int) -> None:
    deadline = time.monotonic() + COMMIT_SECONDS
    while (stored := sum(client.segments(name, number).committed_end for number in range(partitions))) < records:
        if time.monotonic() > deadline:
            raise ServerFailed(f"{stored:,} of {records:,} records of {name} got into segments")
        time.sleep(0.1)
