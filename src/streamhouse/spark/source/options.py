"""The source's options: those of Spark's Kafka source with their meaning, and a few of our own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from streamhouse.model.errors import InvalidConfig
from streamhouse.spark.options import CONNECTION_OPTIONS, Connection, Options
from streamhouse.spark.source.positions import (
    Position,
    TopicPartition,
    earliest,
    latest,
    parse_partitions,
    parse_position,
    parse_time,
    parse_times,
)
from streamhouse.wire.http.planning import EARLIEST, LATEST

_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_STARTS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
KNOWN_OPTIONS = (
    *CONNECTION_OPTIONS,
    *_SUBSCRIPTIONS,
    *_STARTS,
    *_ENDS,
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "includeHeaders",
    "minPartitions",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "presign",
    "commitGroup",
    "pinRetention",
)
# Of Spark's Kafka source; they tune its consumers, of which there are none here.
_WITHOUT_EFFECT = (
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """All partitions of these topics, which must exist."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPattern:
    """All partitions of the topics whose whole name matches, also of those that appear later."""

    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """These partitions, which must exist."""

    partitions: tuple[TopicPartition, ...]


Subscription: TypeAlias = Topics | TopicPattern | Assigned


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """`start` and `end` are None where the user left them to the kind of query."""

    connection: Connection
    subscription: Subscription
    start: Position | None
    end: Position | None
    latest_if_no_match: bool
    fail_on_data_loss: bool
    include_headers: bool
    min_partitions: int | None
    max_offsets_per_trigger: int | None
    max_bytes_per_trigger: int | None
    presign: bool
    commit_group: str
    pin_ms: int | None

    @staticmethod
    def parse(given: Mapping[str, str]) -> SourceOptions:
        options = Options(given)
        options.check_known((*KNOWN_OPTIONS, *_WITHOUT_EFFECT))
        no_match = options.choice("startingOffsetsByTimestampStrategy", "error", ("error", "latest"))
        return SourceOptions(
            connection=Connection.parse(options),
            subscription=_subscription(options),
            start=_position(options, _STARTS),
            end=_position(options, _ENDS),
            latest_if_no_match=no_match == "latest",
            fail_on_data_loss=options.boolean("failOnDataLoss", True),
            include_headers=options.boolean("includeHeaders", False),
            min_partitions=options.count("minPartitions"),
            max_offsets_per_trigger=options.count("maxOffsetsPerTrigger"),
            max_bytes_per_trigger=options.size_bytes("maxBytesPerTrigger"),
            presign=options.boolean("presign", False),
            commit_group=options.text("commitGroup"),
            pin_ms=options.duration_ms("pinRetention"),
        )

    def for_batch(self) -> SourceOptions:
        """From the earliest to the latest unless told otherwise. Limits of micro-batches mean nothing here."""
        start = self.start or earliest("startingOffsets")
        end = self.end or latest("endingOffsets")
        if start.mentions(LATEST):
            raise InvalidConfig("a batch query cannot start at the latest offset", hint=f"change {start.option!r}")
        if end.mentions(EARLIEST):
            raise InvalidConfig("a batch query cannot end at the earliest offset", hint=f"change {end.option!r}")
        for option, value in (("commitGroup", self.commit_group), ("pinRetention", self.pin_ms)):
            if value:
                raise InvalidConfig(f"option {option!r} is for streaming queries", hint="leave it out of a batch query")
        return replace(self, start=start, end=end)

    def for_stream(self) -> SourceOptions:
        """From the latest on unless told otherwise; a checkpoint knows better than either."""
        if self.end is not None:
            raise InvalidConfig(
                f"a streaming query has no end, so option {self.end.option!r} cannot be used",
                hint="use trigger(availableNow=True) to stop at what is there",
            )
        return replace(self, start=self.start or latest("startingOffsets"))


def _subscription(options: Options) -> Subscription:
    given = [name for name in _SUBSCRIPTIONS if options.has(name)]
    if len(given) != 1:
        raise InvalidConfig(
            f"{' and '.join(map(repr, given))} cannot be used together" if given else "no topics are named",
            hint="give exactly one of subscribe, subscribePattern and assign",
        )
    text = options.text(given[0])
    match given[0]:
        case "subscribe":
            names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
            if not names:
                raise InvalidConfig("option 'subscribe' names no topic", hint="write topic or topic1,topic2")
            return Topics(names=names)
        case "subscribePattern":
            try:
                return TopicPattern(pattern=re.compile(text))
            except re.error as problem:
                raise InvalidConfig(
                    f"option 'subscribePattern' is not a regular expression: {problem}",
                    hint="it is one of Python's, not of Java's: https://docs.python.org/3/library/re.html",
                ) from None
        case _:
            return Assigned(partitions=parse_partitions("assign", text))


def _position(options: Options, names: tuple[str, str, str]) -> Position | None:
    """A time for all goes before times for each, and those before offsets, as Spark's Kafka source has it."""
    time, times, offsets = names
    if options.has(time):
        return parse_time(time, options.text(time))
    if options.has(times):
        return parse_times(times, options.text(times))
    if options.has(offsets):
        return parse_position(offsets, options.text(offsets))
    return None
