"""Settings of several agents on one machine, and how they are handed to their processes."""

from __future__ import annotations

import pytest

from streamhouse.cli.agent_processes import as_environment, settings_of_agents
from streamhouse.cli.settings import load_settings
from streamhouse.model.errors import InvalidConfig
from streamhouse.model.settings import Settings

SHARED = Settings(metadata="postgresql://user@host/db", data_dir="/data")


def test_agents_differ_in_name_ports_and_directory() -> None:
    first, second = settings_of_agents(SHARED, 2)

    assert (first.agent_id, second.agent_id) == ("agent-1", "agent-2")
    assert (first.kafka_port, second.kafka_port) == (9092, 9093)
    assert (first.http_port, second.http_port) == (8080, 8081)
    assert (first.grpc_port, second.grpc_port) == (50051, 50052)
    assert (first.flume_port, second.flume_port) == (9094, 9095)
    assert (first.data_dir, second.data_dir) == ("/data/agent-1", "/data/agent-2")
    assert first.durability == second.durability == "wal"


def test_the_flume_ports_of_many_agents_are_above_their_kafka_ports() -> None:
    agents = settings_of_agents(SHARED, 4)

    assert [one.kafka_port for one in agents] == [9092, 9093, 9094, 9095]
    assert [one.flume_port for one in agents] == [9096, 9097, 9098, 9099]


def test_free_ports_stay_free() -> None:
    settings = Settings(
        metadata="postgresql://user@host/db",
        kafka_port=0,
        http_port=0,
        grpc_port=0,
        flume_port=0,
        durability="object",
    )

    assert {
        (one.kafka_port, one.http_port, one.grpc_port, one.flume_port, one.durability)
        for one in settings_of_agents(settings, 3)
    } == {(0, 0, 0, 0, "object")}


def test_several_agents_need_a_database_that_they_can_share() -> None:
    with pytest.raises(InvalidConfig, match="share"):
        settings_of_agents(Settings(), 2)


def test_what_a_process_is_given_means_the_same_settings() -> None:
    (settings,) = settings_of_agents(
        Settings(
            metadata="postgresql://user@host/db",
            lease_ttl=32_345,
            s3_secret_access_key="a secret",
            s3_path_style=False,
            segment_bytes=8 * 2**20,
        ),
        1,
    )

    environment = as_environment(settings, {"PATH": "/bin", "STREAMHOUSE_ZONE": "of the parent"})

    assert load_settings(flags={}, environ=environment).settings == settings
    assert environment["PATH"] == "/bin"


def test_what_was_given_is_given_on_though_it_is_the_default() -> None:
    (settings,) = settings_of_agents(SHARED, 1)

    environment = as_environment(settings, {}, {"retention_ms"})

    assert "retention_ms" in load_settings(flags={}, environ=environment).given
    assert "retention_ms" not in load_settings(flags={}, environ=as_environment(settings, {})).given
