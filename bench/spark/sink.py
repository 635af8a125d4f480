"""(b) Tables into topics: batch and streaming writes, exactly once, beside the same plan into nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.rows import Row, at_least
from bench.servers import ServerFailed
from bench.spark.comparison import beside, per_cpu_second
from bench.spark.dropping_sink import DroppingSink
from bench.spark.plan import Topic
from bench.spark.run import SparkRun
from bench.topics import create_topic, end_offsets

GOAL = at_least(0.5)
OURS, NOOP, DROPPING = "streamhouse", "noop", DroppingSink.name()
COLUMNS = ("key", "value")


def rows(run: SparkRun) -> Iterator[Row]:
    for topic in run.plan.topics:
        run.filled(topic)
        for title, write in (("batch", _write), ("AvailableNow", _write_stream)):
            run.say(f"sink: {title}, {topic.values}")
            costs = run.take_turns({form: partial(write, run, topic, form) for form in (OURS, NOOP, DROPPING)})
            name = f"{title}, {topic.values}"
            yield from beside("sink", name, costs[OURS], costs[NOOP], "the same into noop", GOAL)
            yield per_cpu_second("sink", f"{name}, beside Python", costs[OURS], costs[DROPPING], "dropped in Python")


def _write(run: SparkRun, topic: Topic, form: str) -> int:
    target = _target(run, form)
    writer = run.memory(topic.name).select(*COLUMNS).write.format(form).options(**_options(run, target))
    writer.mode("append").save()
    return _check(run, target, topic)


def _write_stream(run: SparkRun, topic: Topic, form: str) -> int:
    target = _target(run, form)
    run.finish(run.memory_stream(topic.name).select(*COLUMNS), form, _options(run, target))
    return _check(run, target, topic)


def _target(run: SparkRun, form: str) -> str:
    """A new topic, if that is what is written to."""
    if form != OURS:
        return ""
    name = run.new_name("written")
    create_topic(run.node.address, name, run.plan.partitions)
    return name


def _options(run: SparkRun, target: str) -> dict[str, str]:
    return {"endpoint": run.endpoint, "topic": target} if target else {}


def _check(run: SparkRun, target: str, topic: Topic) -> int:
    """The log has grown by what was written, before the clock is stopped."""
    if not target:
        return topic.records
    count = sum(end_offsets(run.node.address, target, run.plan.partitions))
    if count != topic.records:
        raise ServerFailed(f"{count:,} of {topic.records:,} records are in {target}")
    return count
