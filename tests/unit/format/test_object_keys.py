"""Object keys: readable, sorted by offset, and parsed back exactly."""

from __future__ import annotations

from uuid import UUID

import pytest

from streamhouse.format.object_keys import SegmentKey, parse_segment_key, segment_key, segment_prefix

TOPIC = UUID("6e1f6f3c-8d6a-4c0e-9a51-0d4b1f6f7a10")
UNIQUE = UUID("0198c0de-0000-7000-8000-00000000beef")
KEY = (
    "segments/6e1f6f3c-8d6a-4c0e-9a51-0d4b1f6f7a10/00003/"
    "00000000000000001234-00000007-0198c0de00007000800000000000beef.strm"
)


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
