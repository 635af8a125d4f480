"""What clients were told, and whether all of it can be true of one log (invariants I1 to I5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from struct import Struct

from format_samples.batches import batch
from streamhouse.format.batch import HEADER_BYTES, iter_headers
from streamhouse.model.names import TopicPartition

MAX_RECORDS = 3
_VALUES = [Struct(f">{count}q") for count in range(MAX_RECORDS + 1)]


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as a reader gets it. Values are numbers, each sent once and all different."""

    offset: int
    value: int
    epoch: int


@dataclass(slots=True)
class _Sent:
    producer: str
    position: int
    is_idempotent: bool


@dataclass(slots=True)
class _PartitionHistory:
    sent: dict[int, _Sent] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    acknowledged: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    watermarks: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The lowest and the highest that was seen of each epoch."""
    given_up: list[tuple[int, int]] = field(default_factory=list)
    """For each unclean election the newest epoch before it, and the offset from which its records are gone."""
    expendable: set[int] = field(default_factory=set)
    """Values that an unclean election may have lost."""


def batch_of(values: Sequence[int], producer: tuple[int, int, int]) -> bytes:
    """A batch as a client sends it, whose records are numbers and nothing else: nobody on the way decodes them."""
    records = _VALUES[len(values)].pack(*values)
    return batch(count=len(values), records=records, producer=producer)


def entries_of(batches: bytes) -> list[Entry]:
    return [
        Entry(offset, value, header.leader_epoch)
        for position, header in iter_headers(batches)
        for offset, value in enumerate(
            _VALUES[header.record_count].unpack_from(batches, position + HEADER_BYTES), header.base_offset
        )
    ]


class History:
    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, _PartitionHistory] = {}
        self.violations: list[str] = []
        self.acknowledged = 0
        self.read = 0

    def _of(self, partition: TopicPartition) -> _PartitionHistory:
        if partition not in self._partitions:
            self._partitions[partition] = _PartitionHistory()
        return self._partitions[partition]

    # --- what happens ---

    def sent(self, partition: TopicPartition, producer: str, values: Sequence[int], *, is_idempotent: bool) -> None:
        sent = self._of(partition).sent
        for value in values:
            sent[value] = _Sent(producer, len(sent), is_idempotent)

    def refused(self, partition: TopicPartition, values: Iterable[int]) -> None:
        """Nobody will ever see them: they were refused before they were stored, and not sent again."""
        self._of(partition).refused.update(values)

    def acked(self, partition: TopicPartition, base_offset: int, values: Sequence[int]) -> None:
        known = self._of(partition)
        for offset, value in enumerate(values, start=base_offset):
            self.acknowledged += 1
            known.acknowledged[value] = offset
            if value not in known.expendable:
                self._same_value(partition, offset, value, "acknowledged")

    def saw(
        self, partition: TopicPartition, entries: Sequence[Entry], *, epoch: int, high_watermark: int, durable_end: int
    ) -> None:
        """A reader got these from the leader of an epoch; `durable_end` is what was durable anywhere then."""
        known = self._of(partition)
        if high_watermark > durable_end:
            self._violated("I4", partition, f"high watermark {high_watermark}, but only {durable_end} is durable")
        for entry in entries:
            self.read += 1
            if entry.offset >= high_watermark:
                self._violated("I4", partition, f"offset {entry.offset} was read above {high_watermark}")
            if entry.value in known.refused or entry.value not in known.sent:
                self._violated("I4", partition, f"{entry.value} was read, but refused or never sent")
            if not self._is_given_up(known, entry.epoch, entry.offset):
                self._same_value(partition, entry.offset, entry.value, "read")
        low, high = known.watermarks.get(epoch, (high_watermark, high_watermark))
        known.watermarks[epoch] = (min(low, high_watermark), max(high, high_watermark))

    def elected_unclean(self, partition: TopicPartition, epoch: int, committed_end: int) -> None:
        """An operator gave up what an agent's disk may hold beyond `committed_end`: what was sent before may be gone,
        and what was sent after may not."""
        known = self._of(partition)
        known.given_up.append((epoch, committed_end))
        safe = {value for value, offset in known.acknowledged.items() if offset < committed_end}
        known.expendable.update(known.sent.keys() - safe)
        known.values = {offset: value for offset, value in known.values.items() if offset < committed_end}

    def has_given_up(self, partition: TopicPartition) -> bool:
        """Whether there was an unclean election."""
        return bool(self._of(partition).given_up)

    # --- what must be true in the end ---

    def check_log(self, partition: TopicPartition, log: Sequence[Entry], epochs: Sequence[tuple[int, int]]) -> None:
        """`log`: everything that is there when all has come to rest; `epochs`: where each epoch starts."""
        known = self._of(partition)
        final = {entry.offset: entry.value for entry in log}
        offsets = {value: offset for offset, value in final.items()}
        if [entry.offset for entry in log] != list(range(len(log))):
            self._violated("I3", partition, "the log has gaps or overlaps")
        for value, offset in known.acknowledged.items():
            if final.get(offset) != value and value not in known.expendable:
                self._violated("I1", partition, f"{value} was acknowledged at {offset}; there is {final.get(offset)}")
        for offset, value in known.values.items():
            if final.get(offset) != value:
                self._violated("I2", partition, f"offset {offset} was {value} and is {final.get(offset)}")
        repeated = {entry.value for entry in log if offsets[entry.value] != entry.offset} - known.expendable
        if repeated:
            self._violated("I5", partition, f"stored more than once: {sorted(repeated)}")
        for value in offsets.keys() & known.refused:
            self._violated("I4", partition, f"{value} was refused and is there")
        self._check_order(partition, log)
        self._check_epochs(partition, log, epochs)
        self._check_watermarks(partition)

    def _check_order(self, partition: TopicPartition, log: Sequence[Entry]) -> None:
        known = self._of(partition)
        newest: dict[str, int] = {}
        for entry in log:
            sent = known.sent.get(entry.value)
            if sent is None:
                self._violated("I4", partition, f"{entry.value} is there and was never sent")
            elif entry.value in known.expendable or not sent.is_idempotent:
                continue
            elif newest.get(sent.producer, -1) > sent.position:
                self._violated("I5", partition, f"{entry.value} of {sent.producer} is out of order")
            else:
                newest[sent.producer] = sent.position

    def _check_epochs(self, partition: TopicPartition, log: Sequence[Entry], epochs: Sequence[tuple[int, int]]) -> None:
        """A record has the epoch of the leader in whose time its offset lies. One that starts further back than those
        before it, after an unclean election, is the one that counts."""
        for (epoch, start), (following, following_start) in pairwise(epochs):
            if following_start < start and not self._of(partition).given_up:
                self._violated("I3", partition, f"epoch {following} starts before epoch {epoch}")
        for entry in log:
            expected = max((epoch for epoch, start in epochs if start <= entry.offset), default=-1)
            if entry.epoch != expected:
                self._violated("I3", partition, f"offset {entry.offset} is of epoch {entry.epoch}, not {expected}")

    def _check_watermarks(self, partition: TopicPartition) -> None:
        known = self._of(partition)
        elected = [epoch for epoch, _ in known.given_up]
        highest, highest_epoch = -1, -1
        for epoch, (low, high) in sorted(known.watermarks.items()):
            if any(highest_epoch <= before < epoch for before in elected):
                highest = -1
            if low < highest:
                self._violated("I4", partition, f"the high watermark went back from {highest} to {low} in {epoch}")
            highest, highest_epoch = max(high, highest), epoch

    # --- inside ---

    @staticmethod
    def _is_given_up(known: _PartitionHistory, epoch: int, offset: int) -> bool:
        return any(epoch <= before and offset >= start for before, start in known.given_up)

    def _same_value(self, partition: TopicPartition, offset: int, value: int, how: str) -> None:
        before = self._of(partition).values.setdefault(offset, value)
        if before != value:
            self._violated("I2", partition, f"offset {offset} was {before} and is {how} as {value}")

    def _violated(self, invariant: str, partition: TopicPartition, what: str) -> None:
        self.violations.append(f"{invariant} {partition.topic_id.int}/{partition.partition}: {what}")
