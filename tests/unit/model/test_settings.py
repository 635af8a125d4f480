"""Settings that do not go together are refused by name, before anything starts."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from streamhouse.model.errors import InvalidConfig
from streamhouse.model.settings import MIB, Kind, Settings, setting_kinds
from streamhouse.model.topic import MAX_PARTITIONS, MAX_SEGMENT_BYTES


def test_the_defaults_go_together() -> None:
    Settings()


@pytest.mark.parametrize(
    "settings",
    [
        {"default_partitions": 1},
        {"default_partitions": MAX_PARTITIONS},
        {"segment_bytes": 1024},
        {"segment_bytes": MAX_SEGMENT_BYTES},
        {"wal_file_bytes": MIB},
        {"kafka_port": 0},
        {"http_port": 0},
        {"http_port": 65535},
        {"kafka_port": 65535},
        {"buffer_bytes": MIB, "partition_buffer_bytes": MIB},
        {"lease_ttl": 21, "lease_renewal": 10},
        {"log_level": "debug"},
        {"log_format": "json"},
        {"node_id": 0},
    ],
    ids=str,
)
def test_values_at_the_border_are_taken(settings: dict[str, Any]) -> None:
    Settings(**settings)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("default_partitions", {"default_partitions": 0}),
        ("default_partitions", {"default_partitions": MAX_PARTITIONS + 1}),
        ("segment_bytes", {"segment_bytes": 1023}),
        ("segment_bytes", {"segment_bytes": MAX_SEGMENT_BYTES + 1}),
        ("segment_age", {"segment_age": 0}),
        ("wal_file_bytes", {"wal_file_bytes": MIB - 1}),
        ("partition_buffer_bytes", {"buffer_bytes": MIB, "partition_buffer_bytes": MIB + 1}),
        ("max_message_bytes", {"max_message_bytes": 2 * MIB, "max_request_bytes": MIB}),
        ("lease_renewal", {"lease_renewal": 10, "lease_ttl": 20}),
        ("kafka_port", {"kafka_port": -1}),
        ("kafka_port", {"kafka_port": 65536}),
        ("http_port", {"http_port": -1}),
        ("http_port", {"http_port": 65536}),
        ("log_level", {"log_level": "INFO"}),
        ("group_min_session_timeout", {"group_min_session_timeout": 2_000, "group_max_session_timeout": 1_999}),
        ("group_consumer_migration_policy", {"group_consumer_migration_policy": "both"}),
        ("log_format", {"log_format": "JSON"}),
    ],
    ids=str,
)
def test_a_value_beyond_the_border_is_refused_by_its_name(name: str, settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig, match=name):
        Settings(**settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("node_id", -1),
        ("node_id", 2**31),
        ("max_connections", 0),
        ("idle_timeout", 0),
        ("request_timeout", 0),
        ("retention_interval", 0),
        ("garbage_interval", 0),
        ("lease_renewal", 0),
    ],
)
def test_a_value_with_which_a_node_would_spin_or_serve_nobody_is_refused(name: str, value: int) -> None:
    with pytest.raises(InvalidConfig, match=name):
        Settings(**{name: value})


def test_one_request_of_the_largest_size_fits_into_the_memory_for_requests() -> None:
    """Otherwise it would wait for ever for room that only its own end would make."""
    with pytest.raises(InvalidConfig, match="receive_bytes"):
        Settings(max_request_bytes=100 * MIB, receive_bytes=50 * MIB)


def test_settings_do_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().host = "elsewhere"  # type: ignore[misc]


def test_every_setting_says_what_it_is_for_and_how_it_is_written() -> None:
    assert setting_kinds().keys() == {item.name for item in dataclasses.fields(Settings)}
    assert all(item.metadata["help"] for item in dataclasses.fields(Settings))


def test_what_is_secret_is_marked_as_secret() -> None:
    secret = {name for name, kind in setting_kinds().items() if kind is Kind.SECRET}

    assert secret == {"s3_secret_access_key", "s3_session_token"}


def test_a_secret_does_not_show_when_settings_are_printed() -> None:
    printed = repr(Settings(s3_secret_access_key="hush", s3_session_token="quiet"))

    assert "hush" not in printed
    assert "quiet" not in printed
