"""Which partitions a query reads, and which offsets its positions mean in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never
from uuid import UUID

from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import InvalidConfig, NotFound, OffsetOutOfRange
from streamhouse.spark.source.options import Assigned, Subscription, TopicPattern, Topics
from streamhouse.spark.source.positions import Offsets, Position, TopicPartition
from streamhouse.wire.http.planning import EARLIEST, LATEST, OffsetQuestion

_TOPICS_HINT = "`streamhouse topic list` shows what there is"


class Catalog:
    def __init__(self, client: PlanningClient, subscription: Subscription) -> None:
        self._client = client
        self._subscription = subscription
        self.topic_ids: dict[str, UUID] = {}
        """When topics were last listed. Offsets are asked for of these, and of no others that have their names."""

    def partitions(self, *, must_exist: bool) -> list[TopicPartition]:
        """Those that there are now. NotFound if the query names one that is not, unless that is fine."""
        topics_now = self._client.topics()
        counts = {topic.name: topic.partition_count for topic in topics_now}
        self.topic_ids = {topic.name: topic.topic_id for topic in topics_now}
        match self._subscription:
            case Topics(names=names):
                topics = names
            case TopicPattern(pattern=pattern):
                topics = tuple(name for name in counts if pattern.fullmatch(name))
            case Assigned(partitions=wanted):
                there = [each for each in wanted if each.partition < counts.get(each.topic, 0)]
                for missing in wanted if must_exist else ():
                    if missing not in there:
                        raise NotFound(f"there is no partition {missing}", hint=_TOPICS_HINT)
                return there
            case unknown:
                assert_never(unknown)
        for name in topics:
            if must_exist and name not in counts:
                raise NotFound(f"there is no topic {name!r}", hint=_TOPICS_HINT)
        return [TopicPartition(name, number) for name in sorted(topics) for number in range(counts.get(name, 0))]

    def resolve(self, partitions: Sequence[TopicPartition], position: Position, *, no_match_is_latest: bool) -> Offsets:
        """`no_match_is_latest`: where all records are older than the time asked for, the end; else it is an error."""
        if position.everywhere is None:
            _check_names_all(position, partitions)
        offsets: Offsets = {}
        questions: list[OffsetQuestion] = []
        for partition in partitions:
            place = position.of(partition)
            assert place is not None, "checked above"
            if position.by_time or place < 0:
                questions.append(self._question(partition, place))
            else:
                offsets[partition] = place
        for question, offset in zip(questions, self._ask(questions), strict=True):
            partition = TopicPartition(question.topic, question.partition)
            if offset is None and not no_match_is_latest:
                raise OffsetOutOfRange(
                    f"{partition} has no record at or after {question.timestamp_ms}, which {position.option} asks for",
                    hint="set option startingOffsetsByTimestampStrategy to latest to start at its end",
                )
            offsets[partition] = LATEST if offset is None else offset
        at_end = [partition for partition, offset in offsets.items() if offset == LATEST]
        return offsets | self.latest(at_end)

    def latest(self, partitions: Sequence[TopicPartition]) -> Offsets:
        return self._same(partitions, LATEST)

    def earliest(self, partitions: Sequence[TopicPartition]) -> Offsets:
        return self._same(partitions, EARLIEST)

    def _same(self, partitions: Sequence[TopicPartition], place: int) -> Offsets:
        answers = self._ask([self._question(partition, place) for partition in partitions])
        return {partition: offset or 0 for partition, offset in zip(partitions, answers, strict=True)}

    def _ask(self, questions: Sequence[OffsetQuestion]) -> list[int | None]:
        return self._client.offsets(questions) if questions else []

    def _question(self, partition: TopicPartition, place: int) -> OffsetQuestion:
        topic, number = partition
        return OffsetQuestion(topic=topic, partition=number, timestamp_ms=place, topic_id=self.topic_ids.get(topic))


def _check_names_all(position: Position, partitions: Sequence[TopicPartition]) -> None:
    """As Spark's Kafka source: a partition that was forgotten is more likely a mistake than a wish."""
    missing = [str(partition) for partition in partitions if partition not in position.each]
    unknown = [str(partition) for partition in position.each if partition not in partitions]
    if missing or unknown:
        wrong = f"does not name {', '.join(missing)}" if missing else f"names {', '.join(unknown)}, which is not read"
        raise InvalidConfig(
            f"option {position.option!r} {wrong}",
            hint="name all partitions that are read, and no others"
            + ("" if position.by_time else "; -2 is the earliest offset, -1 the latest"),
        )
