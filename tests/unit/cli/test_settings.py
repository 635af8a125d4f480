"""Where settings come from, which one wins, and what is refused."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from streamhouse.cli.settings import (
    FROM_FILES,
    MASK,
    SettingsFile,
    load_settings,
    read_settings_file,
    show_setting,
    variable_name,
)
from streamhouse.model.errors import InvalidConfig, NotFound
from streamhouse.model.settings import Kind, Settings, setting_kinds


def toml(**values: object) -> SettingsFile:
    return SettingsFile(name="node.toml", values=values)


def test_without_anything_given_every_setting_is_its_default() -> None:
    effective = load_settings(flags={}, environ={})

    assert effective.settings == Settings()
    assert set(effective.sources) == {item.name for item in fields(Settings)}
    assert set(effective.sources.values()) == {"default"}


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file() -> None:
    environ = {"STREAMHOUSE_SEGMENT_BYTES": "2MiB", "STREAMHOUSE_SEGMENT_AGE": "20s"}
    file = toml(segment_bytes="3MiB", segment_age="30s", wal_file_bytes="4MiB")

    effective = load_settings(flags={"segment_bytes": "1MiB"}, environ=environ, file=file)

    assert effective.settings.segment_bytes == 2**20
    assert effective.settings.segment_age == 20_000
    assert effective.settings.wal_file_bytes == 4 * 2**20
    assert effective.sources["segment_bytes"] == "--segment-bytes"
    assert effective.sources["segment_age"] == "STREAMHOUSE_SEGMENT_AGE"
    assert effective.sources["wal_file_bytes"] == "node.toml: wal_file_bytes"
    assert effective.sources["host"] == "default"


_SPELLINGS = {
    Kind.TEXT: "text",
    Kind.SECRET: "secret",
    Kind.INTEGER: "7",
    Kind.FLAG: "false",
    Kind.DURATION: "4s",
    Kind.SIZE: "8MiB",
}
_SPECIAL = {
    "log_level": "debug",
    "log_format": "json",
    "traces": "true",
    "lease_ttl": "45s",
    "liveness": "5m",
    "durability": "object",
    "buffer_bytes": "1GiB",
    "max_request_bytes": "200MiB",
    "receive_bytes": "1GiB",
    "group_max_session_timeout": "10m",
    "group_consumer_session_timeout": "90s",
    "group_consumer_migration_policy": "upgrade",
}


@pytest.mark.parametrize("name", [item.name for item in fields(Settings)])
def test_every_setting_can_be_given_as_a_variable(name: str) -> None:
    spelling = _SPECIAL.get(name, _SPELLINGS[setting_kinds()[name]])

    effective = load_settings(flags={}, environ={variable_name(name): spelling})

    assert effective.sources[name] == variable_name(name)
    assert getattr(effective.settings, name) != getattr(Settings(), name)


def test_an_empty_variable_counts_as_not_set() -> None:
    effective = load_settings(flags={}, environ={"STREAMHOUSE_SEGMENT_BYTES": "", "AWS_REGION": ""})

    assert effective.settings == Settings()


def test_the_aws_variables_fill_what_nobody_else_gave() -> None:
    environ = {
        "AWS_ENDPOINT_URL_S3": "http://s3.example",
        "AWS_ENDPOINT_URL": "http://everything.example",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
    }

    effective = load_settings(flags={}, environ=environ, file=toml(s3_region="us-west-2"))

    assert effective.settings.s3_endpoint == "http://s3.example"
    assert effective.sources["s3_endpoint"] == "AWS_ENDPOINT_URL_S3"
    assert effective.settings.s3_region == "us-west-2"
    assert effective.settings.s3_secret_access_key == "secret"
    assert effective.settings.s3_session_token == "token"


def test_a_session_token_is_not_taken_for_a_key_that_it_was_not_issued_with() -> None:
    environ = {"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}

    effective = load_settings(flags={"s3_access_key_id": "mine"}, environ=environ)

    assert effective.settings.s3_session_token == ""
    assert effective.sources["s3_session_token"] == "default"


def test_toml_values_have_toml_types() -> None:
    file = toml(kafka_port=0, auto_create_topics=False, segment_bytes=4096, segment_age="250ms", host="::1")

    settings = load_settings(flags={}, environ={}, file=file).settings

    assert (settings.kafka_port, settings.auto_create_topics, settings.segment_bytes) == (0, False, 4096)
    assert (settings.segment_age, settings.host) == (250, "::1")


@pytest.mark.parametrize(
    ("key", "suggestion"),
    [("segment-bytes", "segment_bytes"), ("segment_byte", "segment_bytes"), ("colour", "streamhouse config")],
)
def test_an_unknown_key_in_the_file_is_an_error_that_names_it(key: str, suggestion: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        load_settings(flags={}, environ={}, file=SettingsFile(name="node.toml", values={key: "1"}))

    assert repr(key) in caught.value.message
    assert "node.toml" in caught.value.message
    assert suggestion in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka_port", "tcp://10.0.0.1:9092"),
        ("kafka_port", True),
        ("kafka_port", 1.5),
        ("auto_create_topics", "maybe"),
        ("segment_age", 30),
        ("segment_age", "30"),
        ("segment_bytes", "8 bananas"),
        ("segment_bytes", [1]),
        ("host", 7),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_its_source(name: str, value: object) -> None:
    with pytest.raises(InvalidConfig, match=rf"node\.toml: {name}"):
        load_settings(flags={}, environ={}, file=toml(**{name: value}))


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidConfig, match="lease_renewal"):
        load_settings(flags={"lease_ttl": "10s"}, environ={})


def test_a_file_is_read_from_disk_and_its_damage_reported(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text('segment_bytes = "8MiB"\n')
    bad.write_text("segment_bytes = \n")

    assert read_settings_file(str(good)).values == {"segment_bytes": "8MiB"}
    with pytest.raises(InvalidConfig, match="is not TOML"):
        read_settings_file(str(bad))
    with pytest.raises(NotFound):
        read_settings_file(str(tmp_path / "none.toml"))
    with pytest.raises(InvalidConfig, match="cannot read"):
        read_settings_file(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("s3_secret_access_key", "hunter2", MASK),
        ("s3_secret_access_key", "", ""),
        ("metadata", "postgresql://user:hunter2@host/db", f"postgresql://user:{MASK}@host/db"),
        ("metadata", "postgresql://user:hun@ter/2@host/db", f"postgresql://user:{MASK}@host/db"),
        ("metadata", "postgresql://host/db?user=u&password=hunter2", f"postgresql://host/db?user=u&password={MASK}"),
        ("metadata", "sqlite:///file", "sqlite:///file"),
        ("segment_age", 90_000, "90s"),
        ("segment_bytes", 8 * 2**20, "8MiB"),
        ("auto_create_topics", False, "false"),
    ],
)
def test_settings_are_shown_as_people_write_them_with_secrets_masked(name: str, value: object, shown: str) -> None:
    assert show_setting(name, value) == shown


# --- secrets in files ---


@pytest.mark.parametrize("name", FROM_FILES)
def test_a_secret_may_be_in_a_file_wherever_a_setting_may_be_given(tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("postgresql://me:pa55@db/x\n")
    key = f"{name}_file"
    for given in (
        {"flags": {key: str(secret)}, "environ": {}},
        {"flags": {}, "environ": {variable_name(key): str(secret)}},
        {"flags": {}, "environ": {}, "file": toml(**{key: str(secret)})},
    ):
        effective = load_settings(**given)
        assert getattr(effective.settings, name) == "postgresql://me:pa55@db/x"
        assert key.replace("_", "").lower() in effective.sources[name].replace("_", "").replace("-", "").lower()


def test_a_flag_wins_over_a_file_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("from the file")
    environ = {"STREAMHOUSE_S3_SESSION_TOKEN_FILE": str(tmp_path / "secret")}
    assert load_settings(flags={"s3_session_token": "flag"}, environ=environ).settings.s3_session_token == "flag"


def test_a_secret_and_its_file_in_one_place_contradict_each_other(tmp_path: Path) -> None:
    environ = {"STREAMHOUSE_METADATA": "sqlite:x", "STREAMHOUSE_METADATA_FILE": str(tmp_path / "secret")}
    with pytest.raises(InvalidConfig, match=r"both STREAMHOUSE_METADATA and STREAMHOUSE_METADATA_FILE"):
        load_settings(flags={}, environ=environ)


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe\x00"])
def test_a_file_without_a_secret_is_refused_and_named(tmp_path: Path, content: bytes | None) -> None:
    secret = tmp_path / "secret"
    if content is not None:
        secret.write_bytes(content)
    with pytest.raises(InvalidConfig, match="secret"):
        load_settings(flags={"metadata_file": str(secret)}, environ={})
