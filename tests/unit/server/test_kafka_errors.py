"""Every error that we raise has a Kafka code that makes a client do the right thing."""

from __future__ import annotations

import inspect

import pytest

from streamhouse.model import errors
from streamhouse.server.kafka import refusals
from streamhouse.server.kafka.errors import code_of
from streamhouse.wire.kafka.codes import ErrorCode

# What a client tries again with the same request, perhaps after asking for metadata.
RETRIABLE = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CORRUPT_MESSAGE,
}


def _every_error() -> list[type[errors.StreamHouseError]]:
    return [
        found
        for module in (errors, refusals)
        for _, found in inspect.getmembers(module, inspect.isclass)
        if issubclass(found, errors.StreamHouseError)
    ]


@pytest.mark.parametrize("kind", sorted(set(_every_error()), key=lambda kind: kind.__name__))
def test_every_kind_of_error_but_the_root_has_a_code_of_its_own_meaning(kind: type[errors.StreamHouseError]) -> None:
    code = code_of(kind("it happened"))

    assert code != ErrorCode.NONE
    assert (code == ErrorCode.UNKNOWN_SERVER_ERROR) == (kind is errors.StreamHouseError)


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (errors.InvalidName, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (errors.InvalidConfig, ErrorCode.INVALID_CONFIG),
        (errors.CorruptBatch, ErrorCode.CORRUPT_MESSAGE),
        (errors.BatchTooLarge, ErrorCode.MESSAGE_TOO_LARGE),
        (errors.OffsetOutOfRange, ErrorCode.OFFSET_OUT_OF_RANGE),
        (errors.NotFound, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (errors.AlreadyExists, ErrorCode.TOPIC_ALREADY_EXISTS),
        (errors.NotLeader, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (errors.StaleEpoch, ErrorCode.FENCED_LEADER_EPOCH),
        (errors.OutOfOrderSequence, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (errors.StaleProducerEpoch, ErrorCode.INVALID_PRODUCER_EPOCH),
        (errors.StorageUnavailable, ErrorCode.KAFKA_STORAGE_ERROR),
        (refusals.InvalidAcks, ErrorCode.INVALID_REQUIRED_ACKS),
        (refusals.UnsupportedCompression, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (refusals.UnknownTopicId, ErrorCode.UNKNOWN_TOPIC_ID),
        (refusals.UnknownLeaderEpoch, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_known_error_has_kafkas_own_code(problem: type[errors.StreamHouseError], code: ErrorCode) -> None:
    assert code_of(problem("it happened")) == code


@pytest.mark.parametrize("kind", [errors.Fenced, errors.NotLeader, errors.StaleEpoch, errors.Unavailable])
def test_what_may_succeed_later_or_elsewhere_is_tried_again_by_clients(kind: type[errors.StreamHouseError]) -> None:
    assert code_of(kind("not now")) in RETRIABLE


@pytest.mark.parametrize("kind", [errors.InvalidName, errors.InvalidConfig, errors.BatchTooLarge, errors.Unsupported])
def test_what_is_the_callers_fault_is_not_tried_again(kind: type[errors.StreamHouseError]) -> None:
    assert code_of(kind("wrong")) not in RETRIABLE


def test_an_error_that_is_not_ours_is_a_server_error() -> None:
    assert code_of(RuntimeError("bug")) == ErrorCode.UNKNOWN_SERVER_ERROR
