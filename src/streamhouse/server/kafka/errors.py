"""Our errors as Kafka's codes: the one place where they are translated."""

from __future__ import annotations

from streamhouse.model import errors
from streamhouse.server.kafka.refusals import (
    InvalidAcks,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnsupportedCompression,
    UnsupportedVersion,
)
from streamhouse.wire.kafka.codes import ErrorCode

# Most specific first: the first class that an error belongs to decides.
_CODES: tuple[tuple[type[errors.StreamHouseError], ErrorCode], ...] = (
    (InvalidAcks, ErrorCode.INVALID_REQUIRED_ACKS),
    (InvalidReplicaAssignment, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (InvalidReplicationFactor, ErrorCode.INVALID_REPLICATION_FACTOR),
    (UnsupportedVersion, ErrorCode.UNSUPPORTED_VERSION),
    (UnsupportedCompression, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    (UnknownTopicId, ErrorCode.UNKNOWN_TOPIC_ID),
    (UnknownLeaderEpoch, ErrorCode.UNKNOWN_LEADER_EPOCH),
    (errors.InvalidName, ErrorCode.INVALID_TOPIC_EXCEPTION),
    (errors.InvalidPartitions, ErrorCode.INVALID_PARTITIONS),
    (errors.PolicyViolation, ErrorCode.POLICY_VIOLATION),
    (errors.InvalidConfig, ErrorCode.INVALID_CONFIG),
    (errors.MalformedRequest, ErrorCode.INVALID_REQUEST),
    (errors.CorruptBatch, ErrorCode.CORRUPT_MESSAGE),
    (errors.InvalidTimestamps, ErrorCode.INVALID_TIMESTAMP),
    (errors.InvalidRecords, ErrorCode.INVALID_RECORD),
    (errors.BatchTooLarge, ErrorCode.MESSAGE_TOO_LARGE),
    (errors.Unsupported, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    (errors.OffsetOutOfRange, ErrorCode.OFFSET_OUT_OF_RANGE),
    (errors.InvalidInput, ErrorCode.INVALID_REQUEST),
    (errors.NotFound, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (errors.AlreadyExists, ErrorCode.TOPIC_ALREADY_EXISTS),
    (errors.StaleGeneration, ErrorCode.ILLEGAL_GENERATION),
    (errors.StaleEpoch, ErrorCode.FENCED_LEADER_EPOCH),
    (errors.Fenced, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (errors.OutOfOrderSequence, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    (errors.StaleProducerEpoch, ErrorCode.INVALID_PRODUCER_EPOCH),
    (errors.SequenceRefused, ErrorCode.INVALID_PRODUCER_EPOCH),
    # Every client sends again after this one, in order; others would end some of them.
    (errors.EarlierBatchAwaited, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (errors.MetadataUnavailable, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    (errors.OutcomeUnknown, ErrorCode.REQUEST_TIMED_OUT),
    (errors.Unavailable, ErrorCode.KAFKA_STORAGE_ERROR),
    (errors.CorruptData, ErrorCode.CORRUPT_MESSAGE),
    (errors.StreamHouseError, ErrorCode.UNKNOWN_SERVER_ERROR),
)


_BRIEF_CHARACTERS = 100


def code_of(problem: Exception) -> ErrorCode:
    for kind, code in _CODES:
        if isinstance(problem, kind):
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR


def brief(problem: Exception) -> str:
    """For answers that say it of each of a great many partitions, which a few bytes name."""
    text = str(problem)
    return text if len(text) <= _BRIEF_CHARACTERS else f"{text[:_BRIEF_CHARACTERS]}…"
