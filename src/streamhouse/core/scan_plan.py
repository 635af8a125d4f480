"""How a scan of many partitions is cut into tasks: by bytes, so that a large partition is many and small ones share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import UUID

LARGE_TASK_BYTES = 32 * 2**20
"""More than this is not gained by a larger task: its own cost has disappeared in the work."""
SMALL_TASK_BYTES = 4 * 2**20
"""Less than this is not worth a task of its own, even if a core is idle."""

# What it costs to ask for a piece at all, in bytes that could have been read meanwhile.
_REQUEST_BYTES = 2**18
# A task holds the piece that it decodes and the one that it fetches ahead.
_MAX_READ_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPiece:
    """Whole blocks of an object, bytes [start_byte, end_byte), of whose records [start, end) are wanted."""

    topic: str
    partition: int
    start: int
    end: int
    key: str
    start_byte: int
    end_byte: int
    url: str | None = None
    topic_id: UUID | None = None

    @property
    def size_bytes(self) -> int:
        return self.end_byte - self.start_byte


@dataclass(frozen=True, slots=True, kw_only=True)
class TailPiece:
    """Records [start, end) that were in no object yet when the scan was planned; their leader has them."""

    topic: str
    partition: int
    start: int
    end: int
    size_bytes: int
    topic_id: UUID | None = None


ScanPiece: TypeAlias = StoredPiece | TailPiece


def task_count(pieces: Sequence[ScanPiece], *, parallelism: int, min_tasks: int = 1) -> int:
    """As many as large tasks need, but enough for every core if they are not too small, and never below the minimum."""
    cost = sum(map(_cost, pieces))
    worthwhile = min(parallelism, _ceil_div(cost, SMALL_TASK_BYTES))
    return max(_ceil_div(cost, LARGE_TASK_BYTES), worthwhile, min_tasks)


def plan_tasks(pieces: Sequence[ScanPiece], *, count: int) -> list[tuple[ScanPiece, ...]]:
    """At most `count` tasks of about the same size, none empty. Neighbours stay together and become one read."""
    total = sum(map(_cost, pieces))
    if not total:
        return []
    cut = [part for piece in pieces for part in _split_tail(piece, max(1, total // count))]
    total = sum(map(_cost, cut))
    tasks: list[list[ScanPiece]] = [[] for _ in range(count)]
    before = 0
    for piece in cut:
        # The task in whose stretch of the total the piece's middle lies.
        middle = 2 * before + _cost(piece)
        tasks[min(count - 1, middle * count // (2 * total))].append(piece)
        before += _cost(piece)
    return [tuple(_join_neighbours(task)) for task in tasks if task]


def _cost(piece: ScanPiece) -> int:
    return piece.size_bytes + _REQUEST_BYTES


def _ceil_div(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _split_tail(piece: ScanPiece, task_bytes: int) -> Iterable[ScanPiece]:
    """A tail has no blocks that it must be cut at: any offset will do."""
    parts = min(_ceil_div(piece.size_bytes, max(task_bytes, _REQUEST_BYTES)), piece.end - piece.start)
    if isinstance(piece, StoredPiece) or parts <= 1:
        return [piece]
    offsets = [piece.start + (piece.end - piece.start) * part // parts for part in range(parts + 1)]
    return [
        replace(piece, start=offsets[part], end=offsets[part + 1], size_bytes=piece.size_bytes // parts)
        for part in range(parts)
    ]


def _join_neighbours(pieces: Iterable[ScanPiece]) -> list[ScanPiece]:
    joined: list[ScanPiece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if isinstance(last, StoredPiece) and isinstance(piece, StoredPiece) and _are_neighbours(last, piece):
            joined[-1] = replace(last, end=piece.end, end_byte=piece.end_byte)
        else:
            joined.append(piece)
    return joined


def _are_neighbours(first: StoredPiece, second: StoredPiece) -> bool:
    return (
        first.key == second.key
        and first.end_byte == second.start_byte
        and second.end_byte - first.start_byte <= _MAX_READ_BYTES
    )
