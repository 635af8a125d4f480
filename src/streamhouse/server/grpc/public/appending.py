"""Appends the records of produce requests, as columns where that is possible, and says what became of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from streamhouse.broker.records import MAX_TIMESTAMP_MS, NewRecord, RecordDoor, StoredRecord
from streamhouse.format.columns import Columns
from streamhouse.format.rows import records_of
from streamhouse.model.errors import MalformedRequest, StreamHouseError
from streamhouse.model.topic import Topic
from streamhouse.server.grpc.public.message_limits import MAX_PARTS
from streamhouse.server.grpc.public.messages import error_message
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb
from streamhouse.wire.grpc.error_kinds import kind_of
from streamhouse.wire.grpc.produce_rows import NOT_GIVEN, ProduceRows, read_rows

_NOT_STORED = -1


@dataclass(slots=True)
class Outcomes:
    """A row for each record; the problem of one that was refused is under its index."""

    partitions: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    problems: dict[int, StreamHouseError] = field(default_factory=dict)

    def add_stored(self, partition: int, base_offset: int, timestamps_ms: Sequence[int]) -> None:
        count = len(timestamps_ms)
        self.partitions += [partition] * count
        self.offsets += range(base_offset, base_offset + count)
        self.timestamps_ms += timestamps_ms

    def add_refused(self, count: int, problem: StreamHouseError) -> None:
        first = len(self.offsets)
        self.problems.update(dict.fromkeys(range(first, first + count), problem))
        for column in (self.partitions, self.offsets, self.timestamps_ms):
            column += [_NOT_STORED] * count

    def add(self, outcomes: Iterable[StoredRecord | StreamHouseError]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, StreamHouseError):
                self.add_refused(1, outcome)
            else:
                self.add_stored(outcome.partition, outcome.offset, (outcome.timestamp_ms,))

    def replace(self, index: int, outcome: StoredRecord | StreamHouseError) -> None:
        if isinstance(outcome, StreamHouseError):
            self.problems[index] = outcome
            return
        del self.problems[index]
        self.partitions[index], self.offsets[index], self.timestamps_ms[index] = outcome

    def part(self, start: int, end: int) -> Outcomes:
        """Of the records of one request among several."""
        return Outcomes(
            self.partitions[start:end],
            self.offsets[start:end],
            self.timestamps_ms[start:end],
            {index - start: self.problems[index] for index in range(start, end) if index in self.problems}
            if self.problems
            else {},
        )

    def response(self) -> pb.ProduceResponse:
        """If all were refused and in the same way, that is what became of the request, and is raised."""
        refusals = list(self.problems.values())
        if refusals and len(refusals) == len(self.offsets) and len({kind_of(refusal) for refusal in refusals}) == 1:
            raise refusals[0]
        return pb.ProduceResponse(
            partitions=self.partitions,
            offsets=self.offsets,
            timestamps_ms=self.timestamps_ms,
            errors=[
                pb.RecordError(index=index, error=error_message(problem))
                for index, problem in sorted(self.problems.items())
            ],
        )


def read_request(raw: bytes, now_ms: int) -> ProduceRows:
    """MalformedRequest also where text is none, as protobuf has it."""
    rows = read_rows(raw, now_ms, MAX_PARTS)
    try:
        rows.topic.decode()
        if rows.columns.header_count and not bytes(rows.columns.header_key_data).isascii():
            for start, end in pairwise(memoryview(rows.columns.header_key_offsets).cast("i")):
                bytes(rows.columns.header_key_data[start:end]).decode()
    except UnicodeDecodeError:
        raise MalformedRequest("a topic or a header's key that is not UTF-8") from None
    return rows


async def append_rows(door: RecordDoor, topic: Topic, rows: ProduceRows, *, timeout_ms: int) -> Outcomes:
    outcomes = Outcomes()
    partition = _only_partition(door, topic, rows)
    if partition is None:
        outcomes.add(await door.append(topic, new_records(rows), timeout_ms=timeout_ms))
        return outcomes
    times_ms = memoryview(rows.columns.timestamps).cast("q").tolist()
    at = 0
    for run in await door.append_columns(topic, partition, rows.columns, timeout_ms=timeout_ms):
        if isinstance(run.outcome, StreamHouseError):
            outcomes.add_refused(run.record_count, run.outcome)
        else:
            stamp_ms = run.outcome.append_time_ms
            stamped = times_ms[at : at + run.record_count] if stamp_ms < 0 else [stamp_ms] * run.record_count
            outcomes.add_stored(partition, run.outcome.base_offset, stamped)
        at += run.record_count
    return outcomes


def new_records(rows: ProduceRows) -> list[NewRecord]:
    return [
        NewRecord(row.value, row.key, row.headers, None if partition == NOT_GIVEN else partition, row.timestamp_ms)
        for row, partition in zip(records_of(rows.columns), memoryview(rows.partitions).cast("i"), strict=True)
    ]


def _only_partition(door: RecordDoor, topic: Topic, rows: ProduceRows) -> int | None:
    """Where all of them go; None if they part, or if one of them has to be refused."""
    given = set(memoryview(rows.partitions).cast("i"))
    times_ms = memoryview(rows.columns.timestamps).cast("q")
    if len(given) != 1 or min(times_ms) < 0 or max(times_ms) > MAX_TIMESTAMP_MS:
        return None
    (partition,) = given
    if partition != NOT_GIVEN:
        return partition if 0 <= partition < topic.partition_count else None
    if topic.partition_count == 1:
        return 0
    return door.next_partition(topic) if _has_no_keys(rows.columns) else None


def _has_no_keys(columns: Columns) -> bool:
    return columns.key_validity is not None and not any(columns.key_validity)
