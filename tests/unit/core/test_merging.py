"""Which neighbouring segments are made into one, and which are left as they are."""

from __future__ import annotations

from streamhouse.core.merging import Part, plan_rewrites, window_ms


def whole(size_bytes: int, at_ms: int = 0) -> Part:
    return Part(kept_bytes=size_bytes, max_timestamp_ms=at_ms)


def thinned(size_bytes: int, at_ms: int = 0) -> Part:
    return Part(kept_bytes=size_bytes, max_timestamp_ms=at_ms, is_whole=False)


def plan(*parts: Part, window: int | None = None) -> list[range]:
    return plan_rewrites(parts, target_bytes=100, window_ms=window)


def test_small_neighbours_become_one_up_to_the_target() -> None:
    assert plan(*[whole(30)] * 7) == [range(3), range(3, 6)]


def test_one_segment_alone_stays() -> None:
    assert plan(whole(10)) == []
    assert plan() == []


def test_a_segment_of_half_the_target_is_large_enough() -> None:
    assert plan(whole(50), whole(10), whole(10)) == [range(1, 3)]
    assert plan(whole(10), whole(50), whole(10)) == []


def test_what_outweighs_the_rest_waits_for_more() -> None:
    assert plan(whole(40), whole(5), whole(5)) == [range(1, 3)]
    assert plan(whole(40), whole(20), whole(20)) == [range(3)]
    assert plan(whole(40), whole(5)) == []


def test_segments_of_different_times_stay_apart() -> None:
    assert plan(whole(10, 1), whole(10, 9), whole(10, 11), whole(10, 19), window=10) == [range(2), range(2, 4)]


def test_a_segment_that_loses_records_is_rewritten_also_alone() -> None:
    assert plan(whole(60), thinned(60), whole(60)) == [range(1, 2)]


def test_a_segment_that_keeps_nothing_goes_with_a_neighbour() -> None:
    assert plan(thinned(0, 5), thinned(10, 25), window=10) == [range(2)]
    assert plan(thinned(10, 5), thinned(0, 25), thinned(10, 26), window=10) == [range(2), range(2, 3)]
    assert plan(thinned(0), whole(60)) == [range(2)]


def test_the_window_follows_the_shorter_of_the_topics_limits() -> None:
    def of(*, deletes: bool, compacts: bool, retention_ms: int = 1000) -> int | None:
        return window_ms(deletes=deletes, retention_ms=retention_ms, compacts=compacts, delete_retention_ms=60)

    assert of(deletes=True, compacts=False) == 100
    assert of(deletes=True, compacts=True) == 60
    assert of(deletes=False, compacts=True) == 60
    assert of(deletes=True, compacts=False, retention_ms=-1) is None
    assert of(deletes=True, compacts=False, retention_ms=5) == 1
