"""(d) Catch-up from RAM, from cold segments and from the cache: raw fetches beside plain loopback, confluent-kafka."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.confluent_client import measure_consume
from bench.limits import loopback_bytes_per_second
from bench.object_server import object_server
from bench.real_services import ServiceMissing
from bench.rows import Goal, Row, at_least
from bench.run import Run
from bench.servers import Server, ServerFailed, serving, start_node
from bench.topics import create_topic, end_offsets

TOPIC = "bench"
PARTITIONS = 8
"""One connection reads each of them."""
FETCH_BYTES = 1 << 20
LOOPBACK_SECONDS = 0.5
MB = 1_000_000


def rows(run: Run) -> Iterator[Row]:
    yield from _from_memory(run)
    yield from _from_segments(run, "local")
    try:
        with object_server() as server:
            server_speed = server.bytes_per_second(run.plan.cold_bytes // 4)
            yield from _from_segments(run, "S3", *server.flags("consume"), server_speed=server_speed)
    except ServiceMissing as missing:
        yield Row(scenario="consume", name="cold segments, S3", figure=None, unit="MB/s", note=str(missing))


@dataclass(slots=True)
class Speeds:
    """Bytes a second of one way to read, each measured right after the loopback of the same moment."""

    ours: list[float] = field(default_factory=list)
    loopback: list[float] = field(default_factory=list)

    def measure(self, run: Run, node: Server, ends: list[int], seconds: float) -> None:
        limit_seconds = min(run.plan.request_seconds, LOOPBACK_SECONDS)
        self.loopback.append(loopback_bytes_per_second(run.native, connections=PARTITIONS, seconds=limit_seconds))
        self.ours.append(catch_up(run, node, ends, seconds))

    def row(self, name: str, goal: Goal) -> Row:
        return Row(
            scenario="consume",
            name=name,
            figure=statistics.median(self.ours) / MB,
            unit="MB/s",
            limit=statistics.median(self.loopback) / MB,
            limit_name="plain loopback",
            goal=goal,
        )


def catch_up(run: Run, node: Server, ends: list[int], seconds: float) -> float:
    """Bytes a second of raw fetches, one connection for each partition; one pass when `seconds` is 0."""
    joined = ",".join(map(str, ends))
    measured = run.native.run("fetch", node.host, node.port, TOPIC, joined, 1, FETCH_BYTES, seconds)
    if not seconds and measured["records"] != sum(ends):
        raise ServerFailed(f"a pass over {sum(ends)} records brought {measured['records']:.0f}")
    return measured["bytes"] / measured["seconds"]


def _from_memory(run: Run) -> Iterator[Row]:
    run.say("consume: from RAM")
    with serving(start_node(run.directory("consume-ram") / "node")) as node:
        create_topic(node.address, TOPIC, PARTITIONS)
        run.fill(node, TOPIC, PARTITIONS, run.plan.consume_bytes)
        node.settle()
        ends = end_offsets(node.address, TOPIC, PARTITIONS)
        memory = Speeds()
        for _ in range(run.plan.repeats):
            memory.measure(run, node, ends, run.plan.request_seconds)
        yield memory.row("RAM", at_least(0.7))
        run.say("consume: confluent-kafka from RAM")
        before = node.cpu_seconds()
        client = measure_consume(node.address, TOPIC, PARTITIONS, sum(ends), run.plan.produce_seconds)
        yield Row(
            scenario="consume",
            name="RAM, confluent-kafka, 1 KiB",
            figure=client["records"] / client["seconds"],
            unit="records/s",
            details={"cpu_ratio": (node.cpu_seconds() - before) / client["cpu_seconds"]},
        )


def _from_segments(run: Run, place: str, *flags: str, server_speed: float | None = None) -> Iterator[Row]:
    """Everything is drained to the store; a node that starts anew has nothing in memory, and after a pass all of it."""
    run.say(f"consume: from segments, {place}")
    data_dir = run.directory(f"consume-{place.lower()}") / "node"
    with serving(start_node(data_dir, *flags)) as node:
        create_topic(node.address, TOPIC, PARTITIONS)
        run.fill(node, TOPIC, PARTITIONS, run.plan.cold_bytes)
        ends = end_offsets(node.address, TOPIC, PARTITIONS)
        node.stop()
    cold, cached = Speeds(), Speeds()
    for _ in range(run.plan.repeats):
        with serving(start_node(data_dir, *flags, "--cache-bytes", str(2 * run.plan.cold_bytes))) as node:
            cold.measure(run, node, ends, 0)
            cached.measure(run, node, ends, run.plan.request_seconds)
            node.stop()
    yield cold.row(f"cold segments, {place}", at_least(0.4))
    if server_speed is not None:
        yield Row(
            scenario="consume",
            name=f"cold segments, {place}, beside its server",
            figure=statistics.median(cold.ours) / MB,
            unit="MB/s",
            limit=server_speed / MB,
            limit_name="plain GETs",
        )
    yield cached.row(f"cache, {place}", at_least(0.6))
