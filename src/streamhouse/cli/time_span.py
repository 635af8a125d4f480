"""How long something takes or is ago, as coarse as people read it."""

from __future__ import annotations

_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))


def show_span(span_ms: int) -> str:
    """The largest unit that there is at least two of, so that nothing is off by half."""
    for unit, unit_ms in _UNITS_MS:
        if span_ms >= 2 * unit_ms:
            return f"{span_ms // unit_ms}{unit}"
    return f"{max(0, span_ms)}ms"
