"""What consumers of the classic protocol say to one another, against kafka-python's own reading of it."""

from __future__ import annotations

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
