"""Segments are swapped in a few at a time, and a log that changed meanwhile is planned again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from streamhouse.client.planning import PlanningClient
from streamhouse.format.compression import Codec
from streamhouse.model.errors import NotFound, StaleEpoch, Unavailable
from streamhouse.model.topic import effective_config
from streamhouse.spark.jobs import swap
from streamhouse.spark.jobs.logs import StoredLog
from streamhouse.spark.jobs.objects import Objects
from streamhouse.spark.jobs.progress import no_bars
from streamhouse.spark.jobs.rewrite import RewritePointer
from streamhouse.spark.jobs.swap import Rewriting, Swapper
from streamhouse.wire.http.planning import ReplaceRequest, SegmentInfo, SegmentsAnswer, TopicAnswer

TOPIC = TopicAnswer(name="orders", topic_id=UUID(int=1), partition_count=3, config=effective_config({}, {}))
OBJECTS = cast(Objects, None)
SPARK = cast(Any, SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1)))


def segment(base_offset: int, name: str) -> SegmentInfo:
    return SegmentInfo(
        base_offset=base_offset,
        end_offset=base_offset + 10,
        record_count=10,
        size_bytes=100,
        min_timestamp_ms=0,
        max_timestamp_ms=0,
        epoch=1,
        object_key=name,
        checksum=0,
    )


class Node:
    """Every partition has two segments; `refusals` are raised by `replace`, one after the other."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.generations = 0
        self.replaced: list[ReplaceRequest] = []
        self.refusals: list[Exception] = []

    def segments(self, topic: str, partition: int, *, to_replace: bool = False) -> SegmentsAnswer:
        self.asked.append(partition)
        self.generations += to_replace
        segments = [segment(0, f"{partition}-a"), segment(10, f"{partition}-b")]
        return SegmentsAnswer(
            topic_id=UUID(int=1),
            log_start_offset=0,
            committed_end=20,
            segments=segments,
            generation=self.generations if to_replace else 0,
        )

    def replace(self, request: ReplaceRequest) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.replaced.append(request)


class Waves:
    """In the place of Spark: remembers how many pointers came together."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.generations: list[int] = []
        self.failures: list[Exception] = []

    def run(
        self, spark: object, pointers: Sequence[RewritePointer], work: Callable[..., object], progress: object
    ) -> list[list[SegmentInfo]]:
        self.sizes.append(len(pointers))
        self.generations += [pointer.generation for pointer in pointers]
        if self.failures:
            raise self.failures.pop(0)
        return [[segment(0, f"{pointer.partition}-new")] for pointer in pointers]


@pytest.fixture
def waves(monkeypatch: pytest.MonkeyPatch) -> Waves:
    waves = Waves()
    monkeypatch.setattr(swap, "run_pointers", waves.run)
    return waves


def plan_of(runs: int) -> Callable[[Sequence[StoredLog]], list[Rewriting]]:
    """Each log is rewritten so many times over."""

    def plan(logs: Sequence[StoredLog]) -> list[Rewriting]:
        return [
            Rewriting(
                log=log,
                run=range(2),
                kept_count=15,
                pointer=log.rewriting(range(2), {}, objects=OBJECTS, target_bytes=1),
            )
            for log in logs
            for _ in range(runs)
        ]

    return plan


def swapper(node: Node) -> Swapper:
    return Swapper(SPARK, cast(PlanningClient, node), no_bars)


def test_every_rewritten_run_takes_the_place_of_its_segments(waves: Waves) -> None:
    node = Node()

    swaps = swapper(node).run(TOPIC, plan_of(1))

    assert [(each.partition, each.removed, [info.object_key for info in each.added]) for each in node.replaced] == [
        (number, [f"{number}-a", f"{number}-b"], [f"{number}-new"]) for number in range(3)
    ]
    assert len({each.commit_id for each in node.replaced}) == 3
    assert [(each.partition, each.segments_before, each.segments_after) for each in swaps] == [
        (0, 2, 1),
        (1, 2, 1),
        (2, 2, 1),
    ]
    assert (swaps[0].records_before, swaps[0].records_after) == (20, 15)


def test_a_few_are_swapped_in_before_more_are_written(waves: Waves) -> None:
    swapper(Node()).run(TOPIC, plan_of(3))

    assert waves.sizes == [4, 4, 1]


@pytest.mark.parametrize("refusal", [StaleEpoch("changed"), NotFound("gone")])
def test_a_log_that_changed_is_looked_at_again_and_only_that(waves: Waves, refusal: Exception) -> None:
    node = Node()
    node.refusals = [refusal]

    swaps = swapper(node).run(TOPIC, plan_of(1))

    assert node.asked == [0, 1, 2, 0]
    assert sorted(each.partition for each in swaps) == [0, 1, 2]
    assert waves.generations == [1, 2, 3, 4]


def test_once_a_plan_was_overtaken_nothing_more_is_written_for_it(waves: Waves) -> None:
    node = Node()
    node.refusals = [StaleEpoch("another plan has begun")]

    swapper(node).run(TOPIC, plan_of(3))

    # Five of the first plan remain after a wave of four, of which the second and third belong to the partition.
    assert waves.sizes == [4, 4, 1, 3]


def test_objects_that_are_gone_mean_that_all_of_the_wave_is_planned_again(waves: Waves) -> None:
    node = Node()
    waves.failures = [NotFound("an object")]

    swapper(node).run(TOPIC, plan_of(1))

    assert node.asked == [0, 1, 2, 0, 1, 2]
    assert len(node.replaced) == 3


def test_a_log_that_changes_all_the_time_is_left(waves: Waves) -> None:
    node = Node()
    node.refusals = [StaleEpoch("changed")] * 100

    with pytest.raises(Unavailable, match="orders/0, orders/1, orders/2 changed each time"):
        swapper(node).run(TOPIC, plan_of(1))


def test_a_preview_changes_nothing(waves: Waves) -> None:
    node = Node()

    swaps = swapper(node).preview(TOPIC, plan_of(1))

    assert [(each.records_after, each.segments_after) for each in swaps] == [(15, None)] * 3
    assert (waves.sizes, node.replaced, node.generations) == ([], [], 0)


def test_records_are_encoded_again_with_the_topics_codec_or_lz4() -> None:
    def codec(compression: str) -> Codec:
        from streamhouse.model.topic import parse_log_config

        config = effective_config({"compression.type": compression}, {})
        return StoredLog(
            topic="orders",
            topic_id=UUID(int=1),
            partition=0,
            config=parse_log_config(config),
            log_start_offset=0,
            segments=(),
        ).codec

    assert [codec(name) for name in ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")] == [
        Codec.LZ4,
        Codec.NONE,
        Codec.GZIP,
        Codec.SNAPPY,
        Codec.LZ4,
        Codec.ZSTD,
    ]
