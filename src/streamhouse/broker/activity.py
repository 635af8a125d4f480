"""What this node does, all its listeners together, and how long its producers have waited of late."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from streamhouse.broker.broker import Broker
from streamhouse.broker.measures import DoorMeasures
from streamhouse.client.peer import NodeWal, NodeWork, WalFile, WalObject, WalOnDisk
from streamhouse.log.wal_state import LocalWalState
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.measures import SECONDS, quantile

_WINDOW_MS = 60_000
_LOOK_AGAIN_MS = 1_000


class Activity:
    def __init__(self, broker: Broker, doors: Mapping[str, DoorMeasures]) -> None:
        self._broker = broker
        self._doors = doors
        self._latencies = RecentCounts(broker.clock, len(SECONDS) + 1)
        self._stalls = (Stall(broker.clock), Stall(broker.clock))

    def now(self) -> NodeWork:
        doors = self._doors.values()
        broker = self._broker
        local_wal, in_objects = broker.wal_states()
        waits = self._latencies.since_a_while(
            [sum(counts) for counts in zip(*(door.produce_seconds.counts for door in doors), strict=True)]
        )
        unsynced = (
            0 if local_wal is None else local_wal.unsynced_batches,
            in_objects.gathered_batches + len(in_objects.in_flight),
        )
        states = zip(self._stalls, unsynced, broker.syncs, strict=True)
        return NodeWork(
            records_in=sum(door.produced_records for door in doors),
            bytes_in=sum(door.produced_bytes for door in doors),
            records_out=sum(door.fetched_records for door in doors),
            bytes_out=sum(door.fetched_bytes for door in doors),
            produce_p50_ms=_quantile_ms(waits, 0.5),
            produce_p99_ms=_with_those_that_wait(
                _quantile_ms(waits, 0.99), max(stall.lasts_ms(waiting, done) for stall, waiting, done in states)
            ),
            buffered_bytes=max(0, broker.buffer.used_bytes),
            buffer_limit_bytes=broker.buffer.limit_bytes,
            ends={leader.partition: leader.high_watermark for leader in broker.led},
            oldest_upload_ms=broker.oldest_upload_ms,
            wal_problem=None if local_wal is None else local_wal.problem,
        )


def node_wal(broker: Broker) -> NodeWal:
    """What this node's write-ahead logs hold, now."""
    local, in_objects = broker.wal_states()
    led = broker.led
    return NodeWal(
        disk=None if local is None else _wal_on_disk(local),
        gathered_batches=in_objects.gathered_batches,
        gathered_bytes=in_objects.gathered_bytes,
        in_flight=[WalObject(**asdict(sealed)) for sealed in in_objects.in_flight],
        uncovered_records=sum(leader.high_watermark - leader.committed_end for leader in led),
        uncovered_bytes=sum(leader.buffered_bytes for leader in led),
    )


def _wal_on_disk(state: LocalWalState) -> WalOnDisk:
    return WalOnDisk(
        files=[WalFile(**asdict(file)) for file in state.files],
        unsynced_batches=state.unsynced_batches,
        unsynced_bytes=state.unsynced_bytes,
        problem=state.problem,
    )


class Stall:
    """For how long a WAL has had something to make durable and has made nothing so, as far as looks can tell: what
    waits has waited for that long, and is in no latency yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ms: int | None = None
        self._done = 0

    def lasts_ms(self, waiting: int, done: int) -> int:
        """`waiting` now, and how much was ever `done`."""
        if not waiting or done != self._done or self._since_ms is None:
            self._since_ms = self._clock.monotonic_ms() if waiting else None
        self._done = done
        return 0 if self._since_ms is None else self._clock.monotonic_ms() - self._since_ms


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


def _with_those_that_wait(p99_ms: float | None, stalled_ms: int) -> float | None:
    """While nothing becomes durable every producer waits."""
    return p99_ms if stalled_ms <= (p99_ms or 0.0) else float(stalled_ms)


def _quantile_ms(counts: Sequence[int], share: float) -> float | None:
    seconds = quantile(SECONDS, counts, share)
    return None if seconds is None else round(seconds * 1000, 3)
