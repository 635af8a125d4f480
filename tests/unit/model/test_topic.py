"""Topic configs: checked as Kafka checks them, effective values from topic, node and defaults."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.model.errors import InvalidConfig
from streamhouse.model.topic import CONFIG_KEYS, MAX_SEGMENT_BYTES, check_config, effective_config, parse_log_config


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "delete"),
        ("cleanup.policy", "compact"),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", ""),
        ("compression.type", "zstd"),
        ("delete.retention.ms", "0"),
        ("max.compaction.lag.ms", "1"),
        ("min.cleanable.dirty.ratio", "0.0"),
        ("min.cleanable.dirty.ratio", "1.0"),
        ("min.compaction.lag.ms", str(2**63 - 1)),
        ("max.message.bytes", "0"),
        ("max.message.bytes", str(2**31 - 1)),
        ("message.timestamp.type", "LogAppendTime"),
        ("retention.bytes", "-1"),
        ("retention.ms", str(2**63 - 1)),
        ("segment.bytes", "1048576"),
        ("segment.bytes", str(2**31 - 1)),
        ("segment.ms", "1"),
        ("compression.gzip.level", "-1"),
        ("compression.zstd.level", "22"),
        ("flush.messages", "1"),
        ("follower.replication.throttled.replicas", ""),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,12:3"),
        ("local.retention.ms", "-2"),
        ("message.format.version", "2.8-IV1"),
        ("min.insync.replicas", "2"),
        ("preallocate", "true"),
        ("unclean.leader.election.enable", "false"),
    ],
)
def test_a_good_value_is_kept_as_it_is(name: str, value: str) -> None:
    assert check_config({name: value}) == {name: value}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", ","),
        ("cleanup.policy", "delete,delete"),
        ("cleanup.policy", "delete;compact"),
        ("cleanup.policy", "Delete"),
        ("compression.type", "brotli"),
        ("compression.type", "ZSTD"),
        ("delete.retention.ms", "-1"),
        ("max.compaction.lag.ms", "0"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "-0.1"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.cleanable.dirty.ratio", "half"),
        ("min.compaction.lag.ms", "-1"),
        ("max.message.bytes", "-1"),
        ("max.message.bytes", str(2**31)),
        ("max.message.bytes", "1.0"),
        ("max.message.bytes", "1_000"),
        ("min.cleanable.dirty.ratio", "0.2_5"),
        ("max.message.bytes", ""),
        ("max.message.bytes", "9" * 5_000),
        ("message.timestamp.type", "logappendtime"),
        ("retention.bytes", "-2"),
        ("retention.ms", str(2**63)),
        ("retention.ms", "1d"),
        ("segment.bytes", "1048575"),
        ("segment.bytes", str(2**31)),
        ("segment.ms", "0"),
        ("compression.gzip.level", "0"),
        ("compression.lz4.level", "18"),
        ("flush.ms", "-1"),
        ("follower.replication.throttled.replicas", "0"),
        ("leader.replication.throttled.replicas", "*,0:1"),
        ("message.downconversion.enable", "yes"),
        ("message.timestamp.after.max.ms", "-1"),
        ("min.insync.replicas", "0"),
        ("remote.storage.enable", "true"),
        ("no.such.config", "1"),
        ("x" * 5_000, "1"),
        ("retention.ms", None),
    ],
)
def test_a_bad_value_is_refused_by_the_name_of_its_config(name: str, value: str | None) -> None:
    with pytest.raises(InvalidConfig, match=name[:50].replace(".", r"\.")) as refused:
        check_config({name: value})

    assert len(str(refused.value)) < 1_000


def test_spaces_around_policies_and_numbers_go() -> None:
    given_texts = {"cleanup.policy": " compact , delete ", "retention.ms": " 7 ", "min.cleanable.dirty.ratio": " .25 "}
    assert check_config(given_texts) == {
        "cleanup.policy": "compact,delete",
        "retention.ms": "7",
        "min.cleanable.dirty.ratio": "0.25",
    }


@given(st.sampled_from(sorted(CONFIG_KEYS)), st.text(max_size=20))
def test_any_text_is_a_value_or_refused_and_a_value_stays_what_it_is(name: str, text: str) -> None:
    try:
        once = check_config({name: text})
    except InvalidConfig:
        return
    assert check_config(once) == once
    parse_log_config(effective_config(once, {}))


def test_a_topic_goes_before_the_node_and_the_node_before_the_default() -> None:
    node = {"retention.ms": "5", "segment.bytes": "2048"}

    effective = effective_config({"retention.ms": "9"}, node)

    assert effective.keys() == CONFIG_KEYS.keys()
    assert effective["retention.ms"] == "9"
    assert effective["segment.bytes"] == "2048"
    assert effective["cleanup.policy"] == "delete"
    assert effective_config({"cleanup.policy": ""}, node)["cleanup.policy"] == ""


@pytest.mark.parametrize("value", ["7d", "", 7, None])
def test_a_value_that_makes_no_sense_counts_for_nothing_though_it_is_stored(value: Any) -> None:
    """Somebody wrote it into the database by hand."""
    assert effective_config({"retention.ms": value}, {"retention.ms": "5"})["retention.ms"] == "5"


def test_a_segment_may_stay_as_small_as_it_is_and_not_become_so() -> None:
    small = {"segment.bytes": "2048"}
    assert check_config(small, small) == small
    assert check_config(small, least_segment_bytes=2048) == small
    for stored in ({}, {"segment.bytes": "2049"}):
        with pytest.raises(InvalidConfig, match="less than 1048576"):
            check_config(small, stored)
    with pytest.raises(InvalidConfig):
        check_config({"segment.bytes": "1023"}, least_segment_bytes=1)


def test_the_least_lag_of_a_compaction_is_not_above_the_most() -> None:
    least, most = {"min.compaction.lag.ms": "6"}, {"max.compaction.lag.ms": "5"}
    assert check_config({**least, "max.compaction.lag.ms": "6"})
    for config, stored, node in (
        ({**least, **most}, {}, {}),
        ({**least, **most}, most, {}),
        ({**least, **most}, least, {}),
        (least, {}, most),
        (most, {}, least),
    ):
        with pytest.raises(InvalidConfig, match=r"min\.compaction\.lag\.ms: 6 is more than max\.compaction\.lag\.ms"):
            check_config(config, stored, node_defaults=node)


def test_what_a_topic_has_already_it_may_keep_though_it_could_not_be_set() -> None:
    stored = {"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5", "remote.storage.enable": "true"}

    assert check_config({**stored, "segment.ms": "7"}, stored) == {**stored, "segment.ms": "7"}


KAFKAS_TOPIC_CONFIGS = """
cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level delete.retention.ms
file.delete.delay.ms flush.messages flush.ms follower.replication.throttled.replicas index.interval.bytes
leader.replication.throttled.replicas local.retention.bytes local.retention.ms max.compaction.lag.ms max.message.bytes
message.downconversion.enable message.format.version message.timestamp.after.max.ms message.timestamp.before.max.ms
message.timestamp.difference.max.ms message.timestamp.type min.cleanable.dirty.ratio min.compaction.lag.ms
min.insync.replicas preallocate remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable
retention.bytes retention.ms segment.bytes segment.index.bytes segment.jitter.ms segment.ms
unclean.leader.election.enable
"""


def test_every_topic_config_of_kafka_is_known() -> None:
    ours = {name for name in CONFIG_KEYS if not name.startswith("streamhouse.")}

    assert ours == set(KAFKAS_TOPIC_CONFIGS.split())


def test_a_segment_is_never_larger_than_one_may_be_whatever_a_topic_says() -> None:
    def used(value: int) -> int:
        return parse_log_config(effective_config({"segment.bytes": str(value)}, {})).segment_bytes

    assert used(2**30) == MAX_SEGMENT_BYTES
    assert used(MAX_SEGMENT_BYTES - 1) == MAX_SEGMENT_BYTES - 1


def test_a_misspelt_config_is_answered_with_what_may_be_meant() -> None:
    with pytest.raises(InvalidConfig) as refused:
        check_config({"retention": "1"})

    assert "retention.ms" in refused.value.hint


def test_zero_is_a_value_and_not_an_absence() -> None:
    assert effective_config({"max.message.bytes": "0"}, {"max.message.bytes": "5"})["max.message.bytes"] == "0"


def test_every_default_passes_its_own_check() -> None:
    defaults = {name: key.default for name, key in CONFIG_KEYS.items()}

    assert check_config(defaults) == defaults


def test_the_effective_texts_become_what_a_log_goes_by() -> None:
    config = parse_log_config(
        effective_config(
            {
                "cleanup.policy": "compact,delete",
                "message.timestamp.type": "LogAppendTime",
                "segment.ms": "123",
                "compression.type": "lz4",
                "delete.retention.ms": "7",
            },
            {},
        )
    )

    assert config.cleanup_policy == {"compact", "delete"}
    assert config.stamps_append_time
    assert config.segment_age_ms == 123
    assert config.compression == "lz4"
    assert (config.delete_retention_ms, config.min_compaction_lag_ms) == (7, 0)
    assert config.retention_bytes == -1
