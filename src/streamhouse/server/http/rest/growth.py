"""How fast topics are written and read, from where their partitions end and where groups are: looked at now and then,
and compared."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple
from uuid import UUID

from streamhouse.metadata.totals import GroupPosition
from streamhouse.model.names import TopicPartition

_WINDOW_MS = 30_000
_LEAST_MS = 1_000


class _Look(NamedTuple):
    """What had grown by then. `read` is None where nobody could say how far groups were."""

    at_ms: int
    written: Mapping[UUID, int]
    read: Mapping[UUID, int] | None


class TopicGrowth:
    """What grew is counted from the first look on. A partition that was not there before is new, and began with 0; one
    whose end nobody had told of by then counts from when somebody does; a group that is new from when it was seen."""

    def __init__(self) -> None:
        self.last_write_ms: dict[UUID, int] = {}
        """By the wall clock, of topics that grew since the first look."""
        self._ends: Mapping[TopicPartition, int] = {}
        self._unheard: Set[TopicPartition] = frozenset()
        """At every look so far."""
        self._positions: dict[tuple[str, TopicPartition], int] = {}
        self._written: Counter[UUID] = Counter()
        self._read: Counter[UUID] = Counter()
        self._looks: deque[_Look] = deque()

    def look(
        self,
        ends: Mapping[TopicPartition, int],
        unheard: Set[TopicPartition],
        positions: Iterable[GroupPosition] | None,
        *,
        now_ms: int,
        monotonic_ms: int,
    ) -> None:
        """`unheard` are partitions that may end later than is known, as who leads them has never told."""
        self._note_ends(ends, unheard, now_ms)
        if positions is not None:
            self._note_positions(positions)
        self._forget({partition.topic_id for partition in ends} | {each.topic_id for _, each in self._positions})
        while len(self._looks) > 1 and monotonic_ms - self._looks[1].at_ms >= _WINDOW_MS:
            self._looks.popleft()
        if not self._looks or monotonic_ms - self._looks[-1].at_ms >= _LEAST_MS:
            read = None if positions is None else dict(self._read)
            self._looks.append(_Look(monotonic_ms, dict(self._written), read))

    def written_per_s(self, topic_id: UUID) -> float | None:
        if (pair := self._pair()) is None:
            return None
        before, now = pair
        return _rate(now.at_ms - before.at_ms, before.written, now.written, topic_id)

    def read_per_s(self, topic_id: UUID) -> float | None:
        if (pair := self._pair()) is None:
            return None
        before, now = pair
        if before.read is None or now.read is None:
            return None
        return _rate(now.at_ms - before.at_ms, before.read, now.read, topic_id)

    def _pair(self) -> tuple[_Look, _Look] | None:
        return (self._looks[0], self._looks[-1]) if len(self._looks) > 1 else None

    def _note_ends(self, ends: Mapping[TopicPartition, int], unheard: Set[TopicPartition], now_ms: int) -> None:
        is_first = not self._looks
        for partition, end in ends.items():
            before = self._ends.get(partition, end if is_first else 0)
            if end > before and partition not in self._unheard:
                self._written[partition.topic_id] += end - before
                self.last_write_ms[partition.topic_id] = now_ms
        self._ends = dict(ends)
        self._unheard = unheard if is_first else self._unheard & unheard

    def _note_positions(self, positions: Iterable[GroupPosition]) -> None:
        now = {(each.group_id, each.partition): each.offset for each in positions}
        for key, offset in now.items():
            before = self._positions.get(key)
            if before is not None and offset > before:
                self._read[key[1].topic_id] += offset - before
        self._positions = now

    def _forget(self, topics: set[UUID]) -> None:
        """Topics that are gone take no memory."""
        for counted in (self._written, self._read, self.last_write_ms):
            for topic_id in counted.keys() - topics:
                del counted[topic_id]


def _rate(elapsed_ms: int, before: Mapping[UUID, int], now: Mapping[UUID, int], topic_id: UUID) -> float:
    grown = now.get(topic_id, 0) - before.get(topic_id, 0)
    return max(0, grown) * 1000 / elapsed_ms
