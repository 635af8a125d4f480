"""What the demo does, step by step, and what it measures on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.cimpl import NewTopic
from rich.console import Console

from demo.audit import Audit
from demo.cluster import Cluster
from demo.consuming import Tail, read_all
from demo.orders import Event, make_orders
from demo.pipeline import DEAD_LETTER_TOPIC, Pipeline, why_not
from demo.pipeline_outcome import PipelineOutcome, compare
from demo.producing import OrderProducer
from demo.progress import Meter, meter
from demo.revenue import RESULT_TOPIC

TOPIC = "orders"
PARTITIONS = 6
PACE_PER_SECOND = 1_000
_MOST_PACED = 2_000
_PACED_FRACTION = 0.1
FLOW_PER_SECOND = 400
_MOST_FLOWING = 5_000
_FLOWING_FRACTION = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Failover:
    """`longest_seconds` is the longest that an order waited for its acknowledgement while one agent was lost."""

    agent: str
    partitions_led: int
    orders: int
    longest_seconds: float


class RunningPipeline(NamedTuple):
    pipeline: Pipeline
    first_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`pipeline` says why it was left out, if it was."""

    agents: int
    start_seconds: float
    events: int
    value_bytes: int
    fast_events: int
    fast_seconds: float
    ack_seconds: Sequence[float]
    end_to_end_seconds: Sequence[float]
    failover: Failover
    read_seconds: float
    pipeline: PipelineOutcome | str
    memory_bytes: int
    cpu_seconds: float


def show(cluster: Cluster, data_dir: Path, state_dir: Path, count: int, console: Console) -> Outcome:
    """Everything but the end of the cluster, or DemoFailed with what did not hold."""
    events = make_orders(count)
    paced, flowing = min(_MOST_PACED, int(count * _PACED_FRACTION)), min(_MOST_FLOWING, int(count * _FLOWING_FRACTION))
    fast_events, paced_events = events[1 : count - flowing - paced], events[count - flowing - paced : count - flowing]
    _create_topics(cluster)
    producer = OrderProducer(cluster.bootstrap, TOPIC)
    producer.send_first(events[0])
    with meter(console, "produce, as fast as it goes", len(fast_events)) as progress:
        fast_seconds = producer.send_fast(fast_events, progress)
    tail = Tail(cluster.bootstrap, TOPIC, PARTITIONS)
    with meter(console, f"produce and tail, {PACE_PER_SECOND:,} per second", paced) as progress:
        ack_seconds, end_to_end_seconds = _measure_latency(producer, tail, paced_events, progress)
    with _running_pipeline(cluster, data_dir, state_dir, console) as pipeline:
        failover = _lose_an_agent(cluster, producer, events[count - flowing :], console)
        read_seconds = _read_back(cluster.bootstrap, events, console)
        revenue = pipeline if isinstance(pipeline, str) else _finish_pipeline(pipeline, cluster, events, console)
    return Outcome(
        agents=len(cluster.agents),
        start_seconds=cluster.start_seconds,
        events=count,
        value_bytes=sum(len(event.value) for event in events),
        fast_events=len(fast_events),
        fast_seconds=fast_seconds,
        ack_seconds=ack_seconds,
        end_to_end_seconds=end_to_end_seconds,
        failover=failover,
        read_seconds=read_seconds,
        pipeline=revenue,
        memory_bytes=max(agent.memory_bytes() for agent in cluster.running),
        cpu_seconds=sum(agent.cpu_seconds() for agent in cluster.running),
    )


def _create_topics(cluster: Cluster) -> None:
    cluster.create_topics(
        # The orders are of a day long past, which the usual retention would delete.
        NewTopic(TOPIC, PARTITIONS, 1, config={"retention.ms": "-1"}),
        NewTopic(RESULT_TOPIC, 1, 1, config={"cleanup.policy": "compact"}),
        NewTopic(DEAD_LETTER_TOPIC, 1, 1),
    )


def _measure_latency(
    producer: OrderProducer, tail: Tail, events: Sequence[Event], progress: Meter
) -> tuple[list[float], list[float]]:
    sent_at: dict[bytes, float] = {}
    ack_seconds = producer.send_paced(
        events, PACE_PER_SECOND, progress, lambda event, at: sent_at.__setitem__(event.value, at)
    )
    arrived_at = tail.finish(len(events))
    return ack_seconds, [arrived_at[value] - at for value, at in sent_at.items()]


@contextmanager
def _running_pipeline(
    cluster: Cluster, data_dir: Path, state_dir: Path, console: Console
) -> Iterator[RunningPipeline | str]:
    """At work, so that it meets what happens next; or why it is left out."""
    if missing := why_not():
        console.print(f"the pipeline is left out: {missing}")
        yield missing
        return
    console.print("streamhouse pipeline run demo/revenue.yaml; starting Spark")
    pipeline = Pipeline(cluster.endpoints, data_dir, state_dir)
    try:
        first_seconds = pipeline.wait_for_result()
        console.print(f"revenue per minute: first results after {first_seconds:.1f} s")
        yield RunningPipeline(pipeline, first_seconds)
    finally:
        pipeline.kill()


def _lose_an_agent(cluster: Cluster, producer: OrderProducer, events: Sequence[Event], console: Console) -> Failover:
    """Orders flow at a steady pace; after a third of them an agent is killed, with orders on their way to it."""
    lost: list[tuple[str, int]] = []
    turning_point = events[len(events) // 3]

    def sent(event: Event, _: float) -> None:
        if event is turning_point:
            lost.append(cluster.kill_one(TOPIC))
            console.print(f"kill -9 {lost[0][0]}, which led {lost[0][1]} of {PARTITIONS} partitions")

    with meter(console, f"orders flow, {FLOW_PER_SECOND} per second", len(events)) as progress:
        ack_seconds = producer.send_paced(events, FLOW_PER_SECOND, progress, sent)
    cluster.wait_until_all_led(TOPIC, PARTITIONS)
    (name, led), longest = lost[0], max(ack_seconds)
    return Failover(agent=name, partitions_led=led, orders=len(events), longest_seconds=longest)


def _read_back(bootstrap: str, events: Sequence[Event], console: Console) -> float:
    audit = Audit(events)
    with meter(console, "consume from the start", len(events)) as progress:
        seconds = read_all(bootstrap, TOPIC, PARTITIONS, len(events), progress, audit.received)
    audit.conclude()
    return seconds


def _finish_pipeline(
    running: RunningPipeline, cluster: Cluster, events: Sequence[Event], console: Console
) -> PipelineOutcome:
    with meter(console, "revenue per minute and region", len(events)) as progress:
        seconds = running.pipeline.finish(len(events), progress)
    return compare(running.pipeline, running.first_seconds, seconds, cluster.bootstrap, events)
