"""Where each partition is read first, and what is said when that is not where it was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamhouse.cli.record_format import show_timestamp
from streamhouse.cli.start_offset import StartKind, StartOffset
from streamhouse.client.admin import Admin

_MOST_NOTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """`positions` are within what the partitions hold; records before `wanted` are not for printing."""

    positions: dict[int, int]
    wanted: int = 0
    notes: list[str] = field(default_factory=list)


async def find_start(
    admin: Admin, topic: str, partitions: Sequence[int], start: StartOffset, ends: dict[int, int], *, waits: bool
) -> Start:
    """`ends`: of the partitions, as they are now; `waits`: whoever reads waits there for more."""
    match start.kind:
        case StartKind.EARLIEST:
            return Start(positions=await admin.earliest_offsets(topic, partitions))
        case StartKind.LATEST:
            return Start(positions=dict(ends))
        case StartKind.OFFSET:
            firsts = await admin.earliest_offsets(topic, partitions)
            return start_at(topic, start.value, firsts, ends, waits=waits)
        case StartKind.LAST:
            firsts = await admin.earliest_offsets(topic, partitions)
            return Start(positions={p: max(firsts[p], ends[p] - start.value) for p in partitions})
        case StartKind.TIMESTAMP:
            found = await admin.offsets_at(topic, partitions, start.value)
            return start_at_time(topic, start.value, found, ends, waits=waits)


def start_at_time(
    topic: str, time_ms: int, found: Mapping[int, int | None], ends: Mapping[int, int], *, waits: bool
) -> Start:
    """`found`: the first offset at or after that time. That one partition has none is nothing to tell of; that none
    has is."""
    # Nothing that new: then only what comes later is at or after that time.
    positions = {partition: ends[partition] if at is None else at for partition, at in found.items()}
    notes = []
    if not waits and all(at is None for at in found.values()):
        names = topic if len(found) > 1 else "".join(f"{topic}/{partition}" for partition in found)
        notes.append(f"{names} has no record of {show_timestamp(time_ms)} or later yet")
    return Start(positions=positions, notes=notes)


def start_at(topic: str, offset: int, firsts: dict[int, int], ends: dict[int, int], *, waits: bool) -> Start:
    """At an offset in each partition, or at the nearest that it has."""
    positions: dict[int, int] = {}
    notes: list[str] = []
    for partition, first in firsts.items():
        end, name = ends[partition], f"{topic}/{partition}"
        positions[partition] = min(max(offset, first), end)
        if offset < first:
            notes.append(f"{name} begins at offset {first}: what was before it is no longer held")
        elif offset > end and waits:
            notes.append(f"{name} ends at offset {end}: waiting for offset {offset}")
        elif offset > end or (offset == end > first and not waits):
            notes.append(f"{name} ends at offset {end}: there is no offset {offset} yet")
    if len(notes) > _MOST_NOTES:
        notes[_MOST_NOTES - 1 :] = [f"and so for {len(notes) - _MOST_NOTES + 1} more partitions"]
    return Start(positions=positions, wanted=offset, notes=notes)
