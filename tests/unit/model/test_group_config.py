"""What a group may be given: Kafka's limits, wider where a node's own setting is outside of them."""

from __future__ import annotations

import pytest

from streamhouse.model.errors import InvalidConfig
from streamhouse.model.group_config import GROUP_CONFIG_KEYS, check_group_config

HEARTBEAT, SESSION = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"
SMALL = {HEARTBEAT: "500", SESSION: "2000"}


KAFKAS_GROUP_CONFIGS = """
consumer.assignment.interval.ms consumer.assignor.offload.enable consumer.heartbeat.interval.ms
consumer.session.timeout.ms share.assignment.interval.ms share.assignor.offload.enable share.auto.offset.reset
share.delivery.count.limit share.heartbeat.interval.ms share.isolation.level share.partition.max.record.locks
share.record.lock.duration.ms share.renew.acknowledge.enable share.session.timeout.ms streams.assignment.interval.ms
streams.assignor.offload.enable streams.heartbeat.interval.ms streams.initial.rebalance.delay.ms
streams.num.standby.replicas streams.session.timeout.ms
"""


def test_every_group_config_of_kafka_is_known_and_its_default_passes_its_own_check() -> None:
    assert sorted(GROUP_CONFIG_KEYS) == sorted(KAFKAS_GROUP_CONFIGS.split())
    for key in GROUP_CONFIG_KEYS.values():
        assert key.check(key.default) == key.default


@pytest.mark.parametrize(
    "value", ["earliest", "latest", "by_duration:PT1H30M", "by_duration:P3D", "by_duration:PT0.5S"]
)
def test_a_share_group_may_begin_at_either_end_or_some_time_ago(value: str) -> None:
    assert GROUP_CONFIG_KEYS["share.auto.offset.reset"].check(value) == value


@pytest.mark.parametrize("value", ["", "none", "earliest:PT1H", "by_duration", "by_duration:P", "by_duration:-PT1H"])
def test_a_share_group_may_not_begin_anywhere_else(value: str) -> None:
    with pytest.raises(InvalidConfig):
        GROUP_CONFIG_KEYS["share.auto.offset.reset"].check(value)


@pytest.mark.parametrize(("name", "least", "most"), [(HEARTBEAT, 5_000, 15_000), (SESSION, 45_000, 60_000)])
def test_a_value_has_the_limits_that_kafka_has_by_default(name: str, least: int, most: int) -> None:
    for good in (least, most):
        check_group_config({name: str(good)}, {}, {})
    for bad in (least - 1, most + 1):
        with pytest.raises(InvalidConfig, match=f"{name}: {bad} is not between {least} and {most}"):
            check_group_config({name: str(bad)}, {}, {})


def test_what_a_nodes_setting_says_any_group_may_have() -> None:
    check_group_config(SMALL, {}, SMALL)
    check_group_config({SESSION: "60000"}, {}, SMALL)
    check_group_config({SESSION: "90000"}, {}, {SESSION: "90000"})
    with pytest.raises(InvalidConfig, match="between 2000 and 60000"):
        check_group_config({SESSION: "1999"}, {}, SMALL)


def test_what_is_stored_may_stay_and_not_be_set_any_more() -> None:
    check_group_config(SMALL, SMALL, {})
    check_group_config({**SMALL, SESSION: "50000"}, SMALL, {})
    with pytest.raises(InvalidConfig):
        check_group_config({**SMALL, SESSION: "2001"}, SMALL, {})


def test_members_are_to_beat_more_often_than_their_sessions_end() -> None:
    with pytest.raises(InvalidConfig, match="less than"):
        check_group_config({HEARTBEAT: "15000"}, {}, {SESSION: "15000"})
