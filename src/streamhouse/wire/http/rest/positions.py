"""Where a reader of several partitions is, as text that fits in an event's id and in a URL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from streamhouse.model.errors import InvalidInput

Range = tuple[int, int]
"""[start, end)"""

_POSITION = re.compile(r"([0-9]{1,10}):([0-9]{1,19})")
_RANGE = re.compile(r"([0-9]{1,10}):([0-9]{1,19})-([0-9]{1,19})")
_INT64 = range(2**63)
_MOST_PARTS = 2


def positions_text(positions: Mapping[int, int]) -> str:
    """0:17,1:4 - the offset to read next, of every partition."""
    return ",".join([f"{partition}:{offset}" for partition, offset in positions.items()])


def positions_of(text: str) -> dict[int, int]:
    positions: dict[int, int] = {}
    for part in text.split(","):
        found = _POSITION.fullmatch(part)
        if found is None or int(found[2]) not in _INT64:
            raise InvalidInput(f"{part[:40]!r} is not a position", hint="PARTITION:OFFSET,… as an event's id has it")
        positions[int(found[1])] = int(found[2])
    return positions


def ranges_text(parts: Iterable[Mapping[int, Range]]) -> str:
    """0:0-17,1:0-4/0:17-20 - the offsets that are still to be looked at, and after a stroke those that come later."""
    return "/".join([_part_text(part) for part in parts if part])


def ranges_of(text: str) -> tuple[dict[int, Range], ...]:
    return tuple(_part_of(part) for part in text.split("/", _MOST_PARTS - 1))


def _part_text(ranges: Mapping[int, Range]) -> str:
    return ",".join([f"{partition}:{start}-{end}" for partition, (start, end) in ranges.items()])


def _part_of(text: str) -> dict[int, Range]:
    ranges: dict[int, Range] = {}
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if found is None or int(found[2]) not in _INT64 or int(found[3]) not in _INT64:
            raise InvalidInput(f"{part[:40]!r} is not a place to go on", hint="give `next` as it was answered")
        ranges[int(found[1])] = (int(found[2]), int(found[3]))
    return ranges
