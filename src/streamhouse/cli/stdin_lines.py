"""Lines from a pipe, a terminal or a file as they come, without a thread that Ctrl-C would have to wait for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

from streamhouse.model.errors import BatchTooLarge

_CHUNK_BYTES = 256 * 1024


async def read_lines(fd: int, *, max_line_bytes: int) -> AsyncIterator[list[bytes]]:
    """Whole lines without their ends, as many at a time as have arrived; the last needs no newline."""
    rest = b""
    async for chunk in _chunks(fd):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > max_line_bytes or any(len(line) > max_line_bytes for line in lines):
            raise BatchTooLarge(f"an input line is longer than {max_line_bytes} bytes", hint="split it")
        if lines:
            yield lines
    if rest:
        yield [rest]


async def _chunks(fd: int) -> AsyncIterator[bytes]:
    # Waiting for readability leaves the descriptor as it is: non-blocking mode would leak into a shared terminal.
    while True:
        await _readable(fd)
        chunk = os.read(fd, _CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(fd, ready.set)
    except PermissionError:
        return  # a plain file or /dev/null: epoll refuses it because reading it never waits
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)
