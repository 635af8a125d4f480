"""Many connections that did something once and then keep still."""

from __future__ import annotations

import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

API_VERSIONS_REQUEST = struct.pack(">ihhih5s", 15, 18, 0, 0, 5, b"bench")
SPARE_FILES = 256


@contextmanager
def open_connections(host: str, port: int, count: int) -> Iterator[None]:
    """Opens the connections, has each answer one request, and keeps them open during the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + SPARE_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + SPARE_FILES), hard))
    with ExitStack() as opened:
        for _ in range(count):
            connection = opened.enter_context(socket.create_connection((host, port), timeout=30))
            connection.sendall(API_VERSIONS_REQUEST)
            read_frame(connection)
        yield


def read_frame(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _read_exactly(connection, 4))
    return _read_exactly(connection, size)


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise ConnectionError("the server closed a connection")
        received += piece
    return received
