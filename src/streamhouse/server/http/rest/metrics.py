"""What this node counts, in Prometheus' text format: read when asked for, so that nobody pays who does not ask."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from resource import getpagesize
from typing import NamedTuple

from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.registry import Call, Rest

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    name: str
    kind: str
    help: str
    value: float
    labels: str = ""


def add_metrics(rest: Rest, context: DoorContext, group_members: Callable[[], int]) -> None:
    metrics = _Metrics(context, group_members)
    rest.route(
        "GET",
        "/metrics",
        metrics.read,
        summary="Measurements for Prometheus",
        tag="health",
        media_type=TEXT_FORMAT,
        answer_example="# HELP streamhouse_topics Topics that this node knows of.\n"
        "# TYPE streamhouse_topics gauge\nstreamhouse_topics 3\n",
    )


class _Metrics:
    def __init__(self, context: DoorContext, group_members: Callable[[], int]) -> None:
        self._broker = context.broker
        self._group_members = group_members
        self._build = f'{{version="{version("streamhouse")}"}}'

    async def read(self, _: Call) -> str:
        clock = self._broker.clock
        asked_ms = clock.monotonic_ms()
        await clock.sleep_ms(0)
        turn_ms = clock.monotonic_ms() - asked_ms
        return "".join(_written(metric) for metric in self._all(turn_ms))

    def _all(self, turn_ms: int) -> Iterator[Metric]:
        topics = list(self._broker.topics)
        led = [leader for topic in topics for leader in self._broker.topics.leaders_of(topic) if leader is not None]
        buffer = self._broker.buffer
        yield Metric("streamhouse_build_info", "gauge", "Always 1; the labels say what runs.", 1, self._build)
        yield Metric("streamhouse_topics", "gauge", "Topics that this node knows of.", len(topics))
        yield Metric(
            "streamhouse_partitions",
            "gauge",
            "Partitions of all topics.",
            sum(topic.partition_count for topic in topics),
        )
        yield Metric("streamhouse_partitions_led", "gauge", "Partitions that this node leads.", len(led))
        yield Metric(
            "streamhouse_led_high_watermarks",
            "gauge",
            "Sum of the high watermarks of the partitions that this node leads.",
            sum(leader.high_watermark for leader in led),
        )
        yield Metric(
            "streamhouse_led_unuploaded_records",
            "gauge",
            "Offsets of those partitions that are in no segment yet.",
            sum(leader.high_watermark - leader.committed_end for leader in led),
        )
        yield Metric(
            "streamhouse_buffer_bytes", "gauge", "Records not yet in the object store.", max(0, buffer.used_bytes)
        )
        yield Metric("streamhouse_buffer_limit_bytes", "gauge", "How many there may be.", buffer.limit_bytes)
        yield Metric(
            "streamhouse_rest_group_members",
            "gauge",
            "Members that this node keeps for callers.",
            self._group_members(),
        )
        yield Metric("streamhouse_tasks", "gauge", "Tasks on the event loop.", len(asyncio.all_tasks()))
        yield Metric(
            "streamhouse_event_loop_turn_seconds",
            "gauge",
            "How long the event loop took to come round when this was read.",
            turn_ms / 1000,
        )
        yield from _process()


def _process() -> Iterator[Metric]:
    """By the names that Prometheus' own clients use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    yield Metric("process_resident_memory_bytes", "gauge", "Resident memory size.", pages * getpagesize())
    descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir())
    yield Metric("process_open_fds", "gauge", "Open file descriptors.", descriptors)


def _written(metric: Metric) -> str:
    return (
        f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
        f"{metric.name}{metric.labels} {metric.value}\n"
    )
