"""What a WAL holds at a moment, for those who watch it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WalFileState:
    """`owner_count`: how many partitions have entries in it that are in no segment yet."""

    name: str
    size_bytes: int
    is_current: bool
    owner_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalWalState:
    """Files oldest first; `unsynced` is what was appended and is not known to be on disk. `problem` says why appends
    are refused, if they are."""

    files: tuple[WalFileState, ...]
    unsynced_batches: int
    unsynced_bytes: int
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WalObjectState:
    """An object on its way; its key is "" before its upload begins."""

    key: str
    size_bytes: int
    partition_count: int
    is_stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectWalState:
    """What waits for its object to be sealed, and the objects that are being stored and committed, oldest first."""

    gathered_batches: int
    gathered_bytes: int
    in_flight: tuple[WalObjectState, ...]
