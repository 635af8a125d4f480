"""Topic descriptors: what is written is read back, what is damaged is refused, and the same content has the same id."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.format.topic_descriptor import TopicDescriptor, content_id, decode_descriptor, encode_descriptor
from streamhouse.model.errors import CorruptData, Unsupported
from streamhouse.model.topic import Topic

TOPIC = Topic(
    name="orders",
    topic_id=UUID("c6f1f1f0-0000-4000-8000-000000000001"),
    partition_count=3,
    config={"cleanup.policy": "compact", "retention.ms": "5"},
    created_at_ms=1_700_000_000_000,
)

topics = st.builds(
    Topic,
    name=st.text(min_size=1),
    topic_id=st.uuids(),
    partition_count=st.integers(1, 10_000),
    config=st.dictionaries(st.text(), st.text()),
    created_at_ms=st.integers(0, 2**62),
)


def test_the_bytes_are_json_that_people_can_read() -> None:
    assert encode_descriptor(TopicDescriptor(TOPIC, 7)).decode() == (
        "{\n"
        ' "format": 1,\n'
        ' "version": 7,\n'
        ' "topic_id": "c6f1f1f0-0000-4000-8000-000000000001",\n'
        ' "name": "orders",\n'
        ' "partition_count": 3,\n'
        ' "config": {\n'
        '  "cleanup.policy": "compact",\n'
        '  "retention.ms": "5"\n'
        " },\n"
        ' "created_at_ms": 1700000000000\n'
        "}"
    )


@given(topics, st.integers(1, 2**31))
def test_what_is_written_is_read_back(topic: Topic, version: int) -> None:
    assert decode_descriptor(encode_descriptor(TopicDescriptor(topic, version))) == (topic, version)


def test_the_content_has_one_id_whatever_the_order_of_its_configs() -> None:
    turned = replace(TOPIC, config=dict(reversed(TOPIC.config.items())))

    assert content_id(turned) == content_id(TOPIC)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "payments"},
        {"topic_id": UUID(int=1)},
        {"partition_count": 4},
        {"config": {}},
        {"created_at_ms": 1},
    ],
)
def test_other_content_has_another_id(change: dict[str, object]) -> None:
    assert content_id(replace(TOPIC, **change)) != content_id(TOPIC)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        json.dumps({"format": 1, "name": "x"}).encode(),
        encode_descriptor(TopicDescriptor(TOPIC, 1)).replace(b'"orders"', b"5"),
        encode_descriptor(TopicDescriptor(TOPIC, 1)).replace(b"c6f1", b"x6f1"),
    ],
)
def test_what_is_not_a_descriptor_is_damage(data: bytes) -> None:
    with pytest.raises(CorruptData, match="topic descriptor"):
        decode_descriptor(data)


def test_a_newer_format_is_not_taken_for_this_one() -> None:
    with pytest.raises(Unsupported, match="format 2"):
        decode_descriptor(encode_descriptor(TopicDescriptor(TOPIC, 1)).replace(b'"format": 1', b'"format": 2'))


def test_fields_that_a_later_version_adds_are_passed_over() -> None:
    data = encode_descriptor(TopicDescriptor(TOPIC, 1)).replace(b'"format": 1,', b'"format": 1, "colour": "red",')

    assert decode_descriptor(data).topic == TOPIC
