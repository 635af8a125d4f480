"""A look into a node's SQLite database from outside, also while the node runs: nothing is written, and no file is made.

SQLite's own read-only mode is not enough for that: it makes the files beside a database that was closed, and writes to
the shared index of one that is open. So a database that is in use, or was when its node was killed, is read with its
write-ahead log and without touching the index; one that was closed, as a file that nobody changes, which is looked at
again behind each read. Every read is one short transaction on a connection of its own, since a long one would keep the
node's log from being cleared."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from streamhouse.metadata.sqlite.database import our_errors
from streamhouse.model.errors import MetadataUnavailable, NotFound

T = TypeVar("T")

_TRIES = 20
_BUSY_TIMEOUT_SECONDS = 5.0
_IN_USE = "mode=ro&readonly_shm=1"
_AT_REST = "mode=ro&immutable=1"
_UNFINISHED = "if no node runs there, and the file ending in -shm is gone, start a node there once"
_ELSEWHERE = "a node with --metadata elsewhere has none; ask it through one of its ports"


class DatabaseReader:
    def __init__(self, path: Path) -> None:
        self._path = path
        _state_of(path)

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on one snapshot."""
        problem = "it was opened and closed all the time"
        for _ in range(_TRIES):
            before = _state_of(self._path)
            try:
                result = self._transact(_AT_REST if before.is_at_rest else _IN_USE, work)
            except MetadataUnavailable as found:
                problem = found.message  # it may just be opened or closed
                continue
            if not before.is_at_rest or _state_of(self._path) == before:
                return result
        raise MetadataUnavailable(f"cannot read {str(self._path)!r}: {problem}", hint=_UNFINISHED)

    def _transact(self, mode: str, work: Callable[[sqlite3.Connection], T]) -> T:
        with our_errors(str(self._path)):
            uri = f"file:{quote(str(self._path))}?{mode}"
            connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_SECONDS, isolation_level=None)
            with closing(connection):
                connection.execute("BEGIN")
                result = work(connection)
                connection.execute("COMMIT")
        return result


class _FileState(NamedTuple):
    """What tells one state of the files from another. They are never opened here: to close a file of a database that
    this process has open as well would give up its locks."""

    inode: int
    modified_ns: int
    size_bytes: int
    log_bytes: int

    @property
    def is_at_rest(self) -> bool:
        """Nothing is in the write-ahead log: whoever has the database open has written nothing yet."""
        return self.log_bytes == 0


def _state_of(path: Path) -> _FileState:
    try:
        main = os.stat(path)
    except FileNotFoundError:
        raise NotFound(f"there is no metadata database {str(path)!r}", hint=_ELSEWHERE) from None
    except OSError as problem:
        raise MetadataUnavailable(f"cannot look at {str(path)!r}: {problem.strerror}") from problem
    try:
        log_bytes = os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        log_bytes = 0
    return _FileState(main.st_ino, main.st_mtime_ns, main.st_size, log_bytes)
