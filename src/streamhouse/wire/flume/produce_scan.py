"""Reading a produce request's frame, with the kernel where it was compiled."""

from __future__ import annotations

try:
    from streamhouse.wire.flume._produce_scan import fnv1a_32, scan
except ImportError:
    from streamhouse.wire.flume.produce_scan_twin import fnv1a_32, scan

__all__ = ["fnv1a_32", "scan"]
