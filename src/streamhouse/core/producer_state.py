"""What a partition remembers of its idempotent producers, and what that makes of the next batch (I5).

The rules are Kafka's: each producer's last five batches are kept, a repeat of one of them gets its first offset back,
a gap is refused, a newer epoch starts again at sequence 0, an older one is fenced. A producer that the partition does
not know may start anywhere: its earlier records may have been deleted.

But not at once where another leader was before: librdkafka may send a later batch to the new leader while it still puts
the one before, which the old leader refused, back in its queue. It would take the answer to the later one for an answer
to both. So a start in the middle is sent away once; what comes again, or comes before it, is taken."""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import NamedTuple

from streamhouse.model.errors import CorruptData, OutOfOrderSequence, ProducerUnknown, StaleProducerEpoch

WINDOW = 5  # Kafka's limit for max.in.flight.requests.per.connection of an idempotent producer
MAX_PRODUCERS = 100_000
EXPIRY_MS = 86_400_000
_MAX_SENT_AWAY = 1_000
_SEQUENCE_MODULUS = 2**31
_SNAPSHOT_HEADER = struct.Struct(">BI")
_PRODUCER = struct.Struct(">qhqB")
_BATCH = struct.Struct(">iiqq")
_SNAPSHOT_VERSION = 1


def comes_after(sequence: int, other: int) -> bool:
    """Sequences go on at 0 after the largest, so "after" means: less than half a round ahead."""
    return 0 < (sequence - other) % _SEQUENCE_MODULUS < _SEQUENCE_MODULUS // 2


class ProducedBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    base_offset: int
    end_offset: int


class Producer(NamedTuple):
    """One producer's state; replaced, never changed, so that an earlier one can be put back."""

    epoch: int
    last_used_ms: int
    batches: tuple[ProducedBatch, ...]


class ProducerTable:
    """All producers of one partition, least recently used first."""

    def __init__(self, *, is_taken_over: bool = False) -> None:
        """`is_taken_over`: another leader had the partition before."""
        self._producers: OrderedDict[int, Producer] = OrderedDict()
        self._is_taken_over = is_taken_over
        self._sent_away: dict[int, int] = {}
        """The sequences at which producers wanted to start."""

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def check(self, producer_id: int, epoch: int, first_sequence: int, last_sequence: int) -> ProducedBatch | None:
        """None if the batch is the next one; the earlier batch if it is a repeat; raises if it is neither."""
        producer = self._producers.get(producer_id)
        if producer is None:
            if first_sequence and self._is_taken_over:
                self._check_start(producer_id, first_sequence)
            return None
        if epoch < producer.epoch:
            raise StaleProducerEpoch(f"producer {producer_id} has epoch {producer.epoch}, not {epoch}")
        if epoch > producer.epoch:
            if first_sequence != 0:
                raise OutOfOrderSequence(f"producer {producer_id} starts epoch {epoch} at sequence {first_sequence}")
            return None
        for batch in producer.batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                return batch
        expected = (producer.batches[-1].last_sequence + 1) % _SEQUENCE_MODULUS
        if first_sequence != expected:
            raise OutOfOrderSequence(f"producer {producer_id} sent sequence {first_sequence}, not {expected}")
        return None

    def _check_start(self, producer_id: int, first_sequence: int) -> None:
        before = self._sent_away.pop(producer_id, None)
        if before is None or comes_after(first_sequence, before):
            self._sent_away[producer_id] = first_sequence
            if len(self._sent_away) > _MAX_SENT_AWAY:
                del self._sent_away[next(iter(self._sent_away))]
            raise ProducerUnknown(
                f"producer {producer_id} is unknown, and begins at {first_sequence}", hint="try again"
            )

    def record(self, producer_id: int, epoch: int, batch: ProducedBatch, now_ms: int) -> Producer | None:
        """Remember an appended batch; returns what was known before, for `restore`."""
        before = self._producers.get(producer_id)
        kept = before.batches[1 - WINDOW :] if before is not None and before.epoch == epoch else ()
        self._producers[producer_id] = Producer(epoch, now_ms, (*kept, batch))
        self._producers.move_to_end(producer_id)
        if len(self._producers) > MAX_PRODUCERS:
            self._producers.popitem(last=False)
        return before

    def restore(self, producer_id: int, before: Producer | None) -> None:
        """Take back the newest `record` of this producer: its batch never became durable."""
        if before is None:
            self._producers.pop(producer_id, None)
        else:
            self._producers[producer_id] = before

    def expire(self, now_ms: int) -> None:
        while self._producers:
            producer_id, producer = next(iter(self._producers.items()))
            if now_ms - producer.last_used_ms < EXPIRY_MS:
                return
            del self._producers[producer_id]

    def snapshot(self, end_offset: int) -> bytes:
        """The state as of an offset: batches at or after it are left out, since they might yet be lost."""
        if not self._producers:
            return b""
        count = 0
        parts: list[bytes] = []
        for producer_id, producer in self._producers.items():
            batches = [batch for batch in producer.batches if batch.end_offset <= end_offset]
            if batches:
                count += 1
                parts.append(_PRODUCER.pack(producer_id, producer.epoch, producer.last_used_ms, len(batches)))
                parts.extend(_BATCH.pack(*batch) for batch in batches)
        return _SNAPSHOT_HEADER.pack(_SNAPSHOT_VERSION, count) + b"".join(parts)

    @classmethod
    def from_snapshot(cls, data: bytes, *, is_taken_over: bool = False) -> ProducerTable:
        table = cls(is_taken_over=is_taken_over)
        if not data:
            return table
        try:
            version, count = _SNAPSHOT_HEADER.unpack_from(data, 0)
            position = _SNAPSHOT_HEADER.size
            if version != _SNAPSHOT_VERSION:
                raise CorruptData(f"producer state has version {version}", hint="a newer StreamHouse wrote it")
            for _ in range(count):
                producer_id, epoch, last_used_ms, batch_count = _PRODUCER.unpack_from(data, position)
                position += _PRODUCER.size
                batches = []
                for _ in range(batch_count):
                    batches.append(ProducedBatch(*_BATCH.unpack_from(data, position)))
                    position += _BATCH.size
                table._producers[producer_id] = Producer(epoch, last_used_ms, tuple(batches))
        except struct.error as problem:
            raise CorruptData("producer state is cut short") from problem
        return table
