"""How fast topics grow, from looks at where their partitions end."""

from __future__ import annotations

from collections.abc import Set
from uuid import UUID

from streamhouse.metadata.totals import GroupPosition
from streamhouse.model.names import TopicPartition
from streamhouse.server.http.rest.growth import TopicGrowth

TOPIC = UUID(int=1)
FIRST, SECOND = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)


def look(
    growth: TopicGrowth,
    at_s: int,
    ends: dict[TopicPartition, int],
    read: int | None = None,
    unheard: Set[TopicPartition] = frozenset(),
) -> None:
    positions = None if read is None else [GroupPosition(group_id="g", partition=FIRST, offset=read)]
    growth.look(ends, unheard, positions, now_ms=1_000_000 + at_s * 1000, monotonic_ms=at_s * 1000)


def test_a_rate_is_of_the_last_half_minute() -> None:
    growth = TopicGrowth()
    assert growth.written_per_s(TOPIC) is None
    for second in range(0, 101, 5):
        look(growth, second, {FIRST: max(0, second - 50) * 10, SECOND: 7}, read=second)
    assert growth.written_per_s(TOPIC) == 10
    assert growth.read_per_s(TOPIC) == 1
    for second in range(105, 141, 5):
        look(growth, second, {FIRST: 500, SECOND: 7}, read=100)
    assert growth.written_per_s(TOPIC) == 0
    assert growth.last_write_ms == {TOPIC: 1_100_000}


def test_a_partition_that_is_new_began_with_nothing() -> None:
    growth = TopicGrowth()
    look(growth, 0, {FIRST: 1_000})
    look(growth, 10, {FIRST: 1_000, SECOND: 50})
    assert growth.written_per_s(TOPIC) == 5


def test_what_an_agent_has_that_was_away_at_the_first_look_is_not_written_when_it_tells() -> None:
    growth = TopicGrowth()
    look(growth, 0, {FIRST: 1_000, SECOND: 0}, unheard={SECOND})
    look(growth, 10, {FIRST: 1_000, SECOND: 25}, unheard={SECOND})  # it stores them before anybody hears of it
    look(growth, 20, {FIRST: 1_000, SECOND: 40})
    assert growth.written_per_s(TOPIC) == 0
    assert growth.last_write_ms == {}
    look(growth, 30, {FIRST: 1_000, SECOND: 70})
    assert growth.written_per_s(TOPIC) == 1
    assert growth.last_write_ms == {TOPIC: 1_030_000}


def test_what_was_in_a_new_partition_before_anybody_told_of_it_is_written() -> None:
    growth = TopicGrowth()
    look(growth, 0, {FIRST: 1_000})
    look(growth, 10, {FIRST: 1_000, SECOND: 0}, unheard={SECOND})
    look(growth, 20, {FIRST: 1_000, SECOND: 40})
    assert growth.written_per_s(TOPIC) == 2


def test_what_begins_again_counts_from_there() -> None:
    growth = TopicGrowth()
    look(growth, 0, {FIRST: 1_000}, read=900)
    look(growth, 10, {FIRST: 1_000}, read=5)
    assert growth.written_per_s(TOPIC) == 0
    assert growth.read_per_s(TOPIC) == 0


def test_how_fast_is_read_is_not_known_where_positions_were_not() -> None:
    growth = TopicGrowth()
    for second in range(0, 31, 5):
        look(growth, second, {FIRST: 1_000}, read=None)
    assert growth.read_per_s(TOPIC) is None
    look(growth, 35, {FIRST: 1_000}, read=10)
    assert growth.read_per_s(TOPIC) is None, "at the beginning nobody knew"
    for second in range(40, 71, 5):
        look(growth, second, {FIRST: 1_000}, read=second - 25)
    assert growth.read_per_s(TOPIC) == 1
    look(growth, 75, {FIRST: 1_000}, read=None)
    assert growth.read_per_s(TOPIC) is None
    assert growth.written_per_s(TOPIC) == 0


def test_a_topic_that_is_gone_is_forgotten() -> None:
    growth = TopicGrowth()
    look(growth, 0, {FIRST: 0})
    look(growth, 10, {FIRST: 5})
    look(growth, 20, {})
    assert growth.last_write_ms == {}
    assert growth.written_per_s(TOPIC) == 0
