"""How far behind groups were in the last hour, by topic and by partition: so many of both, and never more memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import chain
from typing import NamedTuple, TypeVar
from uuid import UUID

from streamhouse.core.history import History, Samples
from streamhouse.model.names import TopicPartition

MOST = 2_000
"""Of groups in topics, and as many of groups in partitions: some five megabytes each."""
_SERIES = "lag"

Key = TypeVar("Key", bound=Hashable)
Lags = Mapping[tuple[str, TopicPartition], int | None]
"""By group; None where nobody can say."""


class GroupLags(NamedTuple):
    """At these times, of all partitions together and of each that there is a history of, the one that is furthest
    behind first. None where nothing was known."""

    times_ms: list[int]
    total: list[float | None]
    partitions: dict[TopicPartition, list[float | None]]


class LagHistory:
    def __init__(self, *, period_ms: int, kept_ms: int) -> None:
        self._period_ms = period_ms
        self._capacity = kept_ms // period_ms
        self._topics: dict[tuple[str, UUID], History] = {}
        self._partitions: dict[tuple[str, TopicPartition], History] = {}

    def add(self, at_ms: int, lags: Lags) -> None:
        """Of a group that has committed nothing any more the past is forgotten."""
        topics: dict[tuple[str, UUID], int | None] = {}
        for (group_id, partition), lag in lags.items():
            key = group_id, partition.topic_id
            before = topics.get(key, 0)
            topics[key] = None if lag is None or before is None else before + lag
        self._note(self._topics, at_ms, topics)
        self._note(self._partitions, at_ms, lags)

    def add_unknown(self, at_ms: int) -> None:
        """Nobody can say how far behind any of them is."""
        for history in chain(self._topics.values(), self._partitions.values()):
            history.add(at_ms, {})

    def of_topic(self, group_id: str, topic_id: UUID, since_ms: int = 0) -> Samples | None:
        kept = self._topics.get((group_id, topic_id))
        return None if kept is None else kept.samples(since_ms)

    def of_group(self, group_id: str, most: int, since_ms: int = 0) -> GroupLags:
        """Of so many partitions."""
        topics = [_by_time(kept, since_ms) for (group, _), kept in self._topics.items() if group == group_id]
        times_ms = sorted({at_ms for topic in topics for at_ms in topic})
        partitions = {key[1]: _by_time(kept, since_ms) for key, kept in self._partitions.items() if key[0] == group_id}
        behind = sorted(partitions, key=lambda partition: -(_last(partitions[partition]) or 0))
        return GroupLags(
            times_ms=times_ms,
            total=[_sum(topic[at_ms] for topic in topics if at_ms in topic) for at_ms in times_ms],
            partitions={key: [partitions[key].get(at_ms) for at_ms in times_ms] for key in behind[:most]},
        )

    def _note(self, kept: dict[Key, History], at_ms: int, lags: Mapping[Key, int | None]) -> None:
        for key in kept.keys() - lags.keys():
            del kept[key]
        new = sorted(lags.keys() - kept.keys(), key=lambda key: -(lags[key] or 0))
        for key in new[: max(0, MOST - len(kept))]:
            kept[key] = History((_SERIES,), self._capacity, longest_pause_ms=3 * self._period_ms)
        for key, history in kept.items():
            history.add(at_ms, {_SERIES: lags[key]})


def _by_time(kept: History, since_ms: int) -> dict[int, float | None]:
    samples = kept.samples(since_ms)
    return dict(zip(samples.times_ms, samples.series[_SERIES], strict=True))


def _last(lags: Mapping[int, float | None]) -> float | None:
    return lags[max(lags)] if lags else None


def _sum(lags: Iterable[float | None]) -> float | None:
    known = list(lags)
    return None if None in known else sum(lag for lag in known if lag is not None)
