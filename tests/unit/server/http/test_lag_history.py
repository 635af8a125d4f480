"""What is kept of groups' lag: by topic and by partition, of so many, with gaps where nobody could say."""

from __future__ import annotations

from uuid import UUID

import pytest

from streamhouse.model.names import TopicPartition
from streamhouse.server.http.rest import lag_history
from streamhouse.server.http.rest.lag_history import LagHistory

ORDERS, PAYMENTS = UUID(int=1), UUID(int=2)
PERIOD_MS = 30_000


def partition(topic_id: UUID, number: int) -> TopicPartition:
    return TopicPartition(topic_id, number)


@pytest.fixture
def history() -> LagHistory:
    return LagHistory(period_ms=PERIOD_MS, kept_ms=4 * PERIOD_MS)


def test_a_group_has_a_line_of_all_and_one_of_each_partition_the_worst_first(history: LagHistory) -> None:
    first = {("billing", partition(ORDERS, 0)): 10, ("audit", partition(ORDERS, 0)): 99}
    history.add(PERIOD_MS, first)
    history.add(
        2 * PERIOD_MS, {**first, ("billing", partition(PAYMENTS, 3)): 30, ("billing", partition(ORDERS, 1)): 20}
    )
    found = history.of_group("billing", 2)
    assert found.times_ms == [PERIOD_MS, 2 * PERIOD_MS]
    assert found.total == [10, 60]
    assert list(found.partitions.items()) == [(partition(PAYMENTS, 3), [None, 30]), (partition(ORDERS, 1), [None, 20])]
    of_topic = history.of_topic("billing", ORDERS)
    assert of_topic is not None
    assert of_topic.series["lag"] == [10, 30]
    assert history.of_group("nobody", 2).times_ms == []


def test_where_the_end_of_a_partition_is_not_known_there_is_a_gap(history: LagHistory) -> None:
    for lag in (10, None, 12):
        history.add(PERIOD_MS * (len(history.of_group("billing", 2).times_ms) + 1), {
            ("billing", partition(ORDERS, 0)): lag, ("billing", partition(PAYMENTS, 0)): 5,
        })  # fmt: skip
    assert history.of_group("billing", 2).total == [15, None, 17]
    assert history.of_group("billing", 2).partitions[partition(ORDERS, 0)] == [10, None, 12]


def test_it_keeps_so_many_and_no_older(history: LagHistory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_history, "MOST", 3)
    for round_ in range(1, 10):
        history.add(round_ * PERIOD_MS, {("wide", partition(ORDERS, number)): number for number in range(100)})
    found = history.of_group("wide", 100)
    assert found.times_ms == [round_ * PERIOD_MS for round_ in range(6, 10)]
    assert [each.partition for each in found.partitions] == [99, 98, 97]
    history.add(10 * PERIOD_MS, {})
    assert history.of_group("wide", 100).times_ms == []


def test_what_nobody_can_say_is_a_gap_and_what_is_too_old_is_not_told(history: LagHistory) -> None:
    history.add(PERIOD_MS, {("billing", partition(ORDERS, 0)): 10})
    history.add_unknown(2 * PERIOD_MS)
    history.add(3 * PERIOD_MS, {("billing", partition(ORDERS, 0)): 12})
    assert history.of_group("billing", 2).total == [10, None, 12]
    later = history.of_group("billing", 2, since_ms=2 * PERIOD_MS)
    assert (later.times_ms, later.total) == ([2 * PERIOD_MS, 3 * PERIOD_MS], [None, 12])
    of_topic = history.of_topic("billing", ORDERS, 3 * PERIOD_MS)
    assert of_topic is not None
    assert of_topic.series["lag"] == [12]
