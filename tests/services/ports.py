"""Loopback ports for servers of tests: none is given away twice, not even to another run of the tests."""

from __future__ import annotations

import fcntl
import itertools
import random
import socket
import tempfile
from pathlib import Path

# Below the range that Linux takes for outgoing connections, so that a port stays a server's while that is down.
_PORTS = range(12_000, 32_000)
_CLAIMED_AT_ONCE = 500
_CLAIMS = Path(tempfile.gettempdir()) / "streamhouse-test-ports"


class _ClaimedPorts:
    """Each only once in a long while, and none that another process has: what was found free is often not listened on
    before the next is asked for. A claim ends with its process."""

    def __init__(self) -> None:
        _CLAIMS.mkdir(exist_ok=True)
        firsts = list(_PORTS[::_CLAIMED_AT_ONCE])
        random.shuffle(firsts)
        first = next(filter(self._claim, firsts))
        ports = list(range(first, first + _CLAIMED_AT_ONCE))
        random.shuffle(ports)
        self.in_turn = itertools.cycle(ports)

    def _claim(self, first: int) -> bool:
        self._held = (_CLAIMS / str(first)).open("w")
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._held.close()
            return False
        return True


_claimed = _ClaimedPorts()


def free_port() -> int:
    """One that nothing listens on, and that no outgoing connection will take."""
    for port in itertools.islice(_claimed.in_turn, 200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port found")
