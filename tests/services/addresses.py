"""Chromium breaks its requests off when an address of the machine comes or goes. So none does while somebody looks at a
page, in this run of the tests or in another one beside it."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_GATE = Path(tempfile.gettempdir()) / "streamhouse-test-addresses.gate"
_LOCK = Path(tempfile.gettempdir()) / "streamhouse-test-addresses.lock"
_stays = 0


@contextmanager
def addresses_stay() -> Iterator[None]:
    """Any number at a time, also in one process."""
    global _stays
    with _LOCK.open("w") as lock:
        if not _stays:
            _pass_gate(lock, fcntl.LOCK_SH)
        else:
            fcntl.flock(lock, fcntl.LOCK_SH)  # whoever waits at the gate waits for us
        _stays += 1
        try:
            yield
        finally:
            _stays -= 1


@contextmanager
def addresses_change() -> Iterator[None]:
    assert not _stays, "this process looks at a page: what it needs of a network is to be made before"
    with _LOCK.open("w") as lock:
        _pass_gate(lock, fcntl.LOCK_EX)
        yield


def _pass_gate(lock: IO[str], operation: int) -> None:
    """One after the other: while pages are looked at without a pause, a change would never come."""
    with _GATE.open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lock, operation)
