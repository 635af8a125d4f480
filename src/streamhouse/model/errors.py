"""The error tree: a kind exists only where a caller would act differently.

StreamHouseError
├── InvalidInput              the caller sent something wrong: fix it, do not retry
│   ├── InvalidName           a topic, group or agent name that is not allowed
│   ├── InvalidConfig         a setting or topic config that is unknown or out of range
│   ├── InvalidPartitions     a number of partitions that a topic cannot have
│   ├── PolicyViolation       against what the topic's own config lays down
│   ├── MalformedRequest      bytes that are not a message: the connection cannot go on
│   ├── CorruptBatch          a record batch whose CRC, sizes or counts disagree
│   ├── InvalidRecords        a record batch with records that its topic does not take, all of it refused
│   │   └── InvalidTimestamps such records are too old, or too far in the future
│   ├── BatchTooLarge         a record batch above the topic's limit
│   ├── Unsupported           valid, but not something this system does
│   └── OffsetOutOfRange      an offset outside what the log holds
├── NotFound                  a topic or partition that does not exist
├── AlreadyExists             a topic or object that does
├── Fenced                    somebody newer took over: stop, do not retry as you are
│   ├── NotLeader             this agent does not lead the partition
│   ├── StaleEpoch            the epoch presented is older than the current one
│   └── StaleGeneration       the generation presented is older than the group's
├── SequenceRefused           an idempotent producer's sequence was not the expected one
│   ├── OutOfOrderSequence    a gap
│   └── StaleProducerEpoch    a newer incarnation of the producer exists
├── Unavailable               not now: the same call may succeed later
│   ├── StorageUnavailable    the WAL's disk or the object store refuses writes
│   ├── MetadataUnavailable   the metadata store cannot be reached
│   ├── EarlierBatchAwaited   a batch of an idempotent producer seems to be missing, and may come
│   └── OutcomeUnknown        no answer came: what was asked may have been done, or may still be
└── CorruptData               stored bytes are damaged: never served, never skipped
    └── UnreadableRecords     records that cannot be given as rows: the reader may choose to go on behind them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class StreamHouseError(Exception):
    """Root of everything this package raises on purpose. `hint` says what to do about it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InvalidInput(StreamHouseError):
    pass


class InvalidName(InvalidInput):
    pass


class InvalidConfig(InvalidInput):
    pass


class InvalidPartitions(InvalidInput):
    pass


class PolicyViolation(InvalidInput):
    pass


class MalformedRequest(InvalidInput):
    pass


class CorruptBatch(InvalidInput):
    pass


class RefusedRecord(NamedTuple):
    """By its place in the batch, from 0."""

    position: int
    why: str


class InvalidRecords(InvalidInput):
    """`refused` are the first of them."""

    def __init__(self, message: str, *, hint: str | None = None, refused: Sequence[RefusedRecord] = ()) -> None:
        super().__init__(message, hint=hint)
        self.refused = refused


class InvalidTimestamps(InvalidRecords):
    pass


class BatchTooLarge(InvalidInput):
    pass


class Unsupported(InvalidInput):
    pass


class OffsetOutOfRange(InvalidInput):
    pass


class NotFound(StreamHouseError):
    pass


class AlreadyExists(StreamHouseError):
    pass


class Fenced(StreamHouseError):
    pass


class NotLeader(Fenced):
    pass


class StaleEpoch(Fenced):
    pass


class StaleGeneration(Fenced):
    pass


class SequenceRefused(StreamHouseError):
    pass


class OutOfOrderSequence(SequenceRefused):
    pass


class StaleProducerEpoch(SequenceRefused):
    pass


class Unavailable(StreamHouseError):
    """`is_unanswered`: nothing came back in time, and that may be for want of time alone."""

    def __init__(self, message: str, *, hint: str | None = None, is_unanswered: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.is_unanswered = is_unanswered


class StorageUnavailable(Unavailable):
    pass


class MetadataUnavailable(Unavailable):
    pass


class EarlierBatchAwaited(Unavailable):
    pass


class OutcomeUnknown(Unavailable):
    """Only what is recognised when it comes twice, as an idempotent producer's batch is, may simply be sent again."""


class CorruptData(StreamHouseError):
    pass


class UnreadableRecords(CorruptData):
    """`next_offset` is behind them."""

    def __init__(self, message: str, *, hint: str | None = None, next_offset: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.next_offset = next_offset

    def at(self, topic: str, partition: int) -> UnreadableRecords:
        """The same, for who reads several partitions."""
        return UnreadableRecords(f"{topic}/{partition}: {self.message}", hint=self.hint, next_offset=self.next_offset)
