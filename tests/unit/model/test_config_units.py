"""Topic configs with units: what is stored is what Kafka's clients understand."""

from __future__ import annotations

import pytest

from streamhouse.model.config_units import check_topic_configs, without_units
from streamhouse.model.errors import InvalidConfig


@pytest.mark.parametrize(
    ("name", "text", "stored"),
    [
        ("retention.ms", "7d", "604800000"),
        ("retention.ms", "1.5h", "5400000"),
        ("retention.ms", "250ms", "250"),
        ("retention.ms", "-1", "-1"),
        ("retention.ms", "86400000", "86400000"),
        ("retention.bytes", "1GiB", "1073741824"),
        ("retention.bytes", "-1", "-1"),
        ("segment.bytes", "8MiB", "8388608"),
        ("max.message.bytes", "10mb", "10000000"),
        ("segment.ms", "1m", "60000"),
        ("min.cleanable.dirty.ratio", "0.5", "0.5"),
        ("cleanup.policy", "compact", "compact"),
    ],
)
def test_what_is_stored_has_no_unit(name: str, text: str, stored: str) -> None:
    assert without_units({name: text}) == {name: stored}
    assert check_topic_configs({name: text}) == {name: stored}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("retention.ms", "soon", r"retention.ms: 'soon' is not a duration \(write 7d, .* or -1 for no limit\)"),
        ("retention.ms", "7 days", "not a duration"),
        ("retention.ms", "-7d", "not a duration"),
        ("retention.bytes", "1GiBB", r"retention.bytes: '1GiBB' is not a size \(write 1GiB, "),
        ("segment.ms", "soon", r"not a duration \(write 7d, 12h, 30m, 10s, 250ms, or milliseconds\)"),
    ],
)
def test_what_is_no_value_says_what_is_accepted(name: str, text: str, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):
        without_units({name: text})


@pytest.mark.parametrize("name", ["retention.m", "nonsense"])
def test_names_that_nobody_knows_are_anothers_to_judge_or_refused(name: str) -> None:
    assert without_units({name: "7d"}) == {name: "7d"}
    with pytest.raises(InvalidConfig, match="unknown topic config"):
        check_topic_configs({name: "7d"})


def test_a_value_out_of_range_is_refused_after_the_unit() -> None:
    with pytest.raises(InvalidConfig, match=r"segment.bytes: .* is not between"):
        check_topic_configs({"segment.bytes": "4GiB"})
