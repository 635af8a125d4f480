"""Kafka's error codes as errors of our tree, so that a caller acts on a kind and reads what to do."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streamhouse.model.errors import (
    AlreadyExists,
    BatchTooLarge,
    CorruptData,
    InvalidConfig,
    InvalidInput,
    InvalidName,
    InvalidPartitions,
    InvalidRecords,
    InvalidTimestamps,
    NotFound,
    NotLeader,
    OffsetOutOfRange,
    OutOfOrderSequence,
    PolicyViolation,
    StaleGeneration,
    StaleProducerEpoch,
    StorageUnavailable,
    StreamHouseError,
    Unavailable,
    Unsupported,
)
from streamhouse.wire.kafka.codes import ErrorCode

_KINDS: Mapping[int, tuple[type[StreamHouseError], str | None]] = MappingProxyType(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (NotFound, "`streamhouse topic list` shows what there is"),
        ErrorCode.UNKNOWN_TOPIC_ID: (NotFound, "the topic was deleted or made again; ask for its metadata again"),
        ErrorCode.TOPIC_ALREADY_EXISTS: (AlreadyExists, None),
        ErrorCode.INVALID_TOPIC_EXCEPTION: (InvalidName, "use 1 to 249 letters, digits, '.', '_' or '-'"),
        ErrorCode.INVALID_PARTITIONS: (InvalidPartitions, None),
        ErrorCode.POLICY_VIOLATION: (PolicyViolation, None),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT: (InvalidInput, None),
        ErrorCode.INVALID_REPLICATION_FACTOR: (InvalidConfig, None),
        ErrorCode.INVALID_CONFIG: (InvalidConfig, None),
        ErrorCode.INVALID_REQUEST: (InvalidInput, None),
        ErrorCode.INVALID_RECORD: (InvalidRecords, "the topic may be compacted, and take only records with keys"),
        ErrorCode.INVALID_TIMESTAMP: (InvalidTimestamps, "see message.timestamp.before.max.ms and .after.max.ms"),
        ErrorCode.INVALID_REQUIRED_ACKS: (InvalidInput, "use acks 0, 1 or all"),
        ErrorCode.MESSAGE_TOO_LARGE: (BatchTooLarge, "raise the topic's max.message.bytes or send less at once"),
        ErrorCode.RECORD_LIST_TOO_LARGE: (BatchTooLarge, "send less at once"),
        ErrorCode.CORRUPT_MESSAGE: (CorruptData, None),
        ErrorCode.OFFSET_OUT_OF_RANGE: (OffsetOutOfRange, "`streamhouse topic describe` shows the offsets held"),
        ErrorCode.UNSUPPORTED_VERSION: (Unsupported, None),
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: (Unsupported, None),
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: (Unsupported, None),
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: (OutOfOrderSequence, None),
        ErrorCode.UNKNOWN_PRODUCER_ID: (OutOfOrderSequence, None),
        ErrorCode.INVALID_PRODUCER_EPOCH: (StaleProducerEpoch, None),
        ErrorCode.PRODUCER_FENCED: (StaleProducerEpoch, None),
        ErrorCode.NOT_LEADER_OR_FOLLOWER: (NotLeader, None),
        ErrorCode.FENCED_LEADER_EPOCH: (NotLeader, None),
        ErrorCode.UNKNOWN_LEADER_EPOCH: (NotLeader, None),
        ErrorCode.LEADER_NOT_AVAILABLE: (NotLeader, None),
        ErrorCode.NOT_CONTROLLER: (NotLeader, None),
        ErrorCode.KAFKA_STORAGE_ERROR: (StorageUnavailable, "look at the broker's disk and object store"),
        ErrorCode.REQUEST_TIMED_OUT: (Unavailable, "try again"),
        ErrorCode.NOT_ENOUGH_REPLICAS: (Unavailable, "try again"),
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (Unavailable, "try again"),
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (Unavailable, "try again"),
        ErrorCode.COORDINATOR_NOT_AVAILABLE: (Unavailable, "try again"),
        ErrorCode.NOT_COORDINATOR: (NotLeader, None),
        ErrorCode.UNKNOWN_MEMBER_ID: (NotFound, "join the group again"),
        ErrorCode.ILLEGAL_GENERATION: (StaleGeneration, "join the group again"),
        ErrorCode.STALE_MEMBER_EPOCH: (StaleGeneration, "heartbeat, then try again"),
        ErrorCode.FENCED_MEMBER_EPOCH: (StaleGeneration, "join the group again"),
        ErrorCode.GROUP_MAX_SIZE_REACHED: (Unavailable, "wait until a member leaves"),
        ErrorCode.INVALID_GROUP_ID: (InvalidName, None),
        ErrorCode.UNSUPPORTED_ASSIGNOR: (InvalidInput, "use uniform or range"),
        ErrorCode.OFFSET_METADATA_TOO_LARGE: (InvalidInput, "say less about the offset"),
        ErrorCode.THROTTLING_QUOTA_EXCEEDED: (Unavailable, "try again later"),
    }
)

_CODES = {int(code): code for code in ErrorCode}

# The same request may succeed later, perhaps at another broker.
RETRIABLE = (Unavailable, NotLeader)


def error_for(code: int, what: str, broker_message: str | None = None) -> StreamHouseError:
    """The error that a code stands for; `what` says what failed, the broker's own words say why."""
    kind, hint = _KINDS.get(code, (StreamHouseError, None))
    if broker_message:
        return kind(f"{what}: {broker_message}")
    return kind(f"{what}: {_meaning(code)}", hint=hint)


def raise_for(code: int, what: str, broker_message: str | None = None) -> None:
    """Does nothing for code 0."""
    if code != ErrorCode.NONE:
        raise error_for(code, what, broker_message)


def _meaning(code: int) -> str:
    known = _CODES.get(code)
    return f"error code {code}" if known is None else known.meaning
