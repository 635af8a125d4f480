"""Our errors on HTTP: the one place where each has its status code. Their names are those on gRPC, and go in the body,
for a status alone says too little."""

from __future__ import annotations

from streamhouse.model import errors
from streamhouse.wire.grpc.error_kinds import error_named, kind_of
from streamhouse.wire.http.planning import ErrorAnswer

_STATUSES: dict[type[errors.StreamHouseError], int] = {
    errors.StreamHouseError: 500,
    errors.InvalidInput: 400,
    errors.InvalidName: 400,
    errors.InvalidConfig: 400,
    errors.InvalidPartitions: 400,
    errors.PolicyViolation: 409,
    errors.MalformedRequest: 400,
    errors.CorruptBatch: 400,
    errors.InvalidRecords: 400,
    errors.InvalidTimestamps: 400,
    errors.BatchTooLarge: 413,
    errors.Unsupported: 501,
    errors.OffsetOutOfRange: 416,
    errors.NotFound: 404,
    errors.AlreadyExists: 409,
    errors.Fenced: 409,
    # To who was not asked to find the leader, that it was not found is no fault of the request.
    errors.NotLeader: 503,
    errors.StaleEpoch: 409,
    errors.StaleGeneration: 409,
    errors.SequenceRefused: 409,
    errors.OutOfOrderSequence: 409,
    errors.StaleProducerEpoch: 409,
    errors.Unavailable: 503,
    errors.StorageUnavailable: 503,
    errors.MetadataUnavailable: 503,
    errors.EarlierBatchAwaited: 503,
    errors.OutcomeUnknown: 504,
    errors.CorruptData: 500,
    errors.UnreadableRecords: 422,
}

RETRIABLE = frozenset({502, 503, 504})
"""Not now: what is safe to repeat may be asked again. 502 is of a proxy between."""


def status_of(problem: errors.StreamHouseError) -> int:
    return status_of_kind(type(problem))


def status_of_kind(kind: type[errors.StreamHouseError]) -> int:
    """Its own, or that of the nearest above it that has one."""
    return next(_STATUSES[ancestor] for ancestor in kind.__mro__ if ancestor in _STATUSES)


def error_answer(problem: errors.StreamHouseError) -> ErrorAnswer:
    return ErrorAnswer(error=kind_of(problem).name, message=problem.message, hint=problem.hint)


def error_of(answer: ErrorAnswer) -> errors.StreamHouseError:
    """The error again, on the other side; its root if the name is of a newer version."""
    return (error_named(answer.error) or errors.StreamHouseError)(answer.message, hint=answer.hint)
