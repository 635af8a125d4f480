"""What a partition remembers of its idempotent producers, and what that makes of the next batch (I5).

The rules are Kafka's: each producer's last five batches are kept, a repeat of one of them gets its first offset back,
a gap is refused, a newer epoch starts again at sequence 0, an older one is fenced. A producer that the partition does
not know may start anywhere: its earlier records may have been deleted.

Where another leader was before, neither is said at once. librdkafka may send a later batch to the new leader while it
still puts the one before, which the old leader refused, back in its queue. Told that it is out of order, it would take
a new epoch and send again what may be stored; taken, it would be taken for an answer to both. So a batch of a producer
that is new to this leader is sent away once if one before it seems to be missing: that one, if there is one, comes
first then. What comes again is judged as above."""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import ItemsView
from typing import NamedTuple

from streamhouse.model.errors import CorruptData, EarlierBatchAwaited, OutOfOrderSequence, StaleProducerEpoch

WINDOW = 5  # Kafka's limit for max.in.flight.requests.per.connection of an idempotent producer
MAX_PRODUCERS = 100_000
EXPIRY_MS = 86_400_000
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

    def __init__(self) -> None:
        self._producers: OrderedDict[int, Producer] = OrderedDict()
        self._taken_over_at: int | None = None
        self._met: set[int] = set()
        """Those that were known when it was taken over, and have repeated a batch since."""
        self._sent_away: dict[int, int] = {}
        """The latest sequence that each of them was sent away with."""

    def __len__(self) -> int:
        return len(self._producers)

    def items(self) -> ItemsView[int, Producer]:
        return self._producers.items()

    def get(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def take_over(self, offset: int) -> None:
        """Another leader may have had the partition until this offset."""
        self._taken_over_at = offset
        self._met.clear()
        self._sent_away.clear()

    def check(self, producer_id: int, epoch: int, first_sequence: int, last_sequence: int) -> ProducedBatch | None:
        """None if the batch is the next one; the earlier batch if it is a repeat; raises if it is neither."""
        producer = self._producers.get(producer_id)
        if producer is None:
            if first_sequence != 0:
                self._send_away_once(producer_id, None, first_sequence)
            return None
        if epoch < producer.epoch:
            raise StaleProducerEpoch(f"producer {producer_id} has epoch {producer.epoch}, not {epoch}")
        if epoch > producer.epoch:
            if first_sequence != 0:
                self._send_away_once(producer_id, producer, first_sequence)
                raise OutOfOrderSequence(f"producer {producer_id} starts epoch {epoch} at sequence {first_sequence}")
            return None
        for batch in producer.batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                self._note_met(producer_id, producer)
                return batch
        expected = (producer.batches[-1].last_sequence + 1) % _SEQUENCE_MODULUS
        if first_sequence != expected:
            if comes_after(first_sequence, expected):
                self._send_away_once(producer_id, producer, first_sequence)
            raise OutOfOrderSequence(f"producer {producer_id} sent sequence {first_sequence}, not {expected}")
        return None

    def _is_new_here(self, producer_id: int, producer: Producer | None) -> bool:
        """Whether this leader has heard nothing of it before."""
        if self._taken_over_at is None or producer_id in self._met:
            return False
        return producer is None or producer.batches[-1].base_offset < self._taken_over_at

    def _note_met(self, producer_id: int, producer: Producer) -> None:
        if self._is_new_here(producer_id, producer):
            self._met.add(producer_id)

    def _send_away_once(self, producer_id: int, producer: Producer | None, first_sequence: int) -> None:
        if not self._is_new_here(producer_id, producer):
            return
        before = self._sent_away.get(producer_id)
        if before is None and len(self._sent_away) >= MAX_PRODUCERS:
            return
        if before is None or comes_after(first_sequence, before):
            self._sent_away[producer_id] = first_sequence
            raise EarlierBatchAwaited(
                f"batches of producer {producer_id} before sequence {first_sequence} may still come", hint="try again"
            )
        del self._sent_away[producer_id]

    def record(self, producer_id: int, epoch: int, batch: ProducedBatch, now_ms: int) -> Producer | None:
        """Remember an appended batch; returns what was known before, for `restore`."""
        if self._sent_away:
            self._sent_away.pop(producer_id, None)
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
    def from_snapshot(cls, data: bytes) -> ProducerTable:
        table = cls()
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
