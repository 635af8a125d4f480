"""Object keys: readable, sorted by offset or by time, and parsed back exactly."""

from __future__ import annotations

from uuid import UUID

import pytest

from streamhouse.format.object_keys import (
    WAL_PREFIX,
    SegmentKey,
    TopicDescriptorKey,
    WalObjectKey,
    parse_segment_key,
    parse_topic_descriptor_key,
    parse_wal_object_key,
    segment_key,
    segment_prefix,
    topic_descriptor_key,
    topic_descriptor_prefix,
    wal_object_key,
)
from streamhouse.objects.checks import check_key

TOPIC = UUID("6e1f6f3c-8d6a-4c0e-9a51-0d4b1f6f7a10")
UNIQUE = UUID("0198c0de-0000-7000-8000-00000000beef")
KEY = (
    "segments/6e1f6f3c-8d6a-4c0e-9a51-0d4b1f6f7a10/00003/"
    "00000000000000001234-00000007-0198c0de00007000800000000000beef.strm"
)

WAL_KEY = "wal/agent-1/001750000000000-0198c0de00007000800000000000beef.shwo"


def test_a_segments_key_names_its_topic_partition_offset_and_epoch() -> None:
    assert segment_key(TOPIC, 3, 1234, 7, UNIQUE) == KEY


def test_a_key_is_parsed_back() -> None:
    assert parse_segment_key(KEY) == SegmentKey(TOPIC, 3, 1234, 7, UNIQUE)


def test_keys_of_a_partition_sort_by_offset_and_then_by_epoch() -> None:
    places = [(9, 1), (10, 1), (10, 2), (99, 1), (2**40, 1), (2**63 - 1, 1)]
    keys = [segment_key(TOPIC, 3, offset, epoch, UNIQUE) for offset, epoch in places]
    assert keys == sorted(keys)


def test_a_key_starts_with_its_partitions_prefix() -> None:
    assert KEY.startswith(segment_prefix(TOPIC, 3))
    assert KEY.startswith(segment_prefix(TOPIC))
    assert not KEY.startswith(segment_prefix(TOPIC, 30))


@pytest.mark.parametrize(
    "key",
    [
        "",
        "segments/",
        KEY + "x",
        "x" + KEY,
        KEY.replace("6e1f", "6E1F"),
        KEY.replace("/00003/", "/000003/"),
        KEY.replace("/00003/", "/3/"),
        KEY.replace("-00000007-", "-000000007-"),
        KEY.replace("1234", "١٢٣٤"),
        KEY + "\n",
        "segments/../../etc/passwd",
    ],
)
def test_what_is_not_exactly_a_segments_key_is_not_parsed(key: str) -> None:
    assert parse_segment_key(key) is None


def test_a_wal_objects_key_names_its_agent_and_its_time() -> None:
    assert wal_object_key("agent-1", 1_750_000_000_000, UNIQUE) == WAL_KEY
    assert WAL_KEY.startswith(WAL_PREFIX)
    assert parse_wal_object_key(WAL_KEY) == WalObjectKey("agent-1", 1_750_000_000_000, UNIQUE)


def test_keys_of_an_agents_wal_objects_sort_by_time() -> None:
    keys = [wal_object_key("agent-1", time_ms, UNIQUE) for time_ms in (0, 9, 10, 999_999_999_999, 1_750_000_000_000)]
    assert keys == sorted(keys)


@pytest.mark.parametrize("agent_id", ["a", "A.b_c-9", ".hidden", "x" * 128])
def test_any_agent_id_makes_a_key_that_object_stores_take(agent_id: str) -> None:
    key = wal_object_key(agent_id, 5, UNIQUE)
    assert check_key(key) == key
    assert parse_wal_object_key(key) == WalObjectKey(agent_id, 5, UNIQUE)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "wal/",
        KEY,
        WAL_KEY + "x",
        WAL_KEY + "\n",
        "x" + WAL_KEY,
        WAL_KEY.replace("beef", "BEEF"),
        WAL_KEY.replace("/0017", "/17"),
        WAL_KEY.replace("/0017", "/00017"),
        WAL_KEY.replace("1750", "\u0661\u0667\u0665\u0660"),
        WAL_KEY.replace("agent-1", ".."),
        WAL_KEY.replace("agent-1", "a/b"),
        WAL_KEY.replace("agent-1", ""),
        WAL_KEY.replace("agent-1", "x" * 129),
    ],
)
def test_what_is_not_exactly_a_wal_objects_key_is_not_parsed(key: str) -> None:
    assert parse_wal_object_key(key) is None


def test_a_topic_descriptors_key_names_its_topic_and_version_and_is_parsed_back() -> None:
    key = topic_descriptor_key(TOPIC, 12, UNIQUE)
    assert key == f"topics/{TOPIC}/00000012-{UNIQUE.hex}.json"
    assert key.startswith(topic_descriptor_prefix(TOPIC))
    assert parse_topic_descriptor_key(key) == TopicDescriptorKey(TOPIC, 12, UNIQUE)
    check_key(key)


def test_descriptors_of_a_topic_sort_by_version() -> None:
    keys = [topic_descriptor_key(TOPIC, version, UNIQUE) for version in (1, 2, 9, 10, 11, 100, 99_999_999)]
    assert keys == sorted(keys)


@pytest.mark.parametrize(
    "key",
    [
        "topics/x/00000001-0198c0de00007000800000000000beef.json",
        f"topics/{TOPIC}/1-{UNIQUE.hex}.json",
        f"topics/{TOPIC}/000000001-{UNIQUE.hex}.json",
        f"topics/{TOPIC}/00000001-{UNIQUE}.json",
        f"topics/{TOPIC}/00000001-{UNIQUE.hex}.yaml",
        KEY,
    ],
)
def test_what_is_not_a_topic_descriptors_key_is_not_taken_for_one(key: str) -> None:
    assert parse_topic_descriptor_key(key) is None
