"""The fast way to read a common Produce request, where its kernel was compiled; without it, there is only the general
codec, which reads every request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamhouse.wire.kafka._produce_scan import encode_reply, scan

    COMPILED: bool
else:
    try:
        from streamhouse.wire.kafka._produce_scan import encode_reply, scan

        COMPILED = True
    except ImportError:
        COMPILED = False

        def scan(buffer, start, end):
            """Nothing is common here."""
            return None

        def encode_reply(*args):
            raise AssertionError("there is no reply to what was not scanned")


__all__ = ["COMPILED", "encode_reply", "scan"]
