"""Durations and sizes as people write them: `30s`, `250ms`, `8MiB`."""

from __future__ import annotations

import re
from fractions import Fraction

from streamhouse.model.errors import InvalidConfig

_DURATION_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZES = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_LARGEST = 2**63 - 1
_LONGEST_NUMBER = 40
_NUMBER_UNIT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def parse_duration_ms(text: str) -> int:
    match = _NUMBER_UNIT.fullmatch(text)
    if match is None or match[2].lower() not in _DURATION_MS:
        raise InvalidConfig(f"{text!r} is not a duration", hint="write 250ms, 30s, 5m, 2h or 7d")
    return _whole(match[1], _DURATION_MS[match[2].lower()])


def parse_size_bytes(text: str) -> int:
    match = _NUMBER_UNIT.fullmatch(text)
    if match is None or match[2].lower() not in _SIZES:
        raise InvalidConfig(f"{text!r} is not a size", hint="write bytes, or 64KiB, 8MiB, 2GiB")
    return _whole(match[1], _SIZES[match[2].lower()])


def _whole(number: str, unit: int) -> int:
    """Exact, and small enough for any machine that has to keep it."""
    value = round(Fraction(number[:_LONGEST_NUMBER]) * unit)
    if len(number) > _LONGEST_NUMBER or value > _LARGEST:
        raise InvalidConfig(f"{number[:20]}… is too large")
    return value


def show_duration(ms: int) -> str:
    for unit in ("d", "h", "m", "s"):
        if ms and ms % _DURATION_MS[unit] == 0:
            return f"{ms // _DURATION_MS[unit]}{unit}"
    return f"{ms}ms"


def show_size(size_bytes: int) -> str:
    for unit in ("GiB", "MiB", "KiB"):
        if size_bytes and size_bytes % _SIZES[unit.lower()] == 0:
            return f"{size_bytes // _SIZES[unit.lower()]}{unit}"
    return str(size_bytes)
