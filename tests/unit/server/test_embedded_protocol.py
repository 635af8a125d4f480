"""What consumers of the classic protocol say to one another, against kafka-python's own reading of it."""

from __future__ import annotations

from typing import NoReturn

import pytest
from kafka.protocol.old.consumer_protocol import ConsumerProtocolMemberAssignment_v0, ConsumerProtocolMemberMetadata_v0

from streamhouse.core.groups.embedded import EmbeddedSubscription
from streamhouse.server.kafka.embedded_protocol import KafkaEmbeddedProtocol
from streamhouse.wire.kafka.messages import consumer_protocol_subscription as subscriptions

PROTOCOL = KafkaEmbeddedProtocol()


def test_a_subscription_of_the_first_version_is_read() -> None:
    metadata = ConsumerProtocolMemberMetadata_v0(0, ["orders", "clicks"], b"mine").encode()
    assert PROTOCOL.read_subscription(metadata) == EmbeddedSubscription(topics=("orders", "clicks"))


@pytest.mark.parametrize("version", [1, 2, 3, 4, 32_767])
def test_a_newer_one_says_what_is_owned_and_what_comes_behind_is_passed_over(version: int) -> None:
    message = subscriptions.ConsumerProtocolSubscription(
        topics=["orders"], owned_partitions=[subscriptions.TopicPartition(topic="orders", partitions=[2, 0])]
    )
    encoded = b"".join(subscriptions.encode(message, min(version, 3)))
    metadata = version.to_bytes(2, "big") + encoded + (b"more" if version > 3 else b"")
    assert PROTOCOL.read_subscription(metadata) == EmbeddedSubscription(
        topics=("orders",), owned=(("orders", 2), ("orders", 0))
    )


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\x09", b"\0\x01" + b"\xff" * 40])
def test_what_is_none_is_none(metadata: bytes) -> None:
    assert PROTOCOL.read_subscription(metadata) is None
    assert PROTOCOL.read_assignment(metadata) == ()


@pytest.mark.parametrize("version", [0, 1, 3, 9])
def test_an_assignment_is_written_in_the_version_of_its_member(version: int) -> None:
    written = PROTOCOL.write_assignment([("clicks", 1), ("orders", 0), ("orders", 2)], version.to_bytes(2, "big"))
    theirs = ConsumerProtocolMemberAssignment_v0.decode(written)
    assert theirs.version == min(version, 3)
    assert theirs.partitions() == [("clicks", 1), ("orders", 0), ("orders", 2)]
    assert PROTOCOL.read_assignment(written) == (("clicks", 1), ("orders", 0), ("orders", 2))


def subscription(topics: int, owned: int = 0) -> bytes:
    partitions = [subscriptions.TopicPartition(topic="t", partitions=list(range(owned)))] if owned else []
    message = subscriptions.ConsumerProtocolSubscription(topics=["t"] * topics, owned_partitions=partitions)
    return b"\0\x01" + b"".join(subscriptions.encode(message, 1))


def test_what_names_as_much_as_a_request_may_is_read() -> None:
    assert PROTOCOL.read_subscription(subscription(50_000)) is not None
    assert PROTOCOL.read_subscription(subscription(20_000, 29_999)) is not None
    assert (
        len(PROTOCOL.read_assignment(PROTOCOL.write_assignment([("t", n) for n in range(49_999)], b"\0\0"))) == 49_999
    )


@pytest.mark.parametrize(("topics", "owned"), [(50_001, 0), (1_500_000, 0), (0, 50_000), (20_000, 30_000)])
def test_what_names_more_is_not_read(topics: int, owned: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two million topics fit in a request, and would take a second."""
    metadata = subscription(topics, owned)

    def decode(*_: object) -> NoReturn:
        raise AssertionError("nothing is built")

    monkeypatch.setattr(subscriptions, "decode", decode)
    assert PROTOCOL.read_subscription(metadata) is None
    assert PROTOCOL.read_assignment(PROTOCOL.write_assignment([("t", n) for n in range(50_000)], metadata)) == ()
