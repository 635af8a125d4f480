"""When the holder of a lease may still write.

The store judges expiry by its own clock. The holder counts on its monotonic clock from before it asked, and stops a
margin early, so that it has stopped before the store would let another in, whatever the wall clocks say."""

from __future__ import annotations

MARGIN_FRACTION = 0.1


def writable_until_ms(asked_at_monotonic_ms: int, ttl_ms: int) -> int:
    """Monotonic time after which the holder must not write."""
    return asked_at_monotonic_ms + ttl_ms - max(1, int(ttl_ms * MARGIN_FRACTION))
