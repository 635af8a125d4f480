"""Retention over any run of segments: it takes a prefix, no more than the limits ask for and no less."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from streamhouse.core.retention import retained_from


@dataclass(frozen=True, slots=True)
class Segment:
    end_offset: int
    size_bytes: int
    max_timestamp_ms: int
    created_at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Log:
    """Segments, and a start that lies before the end of the first one: those wholly below it are gone."""

    segments: list[Segment]
    start_offset: int


@st.composite
def logs(draw: st.DrawFn) -> Log:
    start_offset = end_offset = draw(st.integers(0, 100))
    segments = []
    for _ in range(draw(st.integers(0, 8))):
        end_offset += draw(st.integers(1, 10))
        segments.append(Segment(end_offset, draw(st.integers(1, 100)), draw(st.integers(0, 1_000))))
    return Log(segments, start_offset)


_limits = st.integers(-1, 1_200)


@settings(database=None)
@given(logs(), _limits, _limits, st.integers(0, 2_500))
def test_what_goes_is_a_prefix_of_segments_that_each_broke_a_limit(
    log: Log, retention_ms: int, retention_bytes: int, now_ms: int
) -> None:
    start = retained_from(
        log.segments, log.start_offset, retention_ms=retention_ms, retention_bytes=retention_bytes, now_ms=now_ms
    )

    dropped = [segment for segment in log.segments if segment.end_offset <= start]
    kept = log.segments[len(dropped) :]
    kept_bytes = sum(segment.size_bytes for segment in kept)

    def is_old(segment: Segment) -> bool:
        return retention_ms >= 0 and now_ms - segment.max_timestamp_ms > retention_ms

    assert start == (dropped[-1].end_offset if dropped else log.start_offset)
    for index, segment in enumerate(dropped):
        behind = sum(later.size_bytes for later in log.segments[index + 1 :])
        assert is_old(segment) or (retention_bytes >= 0 and behind >= retention_bytes)
    if kept:
        assert not is_old(kept[0]), "a segment that is too old stays only behind one that is not"
        assert retention_bytes < 0 or kept_bytes - kept[0].size_bytes < retention_bytes


@settings(database=None)
@given(logs(), st.integers(0, 2_500))
def test_without_limits_everything_stays(log: Log, now_ms: int) -> None:
    start = retained_from(log.segments, log.start_offset, retention_ms=-1, retention_bytes=-1, now_ms=now_ms)

    assert start == log.start_offset


@settings(database=None)
@given(logs(), _limits, _limits, st.integers(0, 2_500), st.integers(0, 500))
def test_time_that_passes_never_brings_anything_back(
    log: Log, retention_ms: int, retention_bytes: int, now_ms: int, later_ms: int
) -> None:
    starts = [
        retained_from(
            log.segments, log.start_offset, retention_ms=retention_ms, retention_bytes=retention_bytes, now_ms=moment
        )
        for moment in (now_ms, now_ms + later_ms)
    ]

    assert starts == sorted(starts)
