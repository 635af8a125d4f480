"""The work of `streamhouse bench`: write many, time a few, read all, and clean up."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from streamhouse.cli.console import progress_bar
from streamhouse.cli.topic_lookup import note_made_topic
from streamhouse.client.admin import Admin
from streamhouse.client.cluster import Cluster
from streamhouse.client.consumer import Consumer
from streamhouse.client.partition_sender import Acks, Delivered, ProducerOptions
from streamhouse.client.producer import Producer
from streamhouse.format.compression import Codec
from streamhouse.model.errors import AlreadyExists, CorruptData, Unavailable
from streamhouse.runtime.entropy import new_uuid

_WINDOW_RECORDS = 50_000
_PROGRESS_RECORDS = 10_000
_ARRIVAL_SECONDS = 30
_ARRIVAL_POLL_MS = 20
# Text that compresses about as JSON events do; random bytes would make every codec look useless.
_WORDS = b'{"order":1842,"customer":"c-77120","items":[{"sku":"A-1","quantity":2,"price":9.95}],"status":"paid"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    record_count: int
    value_bytes: int
    partition_count: int
    acks: Acks
    codec: Codec
    probe_count: int
    topic: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    name: str
    seconds: float
    records_per_second: float
    megabytes_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """In milliseconds."""

    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    phases: tuple[Phase, ...]
    latencies: Latencies | None


async def run_bench(bootstrap: str, plan: BenchPlan) -> BenchResult:
    async with Cluster.connect(bootstrap) as cluster, _bench_topic(cluster, plan) as topic:
        admin = Admin(cluster)
        starts = await admin.latest_offsets(topic, range(await admin.partition_count(topic)))
        produced = await _produce(cluster, topic, plan)
        latencies = await _probe(cluster, topic, plan) if plan.probe_count else None
        ends = await _ends(cluster, admin, topic, starts, plan.record_count + plan.probe_count)
        consumed = await _consume(cluster, topic, starts, ends, plan)
    return BenchResult(phases=(produced, consumed), latencies=latencies)


@asynccontextmanager
async def _bench_topic(cluster: Cluster, plan: BenchPlan) -> AsyncIterator[str]:
    admin = Admin(cluster)
    if plan.topic is not None:
        try:
            await admin.create_topic(plan.topic, partition_count=plan.partition_count)
            await note_made_topic(cluster, plan.topic, plan.partition_count)
        except AlreadyExists:
            pass
        yield plan.topic
        return
    topic = f"bench-{new_uuid().hex[:12]}"
    await admin.create_topic(topic, partition_count=plan.partition_count)
    try:
        yield topic
    finally:
        await admin.delete_topic(topic)


async def _produce(cluster: Cluster, topic: str, plan: BenchPlan) -> Phase:
    value = _value(plan.value_bytes)
    options = ProducerOptions(acks=plan.acks, codec=plan.codec, idempotent=plan.acks is Acks.ALL)
    on_their_way: deque[asyncio.Future[Delivered]] = deque()
    started = _seconds()
    with progress_bar("producing", plan.record_count) as progress:
        async with Producer(cluster, options) as producer:
            for number in range(plan.record_count):
                on_their_way.append(await producer.send(topic, value=value, partition=number % plan.partition_count))
                if len(on_their_way) == _WINDOW_RECORDS:
                    progress.advance(await _settle(on_their_way, _PROGRESS_RECORDS))
            await producer.flush()
            progress.advance(await _settle(on_their_way, len(on_their_way)))
    return _phase("produce", started, plan.record_count, plan)


async def _settle(on_their_way: deque[asyncio.Future[Delivered]], count: int) -> int:
    """Waits for the oldest; a failure of any of them ends the benchmark."""
    for _ in range(count):
        await on_their_way.popleft()
    return count


async def _probe(cluster: Cluster, topic: str, plan: BenchPlan) -> Latencies:
    """One record at a time, each from its sending to its acknowledgement."""
    value = _value(plan.value_bytes)
    options = ProducerOptions(acks=plan.acks, codec=plan.codec, idempotent=plan.acks is Acks.ALL, linger_ms=0)
    milliseconds: list[float] = []
    with progress_bar("timing", plan.probe_count) as progress:
        async with Producer(cluster, options) as producer:
            for number in range(plan.probe_count):
                started = _seconds()
                await (await producer.send(topic, value=value, partition=number % plan.partition_count))
                milliseconds.append((_seconds() - started) * 1000)
                progress.advance(1)
    milliseconds.sort()
    return Latencies(
        p50=_percentile(milliseconds, 50),
        p95=_percentile(milliseconds, 95),
        p99=_percentile(milliseconds, 99),
        max=milliseconds[-1],
    )


async def _ends(cluster: Cluster, admin: Admin, topic: str, starts: Mapping[int, int], expected: int) -> dict[int, int]:
    """Where the partitions end once everything sent has arrived, which acks=0 does not wait for."""
    deadline = _seconds() + _ARRIVAL_SECONDS
    while True:
        ends = await admin.latest_offsets(topic, starts)
        arrived = sum(ends[partition] - starts[partition] for partition in starts)
        if arrived >= expected:
            return ends
        if _seconds() > deadline:
            raise Unavailable(
                f"{expected - arrived:,} of {expected:,} records did not arrive", hint="acks 0 may lose records"
            )
        await cluster.clock.sleep_ms(_ARRIVAL_POLL_MS)


async def _consume(
    cluster: Cluster, topic: str, starts: Mapping[int, int], ends: Mapping[int, int], plan: BenchPlan
) -> Phase:
    expected = sum(ends[partition] - starts[partition] for partition in starts)
    consumer = Consumer(cluster, topic, starts, stop_at=ends)
    consumed = 0
    started = _seconds()
    with progress_bar("consuming", expected) as progress:
        while not consumer.at_end():
            records = len(await consumer.poll())
            consumed += records
            progress.advance(records)
    if consumed != expected:
        raise CorruptData(f"read {consumed:,} records of {expected:,}")
    return _phase("consume", started, consumed, plan)


def _phase(name: str, started: float, record_count: int, plan: BenchPlan) -> Phase:
    seconds = max(_seconds() - started, 1e-9)
    return Phase(
        name=name,
        seconds=seconds,
        records_per_second=record_count / seconds,
        megabytes_per_second=record_count * plan.value_bytes / seconds / 1e6,
    )


def _value(size_bytes: int) -> bytes:
    return (_WORDS * (size_bytes // len(_WORDS) + 1))[:size_bytes]


def _percentile(ascending: Sequence[float], percent: int) -> float:
    return ascending[min(len(ascending) - 1, len(ascending) * percent // 100)]


def _seconds() -> float:
    """The loop's clock: the runtime's counts milliseconds, and an acknowledgement may take less than one."""
    return asyncio.get_running_loop().time()
