"""Offsets of many partitions, in the JSON shapes of Spark's Kafka source, and where a query is told to start or end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from streamhouse.model.errors import InvalidConfig
from streamhouse.wire.http.planning import EARLIEST, LATEST

OffsetsJson: TypeAlias = dict[str, dict[str, int]]
"""{"topic": {"0": 23}}: what the user writes, and what Spark keeps in a checkpoint."""

STARTED_AT = "@start"
"""In the checkpoint beside topics, none of which can have this name; see `StreamReader`."""
TOPIC_IDS = "@topics"
"""Likewise; see `StreamPoint`."""

_OFFSETS_HINT = 'write {"topic":{"0":23,"1":-2}}, where -2 is the earliest and -1 the latest'
_TIMES_HINT = 'write {"topic":{"0":1700000000000}}, in milliseconds'
_ASSIGN_HINT = 'write {"topic":[0,1]}'
_LARGEST = 2**63 - 1


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Offsets: TypeAlias = dict[TopicPartition, int]


class StreamPoint(NamedTuple):
    """How far a streaming query is, and in which topics: one that was deleted and made again has its name and not its
    records. Checkpoints of earlier versions have no ids."""

    offsets: Offsets
    topic_ids: Mapping[str, UUID]

    def made_again(self, topic_ids: Mapping[str, UUID]) -> set[str]:
        """The topics that have other ids by now."""
        return {name for name, known in self.topic_ids.items() if topic_ids.get(name, known) != known}

    def to_json(self) -> dict[str, Any]:
        return {
            **json_of(self.offsets),
            TOPIC_IDS: {name: str(known) for name, known in sorted(self.topic_ids.items())},
        }

    @staticmethod
    def of_json(stored: Mapping[str, Any]) -> StreamPoint:
        known = {name: UUID(topic_id) for name, topic_id in stored.get(TOPIC_IDS, {}).items()}
        return StreamPoint(offsets_of(stored), known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A place in every partition: the same for all of them, or one for `each`. By offset it is EARLIEST, LATEST or a
    number; by time, the first record that is not older."""

    option: str
    by_time: bool = False
    everywhere: int | None = None
    each: Mapping[TopicPartition, int] = field(default_factory=dict)

    def of(self, partition: TopicPartition) -> int | None:
        return self.everywhere if self.everywhere is not None else self.each.get(partition)

    def mentions(self, offset: int) -> bool:
        return not self.by_time and (self.everywhere == offset or offset in self.each.values())


def earliest(option: str) -> Position:
    return Position(option=option, everywhere=EARLIEST)


def latest(option: str) -> Position:
    return Position(option=option, everywhere=LATEST)


def parse_position(option: str, text: str) -> Position:
    """earliest, latest, or offsets as JSON."""
    match text.lower():
        case "earliest":
            return earliest(option)
        case "latest":
            return latest(option)
    return Position(option=option, each=_parse_numbers(option, text, EARLIEST, _OFFSETS_HINT))


def parse_times(option: str, text: str) -> Position:
    return Position(option=option, by_time=True, each=_parse_numbers(option, text, 0, _TIMES_HINT))


def parse_time(option: str, text: str) -> Position:
    if not text.isdecimal() or int(text) > _LARGEST:
        raise InvalidConfig(f"option {option!r}: {text[:40]!r} is not a time", hint="write milliseconds since 1970")
    return Position(option=option, by_time=True, everywhere=int(text))


def parse_partitions(option: str, text: str) -> tuple[TopicPartition, ...]:
    """{"topic":[0,1]}, as `assign` takes it."""
    wrong = InvalidConfig(f"option {option!r} is not a list of partitions", hint=_ASSIGN_HINT)
    partitions = []
    for topic, numbers in _parse_object(text, wrong).items():
        if not isinstance(numbers, list) or not all(_is_number(number, 0) for number in numbers):
            raise wrong
        partitions += [TopicPartition(topic, number) for number in numbers]
    if not partitions:
        raise wrong
    return tuple(sorted(set(partitions)))


def offsets_of(stored: Mapping[str, Any]) -> Offsets:
    """From what `json_of` made, perhaps in an earlier life of the query."""
    return {
        TopicPartition(topic, int(number)): offset
        for topic, each in stored.items()
        if topic not in (STARTED_AT, TOPIC_IDS)
        for number, offset in each.items()
    }


def json_of(offsets: Mapping[TopicPartition, int]) -> OffsetsJson:
    found: OffsetsJson = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def _parse_numbers(option: str, text: str, smallest: int, hint: str) -> Offsets:
    wrong = InvalidConfig(f"option {option!r} is not understood", hint=hint)
    found: Offsets = {}
    for topic, numbers in _parse_object(text, wrong).items():
        if not isinstance(numbers, dict):
            raise wrong
        for partition, number in numbers.items():
            if not partition.isdecimal() or not _is_number(number, smallest):
                raise wrong
            found[TopicPartition(topic, int(partition))] = number
    return found


def _parse_object(text: str, wrong: InvalidConfig) -> dict[str, object]:
    try:
        parsed = json.loads(text)
    except ValueError:
        raise wrong from None
    if not isinstance(parsed, dict):
        raise wrong
    return parsed


def _is_number(value: object, smallest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and smallest <= value <= _LARGEST
