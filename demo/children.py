"""Processes that the demo starts end with it, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def end_with_parent() -> None:
    """In the child, before its program starts."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def clean_environment() -> dict[str, str]:
    """Ours without what would change settings behind the demo's back."""
    return {name: value for name, value in os.environ.items() if not name.startswith("STREAMHOUSE_")}
