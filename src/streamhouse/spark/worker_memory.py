"""What a Spark worker does with its memory: it is used again for other tasks, and keeps what those will want."""

from __future__ import annotations

import ctypes
import gc
from itertools import count

# By then everything is imported that a task needs.
_CALLS_TO_FREEZE = 3
_calls = count(1)

# Numbers of mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
# The most that glibc takes. Columns and pieces of segments are below it.
_LARGEST_RECYCLED_BYTES = 32 * 2**20
_KEPT_BYTES = 128 * 2**20


def settle_memory() -> None:
    """Spark collects garbage between tasks. What a worker has imported never becomes garbage: taking it out of the
    collector's sight saves tens of milliseconds a task."""
    call = next(_calls)
    if call == 1:
        _keep_freed_memory()
    if call <= _CALLS_TO_FREEZE:
        gc.collect()
        gc.freeze()


def _keep_freed_memory() -> None:
    """A task makes columns of megabytes, hands them over and makes the next. Given back to the system each time, their
    pages must be cleared and mapped anew, which costs more than to decode what is written there."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return  # not glibc
    mallopt(_MMAP_THRESHOLD, _LARGEST_RECYCLED_BYTES)
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
