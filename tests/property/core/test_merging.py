"""Runs of segments to be rewritten, over any log: nothing is left behind, nothing is taken twice."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from streamhouse.core.merging import Part, plan_rewrites

TARGET = 100


@st.composite
def parts(draw: st.DrawFn) -> Part:
    is_whole = draw(st.booleans())
    return Part(
        kept_bytes=draw(st.integers(1 if is_whole else 0, 120)),
        max_timestamp_ms=draw(st.integers(0, 100)),
        is_whole=is_whole,
    )


@settings(database=None)
@given(st.lists(parts(), max_size=20), st.none() | st.integers(1, 50))
def test_every_segment_that_loses_records_is_in_one_run(log: list[Part], window: int | None) -> None:
    runs = plan_rewrites(log, target_bytes=TARGET, window_ms=window)

    indexes = [index for run in runs for index in run]
    assert indexes == sorted(set(indexes))
    assert {index for index, part in enumerate(log) if not part.is_whole} <= set(indexes)


@settings(database=None)
@given(st.lists(parts(), max_size=20), st.none() | st.integers(1, 50))
def test_every_run_gives_something_and_no_more_than_the_target(log: list[Part], window: int | None) -> None:
    log.append(Part(kept_bytes=1, max_timestamp_ms=0))
    for run in plan_rewrites(log, target_bytes=TARGET, window_ms=window):
        giving = [log[index] for index in run if log[index].kept_bytes]
        assert giving
        assert len(giving) == 1 or sum(part.kept_bytes for part in giving) <= TARGET
        if window is not None:
            assert len({part.max_timestamp_ms // window for part in giving}) == 1


@settings(database=None)
@given(st.lists(st.integers(1, 60), max_size=30))
def test_merging_comes_to_an_end_and_copies_a_byte_only_a_few_times(sizes: list[int]) -> None:
    """As a topic grows: a segment arrives, and the job runs again."""
    log: list[int] = []
    copied = 0
    for size in sizes:
        log.append(size)
        while runs := plan_rewrites(
            [Part(kept_bytes=each, max_timestamp_ms=0) for each in log], target_bytes=TARGET, window_ms=None
        ):
            for run in reversed(runs):
                merged = sum(log[index] for index in run)
                copied += merged
                log[run.start : run.stop] = [merged]
    assert copied <= 7 * sum(sizes)
