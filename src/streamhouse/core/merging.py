"""Which neighbouring segments become one: up to a size, within a stretch of time, and only where it is worth a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# A merged segment is as old as its newest record. One that covered more than a fraction of the retention would keep
# its oldest records for that much longer; one that took in new records again and again would never be deleted.
_WINDOWS_PER_RETENTION = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a segment gives to the one that takes its place: all of its bytes (`is_whole`), some, or none."""

    kept_bytes: int
    max_timestamp_ms: int
    is_whole: bool = True


def window_ms(*, deletes: bool, retention_ms: int, compacts: bool, delete_retention_ms: int) -> int | None:
    """How much time one segment may cover, so that retention and tombstones still come to an end; None for any."""
    limits = []
    if deletes and retention_ms >= 0:
        limits.append(retention_ms // _WINDOWS_PER_RETENTION)
    if compacts:
        limits.append(delete_retention_ms)
    return max(1, min(limits)) if limits else None


def plan_rewrites(parts: Sequence[Part], *, target_bytes: int, window_ms: int | None) -> list[range]:
    """The runs of neighbours, by index, that each become one segment of about the target; the others stay.

    A segment that gives nothing goes with its neighbour, so that every run gives something if the last part does. A
    large segment that keeps everything is left alone, and so is one that would be most of what it is merged into: it
    waits for more, so that a record is copied a few times in its life and not at every run."""
    runs: list[range] = []
    start = run_bytes = 0
    # The last of the run that gives something: what gives nothing goes wherever its neighbours go.
    last: Part | None = None
    for index, part in enumerate(parts):
        if last is not None and part.kept_bytes:
            too_large = run_bytes + part.kept_bytes > target_bytes
            if too_large or _are_apart(last, part, target_bytes, window_ms):
                runs += _worthwhile(parts, range(start, index))
                start, run_bytes = index, 0
        run_bytes += part.kept_bytes
        last = part if part.kept_bytes else last
    return runs + _worthwhile(parts, range(start, len(parts)))


def _are_apart(before: Part, part: Part, target_bytes: int, window_ms: int | None) -> bool:
    if _is_settled(before, target_bytes) or _is_settled(part, target_bytes):
        return True
    return window_ms is not None and before.max_timestamp_ms // window_ms != part.max_timestamp_ms // window_ms


def _is_settled(part: Part, target_bytes: int) -> bool:
    return part.is_whole and 2 * part.kept_bytes >= target_bytes


def _worthwhile(parts: Sequence[Part], run: range) -> list[range]:
    """A run in which something is left out is always rewritten; else older segments that outweigh the rest stay out."""
    if not all(parts[index].is_whole for index in run):
        return [run]
    run_bytes = sum(parts[index].kept_bytes for index in run)
    while len(run) > 1 and 2 * parts[run[0]].kept_bytes > run_bytes:
        run_bytes -= parts[run[0]].kept_bytes
        run = run[1:]
    return [run] if len(run) > 1 else []
