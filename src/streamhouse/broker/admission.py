"""Batches that a topic's rules want looked at before they are appended: on the log's threads, and in the order in which
they came to a partition."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TypeAlias
from weakref import WeakKeyDictionary

from streamhouse.core.record_rules import Admitted, RecordRules
from streamhouse.format.batch import BatchHeader
from streamhouse.log.leader import PartitionLeader
from streamhouse.model.errors import StreamHouseError
from streamhouse.runtime.clock import Clock

Look: TypeAlias = tuple[RecordRules, memoryview]
# So much is looked at in one go, so that a request with many partitions does not change threads for each.
_RUN_BYTES = 64 * 1024


class Admission:
    def __init__(self, threads: Executor, clock: Clock) -> None:
        self._threads = threads
        self._clock = clock
        self._turns: WeakKeyDictionary[PartitionLeader, asyncio.Lock] = WeakKeyDictionary()

    def is_needed(self, leader: PartitionLeader, header: BatchHeader) -> bool:
        """Whether a batch must be looked at; not one that is too large anyway."""
        if not leader.has_rules and header.max_timestamp_ms >= header.base_timestamp_ms:
            return False  # nearly all are like this, and worth a short way
        return (
            leader.rules.must_look(header, self._clock.now_ms())
            and header.size_bytes <= leader.config.max_message_bytes
        )

    def turn(self, leader: PartitionLeader) -> asyncio.Lock:
        """To be held from the look to the append by callers that do not wait for one another, as a connection's
        requests do; first come, first served."""
        return self._turns.setdefault(leader, asyncio.Lock())

    def is_under_way(self, leader: PartitionLeader) -> bool:
        """Whether somebody has the turn."""
        turn = self._turns.get(leader)
        return turn is not None and turn.locked()

    def admit_now(self, looks: Sequence[Look]) -> list[Admitted | StreamHouseError]:
        """For batches that are cheap to look at."""
        return _admit_all(looks, self._clock.now_ms())

    async def admit(self, looks: Sequence[Look]) -> list[Admitted | StreamHouseError]:
        """What may be appended of each batch, or why nothing. Their memory must stay as it is meanwhile."""
        loop = asyncio.get_running_loop()
        outcomes: list[Admitted | StreamHouseError] = []
        while len(outcomes) < len(looks):
            run = _run(looks, len(outcomes))
            outcomes += await loop.run_in_executor(self._threads, _admit_all, run, self._clock.now_ms())
        return outcomes


def _run(looks: Sequence[Look], start: int) -> Sequence[Look]:
    end, size_bytes = start, 0
    while end < len(looks) and (end == start or size_bytes + len(looks[end][1]) <= _RUN_BYTES):
        size_bytes += len(looks[end][1])
        end += 1
    return looks[start:end]


def _admit_all(looks: Sequence[Look], now_ms: int) -> list[Admitted | StreamHouseError]:
    return [_admit(rules, batch, now_ms) for rules, batch in looks]


def _admit(rules: RecordRules, batch: memoryview, now_ms: int) -> Admitted | StreamHouseError:
    try:
        return rules.admit(batch, now_ms)
    except StreamHouseError as problem:
        return problem
