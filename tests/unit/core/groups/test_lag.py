"""What waits for a group, log by log and in total; and where nobody can say."""

from __future__ import annotations

from streamhouse.core.groups.offset_reset import total_lag, waiting


def test_in_an_empty_log_nothing_waits_though_nothing_was_committed() -> None:
    assert waiting(None, 0, 0) == 0
    assert waiting(None, 120, 120) == 0
    assert waiting(None, 119, 120) is None
    assert waiting(None, 0, None) is None, "who may have more of it was never heard"
    assert waiting(7, 0, 10) == 7


def test_a_total_is_not_known_where_a_part_of_it_is_not() -> None:
    assert total_lag([]) == 0
    assert total_lag([3, 0, 4]) == 7
    assert total_lag([3, None, 4]) is None
