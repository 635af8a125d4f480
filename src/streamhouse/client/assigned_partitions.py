"""The partitions that a group consumer owns: where each is read next, what was fetched ahead, what is committed."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from streamhouse.client.consumer import ConsumedRecord
from streamhouse.client.fetching import Fetched
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.format.records import Record


@dataclass(slots=True)
class _Owned:
    """`position` is behind what was returned; `handled` behind what its reader is done with. None: not known yet."""

    position: int | None = None
    handled: int | None = None
    committed: int | None = None
    fetch_from: int | None = None
    is_without_offset: bool = False
    fetched: deque[Record] = field(default_factory=deque)


class AssignedPartitions:
    """Decisions only: its owner asks the brokers. An answer to a question that is no longer asked is dropped here."""

    def __init__(self) -> None:
        self._owned: dict[GroupPartition, _Owned] = {}

    @property
    def owned(self) -> frozenset[GroupPartition]:
        return frozenset(self._owned)

    @property
    def unplaced(self) -> list[GroupPartition]:
        """Those of which nobody has said yet where to read."""
        return [partition for partition, state in self._owned.items() if state.position is None]

    @property
    def without_offset(self) -> list[GroupPartition]:
        """Those of which the group has committed nothing, and nobody is to guess."""
        return [partition for partition, state in self._owned.items() if state.is_without_offset]

    @property
    def positions(self) -> dict[GroupPartition, int]:
        return {place: state.position for place, state in self._owned.items() if state.position is not None}

    def add(self, partitions: Iterable[GroupPartition]) -> None:
        for partition in partitions:
            self._owned.setdefault(partition, _Owned())

    def remove(self, partitions: Iterable[GroupPartition]) -> None:
        for partition in partitions:
            self._owned.pop(partition, None)

    def clear(self) -> None:
        self._owned.clear()

    def place(self, partition: GroupPartition, offset: int, *, committed: int | None = None) -> None:
        """Read on from `offset`; what was fetched ahead is forgotten."""
        state = self._owned.get(partition)
        if state is not None:
            state.position = state.handled = state.fetch_from = offset
            state.committed = committed if committed is not None else state.committed
            state.is_without_offset = False
            state.fetched.clear()

    def place_new(self, partition: GroupPartition, offset: int, *, committed: int | None = None) -> None:
        """Unless somebody sought another place while this one was looked up."""
        if partition in self.unplaced:
            self.place(partition, offset, committed=committed)

    def note_without_offset(self, partitions: Iterable[GroupPartition]) -> None:
        for partition in partitions:
            if (state := self._owned.get(partition)) is not None and state.position is None:
                state.is_without_offset = True

    def to_fetch(self) -> dict[GroupPartition, int]:
        """Where to ask next: of the partitions of which nothing is left to return."""
        return {
            place: state.fetch_from
            for place, state in self._owned.items()
            if state.fetch_from is not None and not state.fetched
        }

    def put(self, answer: Fetched) -> None:
        state = self._owned.get(answer.partition)
        if state is None or state.fetch_from != answer.offset:
            return  # given up or sought elsewhere while the question was on its way
        state.fetched.extend(answer.records)
        state.fetch_from = answer.next_offset
        if not state.fetched:
            state.position = answer.next_offset

    def take(self, max_records: int, max_bytes: int) -> list[ConsumedRecord]:
        """What was fetched, in offset order within a partition; one record at least, however large it is."""
        taken: list[ConsumedRecord] = []
        left_bytes = max_bytes
        for place in list(self._owned):
            state, before = self._owned[place], len(taken)
            while state.fetched and len(taken) < max_records:
                left_bytes -= _size_bytes(state.fetched[0])
                if taken and left_bytes < 0:
                    break
                record = state.fetched.popleft()
                state.position = record.offset + 1 if state.fetched else state.fetch_from
                taken.append(_consumed(place, record))
            if len(taken) > before:
                # To the end of the line: no partition waits for another that always has more.
                self._owned[place] = self._owned.pop(place)
            if left_bytes < 0:
                break
        return taken

    def handled_all(self) -> None:
        """Whatever was returned, its reader is done with it."""
        for state in self._owned.values():
            state.handled = state.position

    def note_handled(self, offsets: Mapping[GroupPartition, int]) -> None:
        """Of what was returned, its reader is done with what is before these offsets."""
        for partition, offset in offsets.items():
            if (state := self._owned.get(partition)) is not None:
                state.handled = max(offset, state.handled or 0)

    def in_hand(self, partitions: Collection[GroupPartition]) -> list[GroupPartition]:
        """Those of which records were returned that are neither handled nor committed."""
        return [
            place
            for place in partitions
            if (state := self._owned.get(place)) is not None and state.position not in (state.handled, state.committed)
        ]

    def uncommitted(self, *, handled_only: bool) -> dict[GroupPartition, int]:
        """Where each partition would be committed at, for those that are not committed there yet."""
        found: dict[GroupPartition, int] = {}
        for place, state in self._owned.items():
            offset = state.handled if handled_only else state.position
            if offset is not None and offset != state.committed:
                found[place] = offset
        return found

    def note_committed(self, offsets: Mapping[GroupPartition, int]) -> None:
        for partition, offset in offsets.items():
            if (state := self._owned.get(partition)) is not None:
                state.committed = offset
        self.note_handled(offsets)


def _size_bytes(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")


def _consumed(place: GroupPartition, record: Record) -> ConsumedRecord:
    return ConsumedRecord(
        topic=place.topic,
        partition=place.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )
