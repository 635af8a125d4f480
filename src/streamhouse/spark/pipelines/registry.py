"""Which pipelines run on this machine, and how they are: a file for each in a directory, and a lock that its run holds.

The lock is the truth: it ends with the process, however that ends, so that a file left by a crash deceives nobody."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from streamhouse.model.errors import AlreadyExists, InvalidInput, NotFound, Unavailable
from streamhouse.runtime.clock import SystemClock
from streamhouse.runtime.pause import pause_ms

STATE_VARIABLE = "STREAMHOUSE_STATE_DIR"

RUNNING = "running"
ENDED = "ended"
FAILED = "failed"
DIED = "died"
SILENT = "silent"
UNKNOWN = "unknown"

HEARTBEAT_MS = 5_000
"""A run writes its record that often, whether there is something new or not."""
SILENT_AFTER_MS = 30_000
_STARTING_MS = 300_000
"""Until its queries run, Spark is started, which may take minutes, and nothing is written."""

_ASK_EVERY_MS = 50
# Who only looks whether a pipeline runs holds its lock for a moment as well.
_LOCK_PATIENCE_MS = 2000


class QueryState(msgspec.Struct, frozen=True, kw_only=True):
    """One sink's query, or the dead letters'; `total_rows` and `total_late_rows` are of this run."""

    query: str
    guarantee: str
    batch_id: int | None = None
    at: str | None = None
    rows_per_second: float = 0.0
    batch_ms: int = 0
    watermark: str | None = None
    state_rows: int = 0
    lag: dict[str, int] = {}
    input_rows: int = 0
    output_rows: int = 0
    late_rows: int = 0


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a pipeline's last run; `state` is one of running, ended, failed, died, and silent: its process
    is there and has written nothing since `updated_at_ms`, as one that is paused or hangs. It is unknown if another
    version wrote one that this does not have."""

    name: str
    file: str
    master: str
    pid: int
    started_at_ms: int
    updated_at_ms: int
    state: str = RUNNING
    error: str | None = None
    dead_letters: int = 0
    dead_letter_topic: str | None = None
    queries: list[QueryState] = []


def state_directory(variables: Mapping[str, str]) -> Path:
    base = variables.get(STATE_VARIABLE)
    return (Path(base) if base else Path.home() / ".streamhouse") / "pipelines"


class Registry:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def register(self, name: str) -> Registration:
        """AlreadyExists if it runs already: two runs would write over each other's checkpoint."""
        self._directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._lock_path(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        clock = SystemClock()
        deadline_ms = clock.monotonic_ms() + _LOCK_PATIENCE_MS
        while not _try_lock(lock, fcntl.LOCK_EX):
            if clock.monotonic_ms() > deadline_ms:
                os.close(lock)
                raise AlreadyExists(
                    f"pipeline {name!r} runs already", hint=f"`streamhouse pipeline stop {name}` ends it"
                )
            pause_ms(_ASK_EVERY_MS)
        return Registration(self._record_path(name), lock)

    def records(self) -> list[RunRecord]:
        """By name, of those that can be read."""
        names = sorted(path.stem for path in self._directory.glob("*.json"))
        return [record for record in map(self._read, names) if record is not None]

    def find(self, name: str) -> RunRecord:
        record = self._read(name) if "/" not in name else None
        if record is None:
            known = ", ".join(record.name for record in self.records())
            hint = f"there are {known}" if known else "`streamhouse pipeline run FILE` starts one"
            raise NotFound(f"there is no pipeline {name!r}", hint=hint)
        return record

    def stop(self, name: str, *, timeout_ms: int) -> bool:
        """Ask it to stop and wait until it has; False if it did not run."""
        record = self.find(name)
        if record.state not in (RUNNING, SILENT):
            return False
        if self._is_running(name) is None:
            raise InvalidInput(f"pipeline {name!r} is another user's", hint="stop it as the user who runs it")
        # The lock is held, so the process that wrote this number lives.
        os.kill(record.pid, signal.SIGTERM)
        clock = SystemClock()
        deadline_ms = clock.monotonic_ms() + timeout_ms
        while self._is_running(name):
            if clock.monotonic_ms() > deadline_ms:
                raise Unavailable(
                    f"pipeline {name!r}, process {record.pid}, is still running",
                    hint="wait, or give a longer --timeout",
                )
            pause_ms(_ASK_EVERY_MS)
        return True

    def _read(self, name: str) -> RunRecord | None:
        is_running = self._is_running(name)
        try:
            record = msgspec.json.decode(self._record_path(name).read_bytes(), type=RunRecord)
        except (OSError, UnicodeDecodeError, msgspec.DecodeError):
            return None
        if record.state in (ENDED, FAILED):
            return record
        if record.state != RUNNING:
            return msgspec.structs.replace(record, state=UNKNOWN)
        if is_running is False:
            return msgspec.structs.replace(record, state=DIED)
        patience_ms = SILENT_AFTER_MS if record.queries else _STARTING_MS
        if SystemClock().now_ms() - record.updated_at_ms > patience_ms:
            return msgspec.structs.replace(record, state=SILENT)
        return record

    def _is_running(self, name: str) -> bool | None:
        """None where the lock cannot be looked at, as that of another user: nothing says that the run has ended then,
        and what it writes tells whether it is silent."""
        try:
            lock = os.open(self._lock_path(name), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError:
            return None
        try:
            return not _try_lock(lock, fcntl.LOCK_SH)
        finally:
            os.close(lock)

    def _record_path(self, name: str) -> Path:
        return self._directory / f"{name}.json"

    def _lock_path(self, name: str) -> Path:
        return self._directory / f"{name}.lock"


class Registration:
    """A run's own entry, for as long as it is open."""

    def __init__(self, path: Path, lock: int) -> None:
        self._path = path
        self._lock = lock

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        os.close(self._lock)

    def write(self, record: RunRecord) -> None:
        """Whole or not at all, for those who read it at this moment."""
        new = self._path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(record))
        os.replace(new, self._path)


def _try_lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
