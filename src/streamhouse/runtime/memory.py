"""Memory that will be written over before anybody reads it.

Python fills every new bytearray with zeros. For memory into which a socket or a batch is copied next, that is a second
pass over each byte: a fifth of a node's time when producers send large batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:

    def unfilled(size_bytes: int) -> bytearray:
        """So much memory, with anything in it."""

    COMPILED: bool
else:
    try:
        from streamhouse.runtime._memory import unfilled

        COMPILED = True
    except ImportError:
        unfilled = bytearray
        COMPILED = False

__all__ = ["COMPILED", "unfilled"]
