"""One record at a time to partitions of which nobody knows who leads them: asked of all agents until one takes it."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from bench.batches import order_values, produce_frame, record_batch
from bench.connections import read_frame
from bench.servers import Server, ServerFailed

PAUSE_SECONDS = 0.01
"""Between two rounds over the partitions that nobody took: as exact as the result is."""
PATIENCE_SECONDS = 120.0
ACKNOWLEDGED = 0


def acknowledged_at(servers: Iterable[Server], topic: str, partitions: Collection[int]) -> dict[int, float]:
    """Produces to each partition until it is acknowledged by any of the servers; when that was, by perf_counter."""
    [value] = order_values(100, 1)
    frames = {number: produce_frame(topic, number, record_batch([value])) for number in partitions}
    taken: dict[int, float] = {}
    asked = list(servers)
    done = threading.Event()
    deadline = time.monotonic() + PATIENCE_SECONDS
    with ThreadPoolExecutor(len(asked)) as threads:
        for asking in [threads.submit(_ask, server, frames, taken, done, deadline) for server in asked]:
            asking.result()
    if missing := sorted(set(partitions) - set(taken)):
        raise ServerFailed(f"nobody acknowledged a record for partitions {missing} of {topic}")
    return taken


def _ask(
    server: Server, frames: Mapping[int, bytes], taken: dict[int, float], done: threading.Event, deadline: float
) -> None:
    with socket.create_connection((server.host, server.port), timeout=PATIENCE_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not done.is_set() and time.monotonic() < deadline:
            missing = [partition for partition in frames if partition not in taken]
            connection.sendall(b"".join(frames[partition] for partition in missing))
            for partition in missing:
                if _error_of(read_frame(connection)) == ACKNOWLEDGED:
                    taken.setdefault(partition, time.perf_counter())
            if len(taken) == len(frames):
                done.set()
            done.wait(PAUSE_SECONDS)


def _error_of(answer: bytes) -> int:
    """The error code for the request's only partition."""
    correlation_and_count = 8
    (name_bytes,) = struct.unpack_from(">h", answer, correlation_and_count)
    count_and_index = 8
    (error,) = struct.unpack_from(">h", answer, correlation_and_count + 2 + name_bytes + count_and_index)
    return int(error)
