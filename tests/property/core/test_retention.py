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


@st.composite
def logs(draw: st.DrawFn) -> list[Segment]:
    end_offset = draw(st.integers(0, 100))
    segments = []
    for _ in range(draw(st.integers(0, 8))):
        end_offset += draw(st.integers(1, 10))
        segments.append(Segment(end_offset, draw(st.integers(1, 100)), draw(st.integers(0, 1_000))))
    return segments


_limits = st.integers(-1, 1_200)


@settings(database=None)
@given(logs(), st.integers(0, 120), _limits, _limits, st.integers(0, 2_500))
def test_what_goes_is_a_prefix_of_segments_that_each_broke_a_limit(
    segments: list[Segment], log_start: int, retention_ms: int, retention_bytes: int, now_ms: int
) -> None:
    start = retained_from(
        segments, log_start, retention_ms=retention_ms, retention_bytes=retention_bytes, now_ms=now_ms
    )

    dropped = [segment for segment in segments if segment.end_offset <= start]
    kept = segments[len(dropped) :]
    assert start >= log_start
    assert start in {log_start, *(segment.end_offset for segment in segments)}

    def is_old(segment: Segment) -> bool:
        return retention_ms >= 0 and now_ms - segment.max_timestamp_ms > retention_ms

    kept_bytes = sum(segment.size_bytes for segment in kept)
    if start > log_start and retention_bytes >= 0 and not is_old(dropped[-1]):
        assert kept_bytes >= retention_bytes, "a size limit keeps at least that many bytes"
    if retention_bytes < 0:
        below_start = [segment for segment in segments if segment.end_offset <= log_start]
        assert all(is_old(segment) for segment in dropped if segment not in below_start)
    if kept and kept[0].end_offset > log_start:
        assert not is_old(kept[0]), "a segment that is too old stays only behind one that is not"
        assert retention_bytes < 0 or kept_bytes - kept[0].size_bytes < retention_bytes


@settings(database=None)
@given(logs(), st.integers(0, 120), st.integers(0, 2_500))
def test_without_limits_everything_stays(segments: list[Segment], log_start: int, now_ms: int) -> None:
    assert retained_from(segments, log_start, retention_ms=-1, retention_bytes=-1, now_ms=now_ms) == log_start


@settings(database=None)
@given(logs(), _limits, _limits, st.integers(0, 2_500), st.integers(0, 500))
def test_time_that_passes_never_brings_anything_back(
    segments: list[Segment], retention_ms: int, retention_bytes: int, now_ms: int, later_ms: int
) -> None:
    starts = [
        retained_from(segments, 0, retention_ms=retention_ms, retention_bytes=retention_bytes, now_ms=moment)
        for moment in (now_ms, now_ms + later_ms)
    ]

    assert starts == sorted(starts)
