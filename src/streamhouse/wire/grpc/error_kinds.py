"""Our errors on gRPC: the one place where each has its status code and the name by which the other side knows it.

A status code alone says too little (there are seventeen); the name travels beside it, in trailing metadata."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from streamhouse.model import errors
from streamhouse.model.errors import OutcomeUnknown

ERROR_KIND_KEY = "streamhouse-error"
"""The trailing metadata that holds the name. A status without it came from a gRPC library and not from a handler."""

NEXT_OFFSET_KEY = "streamhouse-next-offset"
"""With `unreadable-records`: the offset behind them."""


class Status(IntEnum):
    """gRPC's status codes, those that we use."""

    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15


@dataclass(frozen=True, slots=True)
class ErrorKind:
    name: str
    """Never changes: nodes of different versions speak to one another."""
    status: Status


_KINDS: dict[type[errors.StreamHouseError], ErrorKind] = {
    errors.StreamHouseError: ErrorKind("internal", Status.INTERNAL),
    errors.InvalidInput: ErrorKind("invalid-input", Status.INVALID_ARGUMENT),
    errors.InvalidName: ErrorKind("invalid-name", Status.INVALID_ARGUMENT),
    errors.InvalidConfig: ErrorKind("invalid-config", Status.INVALID_ARGUMENT),
    errors.InvalidPartitions: ErrorKind("invalid-partitions", Status.INVALID_ARGUMENT),
    errors.PolicyViolation: ErrorKind("policy-violation", Status.FAILED_PRECONDITION),
    errors.MalformedRequest: ErrorKind("malformed-request", Status.INVALID_ARGUMENT),
    errors.CorruptBatch: ErrorKind("corrupt-batch", Status.INVALID_ARGUMENT),
    errors.InvalidRecords: ErrorKind("invalid-records", Status.INVALID_ARGUMENT),
    errors.InvalidTimestamps: ErrorKind("invalid-timestamps", Status.INVALID_ARGUMENT),
    errors.BatchTooLarge: ErrorKind("batch-too-large", Status.INVALID_ARGUMENT),
    errors.Unsupported: ErrorKind("unsupported", Status.UNIMPLEMENTED),
    errors.OffsetOutOfRange: ErrorKind("offset-out-of-range", Status.OUT_OF_RANGE),
    errors.NotFound: ErrorKind("not-found", Status.NOT_FOUND),
    errors.AlreadyExists: ErrorKind("already-exists", Status.ALREADY_EXISTS),
    errors.Fenced: ErrorKind("fenced", Status.ABORTED),
    errors.NotLeader: ErrorKind("not-leader", Status.FAILED_PRECONDITION),
    errors.StaleEpoch: ErrorKind("stale-epoch", Status.ABORTED),
    errors.StaleGeneration: ErrorKind("stale-generation", Status.ABORTED),
    errors.SequenceRefused: ErrorKind("sequence-refused", Status.FAILED_PRECONDITION),
    errors.OutOfOrderSequence: ErrorKind("out-of-order-sequence", Status.FAILED_PRECONDITION),
    errors.StaleProducerEpoch: ErrorKind("stale-producer-epoch", Status.ABORTED),
    errors.Unavailable: ErrorKind("unavailable", Status.UNAVAILABLE),
    OutcomeUnknown: ErrorKind("outcome-unknown", Status.UNKNOWN),
    errors.StorageUnavailable: ErrorKind("storage-unavailable", Status.UNAVAILABLE),
    errors.MetadataUnavailable: ErrorKind("metadata-unavailable", Status.UNAVAILABLE),
    errors.EarlierBatchAwaited: ErrorKind("earlier-batch-awaited", Status.UNAVAILABLE),
    errors.CorruptData: ErrorKind("corrupt-data", Status.DATA_LOSS),
    errors.UnreadableRecords: ErrorKind("unreadable-records", Status.FAILED_PRECONDITION),
}
_BY_NAME = {kind.name: error for error, kind in _KINDS.items()}


def kind_of(problem: errors.StreamHouseError) -> ErrorKind:
    """That of its own class, or of the nearest one above it that has one."""
    return next(_KINDS[ancestor] for ancestor in type(problem).__mro__ if ancestor in _KINDS)


def name_of_kind(kind: type[errors.StreamHouseError]) -> str:
    return next(_KINDS[ancestor].name for ancestor in kind.__mro__ if ancestor in _KINDS)


def kind_names() -> tuple[str, ...]:
    return tuple(_BY_NAME)


def error_named(name: str) -> type[errors.StreamHouseError] | None:
    """None if the name is of a newer version."""
    return _BY_NAME.get(name)
