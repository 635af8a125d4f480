"""What the demo does, step by step, and what it measures on the way."""

from __future__ import annotations

import time  # noqa: TID251 - waits for a real process
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console

from demo.audit import Audit, StoredSegments, read_segments
from demo.consuming import Tail, read_all
from demo.failure import DemoFailed
from demo.node import ServedNode
from demo.orders import Event, make_orders
from demo.pipeline import DEAD_LETTER_TOPIC, PipelineOutcome, run_pipeline, why_not
from demo.producing import OrderProducer
from demo.progress import Meter, meter
from demo.revenue import RESULT_TOPIC

TOPIC = "orders"
PARTITIONS = 4
PACE_PER_SECOND = 1_000
_MOST_PACED = 2_000
_PACED_FRACTION = 0.1
_UPLOAD_SECONDS = 30
# The level from which on librdkafka speaks: below it, it tells of answers that nobody waited for.
_WARNING = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """How the node ended its first run."""

    seconds: float
    segments_before: StoredSegments
    segments_after: StoredSegments
    wal_files: int
    wal_bytes: int
    memory_bytes: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    events: int
    value_bytes: int
    start_seconds: float
    fast_events: int
    fast_seconds: float
    ack_seconds: Sequence[float]
    end_to_end_seconds: Sequence[float]
    read_seconds: float
    stopped: Stopped
    reread_seconds: float
    pipeline: PipelineOutcome | str


def run(data_dir: Path, count: int, console: Console) -> Outcome:
    """Everything, or DemoFailed with what did not hold. `Outcome.pipeline` says why it was left out, if it was."""
    events = make_orders(count)
    paced = min(_MOST_PACED, int(count * _PACED_FRACTION))
    first, fast_events, paced_events = events[0], events[1 : count - paced], events[count - paced :]
    node = ServedNode(data_dir)
    try:
        console.print(f"node ready at {node.bootstrap}, data in {data_dir}")
        # The orders are of a day long past, which the usual retention would delete.
        _create_topics(node.bootstrap, NewTopic(TOPIC, PARTITIONS, 1, config={"retention.ms": "-1"}))
        producer = OrderProducer(node.bootstrap, TOPIC)
        producer.send_first(first)
        with meter(console, "produce, as fast as it goes", len(fast_events)) as progress:
            fast_seconds = producer.send_fast(fast_events, progress)
        tail = Tail(node.bootstrap, TOPIC, PARTITIONS)
        with meter(console, f"produce and tail, {PACE_PER_SECOND:,} per second", paced) as progress:
            ack_seconds, end_to_end_seconds = _measure_latency(producer, tail, paced_events, progress)
        # librdkafka would go on asking for the node after it has stopped.
        del producer
        read_seconds = _read_back(node.bootstrap, events, console, "consume from the start")
        stopped = _stop(node, data_dir, count)
    finally:
        node.kill()
    console.print("node drained; starting it again to read from the object store")
    again = ServedNode(data_dir)
    try:
        reread_seconds = _read_back(again.bootstrap, events, console, "consume after the restart")
        pipeline = _run_pipeline(again, events, console)
        again.stop()
    finally:
        again.kill()
    return Outcome(
        events=count,
        value_bytes=sum(len(event.value) for event in events),
        start_seconds=node.start_seconds,
        fast_events=len(fast_events),
        fast_seconds=fast_seconds,
        ack_seconds=ack_seconds,
        end_to_end_seconds=end_to_end_seconds,
        read_seconds=read_seconds,
        stopped=stopped,
        reread_seconds=reread_seconds,
        pipeline=pipeline,
    )


def _run_pipeline(node: ServedNode, events: Sequence[Event], console: Console) -> PipelineOutcome | str:
    """What came of it, or why it was left out."""
    if missing := why_not():
        console.print(f"the pipeline is left out: {missing}")
        return missing
    result = NewTopic(RESULT_TOPIC, 1, 1, config={"cleanup.policy": "compact"})
    _create_topics(node.bootstrap, result, NewTopic(DEAD_LETTER_TOPIC, 1, 1))
    return run_pipeline(node.endpoint, node.bootstrap, events, console)


def _create_topics(bootstrap: str, *topics: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _WARNING})
    try:
        for created in admin.create_topics(list(topics)).values():
            created.result(30)
    except KafkaException as problem:
        raise DemoFailed(f"cannot create the topic: {problem.args[0].str()}") from None


def _measure_latency(
    producer: OrderProducer, tail: Tail, events: Sequence[Event], progress: Meter
) -> tuple[list[float], list[float]]:
    sent_at: dict[bytes, float] = {}
    ack_seconds = producer.send_paced(
        events, PACE_PER_SECOND, progress, lambda event, at: sent_at.__setitem__(event.value, at)
    )
    arrived_at = tail.finish(len(events))
    return ack_seconds, [arrived_at[value] - at for value, at in sent_at.items()]


def _read_back(bootstrap: str, events: Sequence[Event], console: Console, title: str) -> float:
    audit = Audit(events)
    with meter(console, title, len(events)) as progress:
        seconds = read_all(bootstrap, TOPIC, PARTITIONS, len(events), progress, audit.received)
    audit.conclude()
    return seconds


def _stop(node: ServedNode, data_dir: Path, count: int) -> Stopped:
    """A drain leaves every record in the object store, which is looked at here without the node."""
    before = _wait_for_segments(data_dir / "objects")
    wal_files = [path.stat().st_size for path in (data_dir / "wal").glob("*.wal")]
    memory_bytes, cpu_seconds = node.memory_bytes(), node.cpu_seconds()
    seconds = node.stop()
    after = read_segments(data_dir / "objects", TOPIC)
    if after.records != count:
        raise DemoFailed(f"the drained node left {after.records:,} of {count:,} records in the object store")
    return Stopped(
        seconds=seconds,
        segments_before=before,
        segments_after=after,
        wal_files=len(wal_files),
        wal_bytes=sum(wal_files),
        memory_bytes=memory_bytes,
        cpu_seconds=cpu_seconds,
    )


def _wait_for_segments(objects: Path) -> StoredSegments:
    """What the running node has uploaded by itself; its first segment is due by age, if not by size."""
    deadline = time.monotonic() + _UPLOAD_SECONDS
    while time.monotonic() < deadline:
        segments = read_segments(objects, TOPIC)
        if segments.count:
            return segments
        time.sleep(0.05)
    raise DemoFailed(f"no segment was written within {_UPLOAD_SECONDS} s")
