"""What this node does, all its listeners together, and how long its producers have waited of late."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from streamhouse.broker.broker import Broker
from streamhouse.broker.measures import DoorMeasures
from streamhouse.client.peer import NodeWork
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.measures import SECONDS, quantile

_WINDOW_MS = 60_000
_LOOK_AGAIN_MS = 1_000


class Activity:
    def __init__(self, broker: Broker, doors: Mapping[str, DoorMeasures]) -> None:
        self._broker = broker
        self._doors = doors
        self._latencies = RecentCounts(broker.clock, len(SECONDS) + 1)

    def now(self) -> NodeWork:
        doors = self._doors.values()
        broker = self._broker
        waits = self._latencies.since_a_while(
            [sum(counts) for counts in zip(*(door.produce_seconds.counts for door in doors), strict=True)]
        )
        return NodeWork(
            records_in=sum(door.produced_records for door in doors),
            bytes_in=sum(door.produced_bytes for door in doors),
            records_out=sum(door.fetched_records for door in doors),
            bytes_out=sum(door.fetched_bytes for door in doors),
            produce_p50_ms=_quantile_ms(waits, 0.5),
            produce_p99_ms=_quantile_ms(waits, 0.99),
            buffered_bytes=max(0, broker.buffer.used_bytes),
            buffer_limit_bytes=broker.buffer.limit_bytes,
            ends={leader.partition: leader.high_watermark for leader in broker.led},
        )


class RecentCounts:
    """Counts of a histogram since about a minute ago: those of earlier looks are kept, so that nobody pays for it while
    nobody looks. After a pause it is since the last look, and at first since the start."""

    def __init__(self, clock: Clock, buckets: int) -> None:
        self._clock = clock
        self._looks: deque[tuple[int, Sequence[int]]] = deque([(clock.monotonic_ms(), [0] * buckets)])

    def since_a_while(self, counts: Sequence[int]) -> Sequence[int]:
        now_ms = self._clock.monotonic_ms()
        while len(self._looks) > 1 and now_ms - self._looks[1][0] >= _WINDOW_MS:
            self._looks.popleft()
        if now_ms - self._looks[-1][0] >= _LOOK_AGAIN_MS:
            self._looks.append((now_ms, counts))
        return [now - then for now, then in zip(counts, self._looks[0][1], strict=True)]


def _quantile_ms(counts: Sequence[int], share: float) -> float | None:
    seconds = quantile(SECONDS, counts, share)
    return None if seconds is None else round(seconds * 1000, 3)
