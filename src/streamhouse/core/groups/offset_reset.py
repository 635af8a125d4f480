"""Where a reset moves a group to: the choice of a partition's new offset, free of any broker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class ResetKind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIME = "time"
    SHIFT = "shift"


@dataclass(frozen=True, slots=True)
class ResetTarget:
    """`value` is the offset, the timestamp in milliseconds or the distance, as the kind says."""

    kind: ResetKind
    value: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPosition:
    """The log is [start_offset, end_offset). `offset_at_time` is None where no record is as young as the time asked."""

    start_offset: int
    end_offset: int
    committed_offset: int | None
    offset_at_time: int | None = None


def choose_offset(target: ResetTarget, position: PartitionPosition) -> int | None:
    """The new offset, never outside the log; None where there is nothing to shift from."""
    match target.kind:
        case ResetKind.EARLIEST:
            wanted = position.start_offset
        case ResetKind.LATEST:
            wanted = position.end_offset
        case ResetKind.OFFSET:
            wanted = target.value
        case ResetKind.TIME:
            wanted = position.end_offset if position.offset_at_time is None else position.offset_at_time
        case ResetKind.SHIFT:
            if position.committed_offset is None:
                return None
            wanted = position.committed_offset + target.value
    return max(position.start_offset, min(wanted, position.end_offset))


def lag(committed_offset: int | None, end_offset: int | None) -> int | None:
    """Records not read yet; None when either side is not known."""
    if committed_offset is None or end_offset is None:
        return None
    # A log that lost its end (a topic made again) leaves commits ahead of it; nobody lags behind by less than nothing.
    return max(0, end_offset - committed_offset)


def waiting(lag: int | None, start_offset: int, end_offset: int | None) -> int | None:
    """Records that wait in a log, for one who lags so in it: none in an empty one, whatever was committed."""
    if lag is None and end_offset is not None and end_offset <= start_offset:
        return 0
    return lag


def total_lag(lags: Iterable[int | None]) -> int | None:
    """None where one of them is not known."""
    total = 0
    for each in lags:
        if each is None:
            return None
        total += each
    return total
