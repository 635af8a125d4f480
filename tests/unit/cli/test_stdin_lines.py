"""Lines as they arrive, from pipes and from files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from streamhouse.cli.stdin_lines import read_lines
from streamhouse.model.errors import BatchTooLarge


async def collect(fd: int, max_line_bytes: int = 1000) -> list[bytes]:
    return [line async for lines in read_lines(fd, max_line_bytes=max_line_bytes) for line in lines]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"one\ntwo\n", [b"one", b"two"]),
        (b"no newline at the end", [b"no newline at the end"]),
        (b"\n\nempty ones count\n", [b"", b"", b"empty ones count"]),
        (b"carriage\r\nreturns \x00 stay\r\n", [b"carriage\r", b"returns \x00 stay\r"]),
    ],
)
def test_a_file_is_read_line_by_line(tmp_path: Path, content: bytes, lines: list[bytes]) -> None:
    (tmp_path / "input").write_bytes(content)

    with open(tmp_path / "input", "rb") as file:
        assert asyncio.run(collect(file.fileno())) == lines


def test_a_line_comes_out_of_a_pipe_before_the_pipe_is_closed() -> None:
    reader, writer = os.pipe()

    async def scenario() -> list[list[bytes]]:
        seen: list[list[bytes]] = []
        os.write(writer, b"first\nsec")
        async for lines in read_lines(reader, max_line_bytes=1000):
            seen.append(lines)
            if len(seen) == 1:
                os.write(writer, b"ond\n")
            else:
                os.close(writer)
        return seen

    try:
        assert asyncio.run(scenario()) == [[b"first"], [b"second"]]
    finally:
        os.close(reader)


def test_waiting_for_a_line_can_be_interrupted() -> None:
    reader, writer = os.pipe()

    async def scenario() -> None:
        async with asyncio.timeout(0.01):
            await collect(reader)

    try:
        with pytest.raises(TimeoutError):
            asyncio.run(scenario())
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("content", [b"x" * 11, b"x" * 11 + b"\n", b"ok\n" + b"x" * 11 + b"\n"])
def test_a_line_without_end_is_refused_instead_of_collected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "input").write_bytes(content)

    with open(tmp_path / "input", "rb") as file, pytest.raises(BatchTooLarge):
        asyncio.run(collect(file.fileno(), max_line_bytes=10))
