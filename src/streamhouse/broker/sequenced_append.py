"""Appending batches to a partition as one idempotent producer from its first sequence on, however often it is begun.

Why that stores each batch once: a leader takes a batch only if it follows the last one of this producer and epoch, and
recognises the last few. So when all batches before are stored and a batch is refused as out of order, the leader is
further than that already, and the batch is stored as well. Somebody else may be at the same work at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from streamhouse.core.producer_state import WINDOW
from streamhouse.format.batch import read_header, stamp_producer
from streamhouse.model.errors import OutOfOrderSequence, Unavailable

Produce = Callable[[bytes], Awaitable[object]]
"""Stores one batch where it belongs, and returns when it is durable. A repeat is harmless."""

_SEQUENCE_MODULUS = 2**31


class SequencedAppend:
    def __init__(self, produce: Produce, producer_id: int, producer_epoch: int) -> None:
        self._produce = produce
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._next_sequence = 0
        # A leader that does not know the producer takes any sequence for its first, so that one is sent alone.
        self._window = 1

    async def append_all(self, batches: AsyncIterator[memoryview]) -> None:
        """In order and without gaps; when this returns all of them are durable."""
        waiting: list[bytes] = []
        async for batch in batches:
            waiting.append(self._stamp(batch))
            # One more than is sent: only what others follow may be out of order.
            if len(waiting) > self._window:
                waiting = await self._send_some(waiting, is_end=False)
        while waiting:
            waiting = await self._send_some(waiting, is_end=True)

    def _stamp(self, batch: memoryview) -> bytes:
        sequence = self._next_sequence
        self._next_sequence = (sequence + read_header(batch).record_count) % _SEQUENCE_MODULUS
        return stamp_producer(batch, self._producer_id, self._producer_epoch, sequence)

    async def _send_some(self, waiting: list[bytes], *, is_end: bool) -> list[bytes]:
        """Sends the first of those that wait, all before which are stored; returns the ones that still wait."""
        sent = waiting[: self._window]
        outcomes = await asyncio.gather(*(self._produce(batch) for batch in sent), return_exceptions=True)
        refusal: OutOfOrderSequence | None = None
        stored = 0
        for number, outcome in enumerate(outcomes, start=1):
            if isinstance(outcome, OutOfOrderSequence):
                refusal = refusal or outcome
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                stored = number
        if refusal is not None and not stored:
            if is_end and len(waiting) == 1:
                # Every leader recognises the last batch, unless what it had of the others was never durable.
                raise Unavailable("a leader has lost track of a producer's batches", hint="try again") from refusal
            stored = 1
        self._window = WINDOW
        return waiting[stored:]
