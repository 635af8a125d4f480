"""What a group may be given: Kafka's limits, wider where a node's own setting is outside of them."""

from __future__ import annotations

import pytest

from streamhouse.model.errors import InvalidConfig
from streamhouse.model.group_config import check_group_config

HEARTBEAT, SESSION = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"
SMALL = {HEARTBEAT: "500", SESSION: "2000"}


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
