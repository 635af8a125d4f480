"""Which of a connection's batches were refused for a reason that passes: those behind them are refused as well.

A client has several batches of a partition on their way. When the first is refused because its leader has not begun
yet, and the leader begins before the second is read, the second must not be judged by itself. Either it is out of
order: then librdkafka takes a new producer epoch, under which it sends again everything whose fate it does not know, in
other partitions too, and nobody can tell that some of it is stored already. Or the partition does not know the producer
and takes it: then the client believes that the first one is stored, for they are acknowledged in order.

Batches come in order, so one that is not behind the last refused one says that the client has heard of the refusal and
begun again. It is judged by itself."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from streamhouse.core.producer_state import comes_after
from streamhouse.format.batch import BatchHeader
from streamhouse.model.errors import Fenced, NotFound, StreamHouseError, Unavailable

Place: TypeAlias = tuple[bytes, int]
"""A topic, by name or id as the connection's requests have it, and a partition."""

_PASSING = (Fenced, NotFound, Unavailable)
_MAX_PRODUCERS = 4_000
_MAX_NAME_BYTES = 249  # Kafka's longest topic name: one that is longer can never begin to exist


class _Refusal(NamedTuple):
    epoch: int
    sequence: int
    kind: type[StreamHouseError]


class RefusedSequences:
    """The last refused batch of each idempotent producer and partition, until the client begins again."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[Place, int], _Refusal] = {}
        """Nearly always empty, which is to be seen without a call."""

    def note(self, place: Place, header: BatchHeader, problem: StreamHouseError) -> None:
        if header.producer_id < 0 or not isinstance(problem, _PASSING) or len(place[0]) > _MAX_NAME_BYTES:
            return
        key = (place, header.producer_id)
        self.waiting.pop(key, None)
        # Its kind, and not the problem, which holds on to the frames, and so the buffers, of whoever raised it.
        self.waiting[key] = _Refusal(header.producer_epoch, header.base_sequence, type(problem))
        if len(self.waiting) > _MAX_PRODUCERS:
            del self.waiting[next(iter(self.waiting))]

    def check(self, place: Place, header: BatchHeader) -> None:
        """Refuse this batch too, if it is behind one that has to come again."""
        refusal = self.waiting.get((place, header.producer_id))
        if refusal is None:
            return
        if header.producer_epoch == refusal.epoch and comes_after(header.base_sequence, refusal.sequence):
            raise refusal.kind("a batch of this producer before this one was refused", hint="send that one again first")
        del self.waiting[place, header.producer_id]
