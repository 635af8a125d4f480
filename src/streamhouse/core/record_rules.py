"""What a topic asks of the batches that producers send: keys where it is compacted, times within limits, records that
are what the header says, one codec. A batch is taken or refused as a whole, as in Kafka.

Most topics ask nothing, and their batches stay closed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from streamhouse.format import kernel
from streamhouse.format.batch import BatchHeader, check_produced, read_header, recompress, stamp_max_timestamp
from streamhouse.format.columns import Columns, Section
from streamhouse.format.compression import Codec, InflatesTooFar
from streamhouse.format.records import section_of
from streamhouse.model.errors import BatchTooLarge, CorruptBatch, InvalidRecords, InvalidTimestamps, RefusedRecord
from streamhouse.model.topic import LogConfig

MAX_RAW_BYTES = 16 * 1024 * 1024
"""What a batch may become when it is decompressed, unless it is larger as it came."""
_SMALL_BYTES = 16 * 1024
_SMALL_TOGETHER_BYTES = 64 * 1024
_MOST_NAMED = 1_000
_SHOWN = 3
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_CODECS = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class Admitted(NamedTuple):
    """A batch that may be appended, as it came or rewritten."""

    batch: memoryview
    header: BatchHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRules:
    """`before_max_ms` and `after_max_ms`: how far a record's time may be from now. `codec`: None for the producer's."""

    needs_key: bool
    before_max_ms: int
    after_max_ms: int
    validates: bool
    codec: Codec | None
    stamps_append_time: bool

    @staticmethod
    def of(config: LogConfig) -> RecordRules:
        # Where the broker's clock counts, nobody cares what a producer wrote.
        is_timed = not config.stamps_append_time
        return RecordRules(
            needs_key="compact" in config.cleanup_policy,
            before_max_ms=config.timestamp_before_max_ms if is_timed else _INT64_MAX,
            after_max_ms=config.timestamp_after_max_ms if is_timed else _INT64_MAX,
            validates=config.validates_records,
            codec=_CODECS[config.compression],
            stamps_append_time=config.stamps_append_time,
        )

    @property
    def once_admitted(self) -> RecordRules:
        """What is left to ask of a batch whose records were judged before: how it is stored. Neither the time that has
        passed nor a rule that was made since may refuse its records."""
        return replace(self, needs_key=False, before_max_ms=_INT64_MAX, after_max_ms=_INT64_MAX, validates=False)

    @property
    def are_none(self) -> bool:
        """Whether every batch may be taken as it is, but for those of producers that are known to write wrong ones."""
        return not self._look_at_all and self.after_max_ms == _INT64_MAX and self.codec is None

    @property
    def _look_at_all(self) -> bool:
        return self.needs_key or self.validates or self.before_max_ms != _INT64_MAX

    def must_look(self, header: BatchHeader, now_ms: int) -> bool:
        """Whether the header is not enough to take the batch as it is."""
        return (
            self._look_at_all
            or header.max_timestamp_ms - now_ms > self.after_max_ms
            or (self.codec is not None and header.codec != self.codec)
            or (header.understates_max_timestamp and not self.stamps_append_time)
        )

    def admit(self, batch: memoryview, now_ms: int) -> Admitted:
        """The batch as it may be appended; else why not. It costs what `must_look` says, and is for a thread unless
        `are_cheap`."""
        header = check_produced(batch)
        if not self.must_look(header, now_ms):
            return Admitted(batch, header)
        section = self.check(batch, header, now_ms)
        if header.understates_max_timestamp and not self.stamps_append_time:
            _, newest_ms = kernel.survey_times(section, _INT64_MIN, _INT64_MAX)
            batch = memoryview(stamp_max_timestamp(batch, newest_ms))
        if self.codec is not None and header.codec != self.codec:
            batch = memoryview(recompress(batch, self.codec, limit_bytes=_most_raw_bytes(batch)))
        return Admitted(batch, read_header(batch))

    def check(self, batch: memoryview, header: BatchHeader, now_ms: int) -> Section:
        """The batch's records, all of which are allowed."""
        try:
            section = section_of(batch, header, _most_raw_bytes(batch))
            assert section is not None, "a producer's batch is no control batch"
            oldest_ms, newest_ms = self._times(now_ms)
            refused = kernel.refused_records(section, self.needs_key, oldest_ms, newest_ms, _MOST_NAMED)
        except InflatesTooFar:
            raise BatchTooLarge(
                f"a batch takes more than {_most_raw_bytes(batch)} bytes when it is decompressed, as this topic asks",
                hint="send fewer records in a batch",
            ) from None
        except CorruptBatch as problem:
            raise InvalidRecords(problem.message) from None
        if refused:
            raise _refusal(refused, header.record_count, oldest_ms, newest_ms)
        return section

    def divide(self, columns: Columns, now_ms: int) -> Iterator[tuple[range, InvalidRecords | None]]:
        """All rows, for those who know each record's sender: runs of allowed ones, and those that are not, one by one,
        with what is wrong."""
        oldest_ms, newest_ms = self._times(now_ms)
        validity, start = columns.key_validity, 0
        for row, timestamp_ms in enumerate(memoryview(columns.timestamps).cast("B").cast("q")[: columns.count]):
            is_keyless = self.needs_key and validity is not None and not validity[row >> 3] >> (row & 7) & 1
            if not is_keyless and oldest_ms <= timestamp_ms <= newest_ms:
                continue
            if start < row:
                yield range(start, row), None
            start = row + 1
            why = _why(None if is_keyless else timestamp_ms, oldest_ms, newest_ms)
            kind = InvalidRecords if is_keyless else InvalidTimestamps
            yield range(row, start), kind(f"a record was refused: {why}")
        if start < columns.count:
            yield range(start, columns.count), None

    def _times(self, now_ms: int) -> tuple[int, int]:
        """The oldest and the newest that is allowed."""
        return max(_INT64_MIN, now_ms - self.before_max_ms), min(_INT64_MAX, now_ms + self.after_max_ms)


def are_cheap(batches: Sequence[memoryview]) -> bool:
    """Whether to look at each takes less than to hand it to a thread, and at all of them not long either."""
    return sum(map(len, batches)) <= _SMALL_TOGETHER_BYTES and all(
        len(batch) <= _SMALL_BYTES and read_header(batch).codec == Codec.NONE for batch in batches
    )


def _most_raw_bytes(batch: memoryview) -> int:
    return max(MAX_RAW_BYTES, len(batch))


def _why(timestamp_ms: int | None, oldest_ms: int, newest_ms: int) -> str:
    if timestamp_ms is None:
        return "it has no key, and the topic is compacted"
    return f"its timestamp {timestamp_ms} is not between {oldest_ms} and {newest_ms}"


def _refusal(
    refused: Sequence[tuple[int, int | None]], record_count: int, oldest_ms: int, newest_ms: int
) -> InvalidRecords:
    """As Kafka has it: one record outside of the times decides the kind."""
    named = [RefusedRecord(index, _why(timestamp_ms, oldest_ms, newest_ms)) for index, timestamp_ms in refused]
    number = f"{_MOST_NAMED} or more" if len(named) >= _MOST_NAMED else str(len(named))
    shown = "; ".join(f"record {each.position}: {each.why}" for each in named[:_SHOWN])
    message = f"{number} of a batch's {record_count} records are not allowed, and none was stored: {shown}"
    if any(timestamp_ms is not None for _, timestamp_ms in refused):
        return InvalidTimestamps(
            message, hint="see the topic's message.timestamp.before.max.ms and .after.max.ms", refused=named
        )
    return InvalidRecords(message, hint="give every record a key", refused=named)
