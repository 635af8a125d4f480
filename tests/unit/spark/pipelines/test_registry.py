"""Which pipelines run: the lock says so, whatever a file that was left behind says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from node.wait import eventually
from streamhouse.model.errors import AlreadyExists, InvalidInput, NotFound
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.pipelines.registry import (
    DIED,
    ENDED,
    RUNNING,
    SILENT,
    SILENT_AFTER_MS,
    UNKNOWN,
    QueryState,
    Registry,
    RunRecord,
    state_directory,
)

_HOLDER = """
import os, signal, sys, threading
from pathlib import Path
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.pipelines.registry import Registry, RunRecord
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
with Registry(Path(sys.argv[1])).register("held") as registration:
    now_ms = SystemClock().now_ms()
    registration.write(
        RunRecord(name="held", file="f", master="local", pid=os.getpid(), started_at_ms=1, updated_at_ms=now_ms)
    )
    stop.wait()
"""


def record(state: str = RUNNING, *, age_ms: int = 0, has_begun: bool = False) -> RunRecord:
    return RunRecord(
        name="revenue",
        file="f.yaml",
        master="local",
        pid=os.getpid(),
        started_at_ms=1,
        updated_at_ms=SystemClock().now_ms() - age_ms,
        state=state,
        queries=[QueryState(query="sums", guarantee="exactly once")] if has_begun else [],
    )


def test_a_run_is_listed_while_it_holds_its_lock_and_has_died_if_it_let_go_unsaid(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "pipelines")
    assert registry.records() == []

    with registry.register("revenue") as registration:
        registration.write(record())
        assert [(one.name, one.state) for one in registry.records()] == [("revenue", RUNNING)]
    assert registry.find("revenue").state == DIED


def test_a_run_that_said_how_it_ended_has_ended(tmp_path: Path) -> None:
    registry = Registry(tmp_path)

    with registry.register("revenue") as registration:
        registration.write(record())
        registration.write(record(ENDED))

    assert registry.find("revenue").state == ENDED
    assert not registry.stop("revenue", timeout_ms=0), "it does not run"


def test_a_run_that_has_written_nothing_for_long_is_silent_and_not_running(tmp_path: Path) -> None:
    registry = Registry(tmp_path)

    with registry.register("revenue") as registration:
        registration.write(record(age_ms=SILENT_AFTER_MS + 1, has_begun=True))
        assert registry.find("revenue").state == SILENT
        registration.write(record(age_ms=SILENT_AFTER_MS + 1))
        assert registry.find("revenue").state == RUNNING, "Spark takes its time to start"
        registration.write(record(has_begun=True))
        assert registry.find("revenue").state == RUNNING
        registration.write(record(age_ms=SILENT_AFTER_MS + 1, has_begun=True))
    assert registry.find("revenue").state == DIED


def test_a_pipeline_runs_once(tmp_path: Path) -> None:
    registry = Registry(tmp_path)

    with registry.register("revenue"), pytest.raises(AlreadyExists, match="runs already"):
        registry.register("revenue")

    with registry.register("revenue"):
        pass


def test_what_nobody_ran_is_not_found_and_the_others_are_named(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    with registry.register("revenue") as registration:
        registration.write(record())

    with pytest.raises(NotFound, match="there are revenue"):
        registry.find("revenu")
    with pytest.raises(NotFound):
        registry.find("../revenue")


def test_stop_ends_the_process_that_holds_the_lock_and_a_killed_one_has_died(tmp_path: Path) -> None:
    registry = Registry(tmp_path)

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", _HOLDER, str(tmp_path)])
        eventually(
            lambda: [one.pid for one in registry.records() if one.state == RUNNING] == [process.pid], "its entry"
        )
        return process

    process = start()
    assert registry.stop("held", timeout_ms=60_000)
    assert process.wait() == 0

    process = start()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert registry.find("held").state == DIED


def test_a_file_that_is_no_record_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text('{"name": "ha')
    (tmp_path / "latin.json").write_bytes(b'{"name": "caf\xe9"}')
    (tmp_path / "directory.json").mkdir()

    registry = Registry(tmp_path)
    with registry.register("revenue") as registration:
        registration.write(record())
        assert [one.name for one in registry.records()] == ["revenue"]


def test_a_state_of_another_version_is_unknown(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    with registry.register("revenue") as registration:
        registration.write(record("suspended"))

    assert registry.find("revenue").state == UNKNOWN


def test_a_run_whose_lock_cannot_be_looked_at_goes_by_what_it_writes(tmp_path: Path) -> None:
    """As that of another user; a directory refuses whoever runs the tests."""
    registry = Registry(tmp_path)
    with registry.register("revenue") as registration:
        registration.write(record(has_begun=True))
        (tmp_path / "revenue.lock").unlink()
        (tmp_path / "revenue.lock").mkdir()
        with pytest.raises(InvalidInput, match="another user's"):
            registry.stop("revenue", timeout_ms=0)
        assert registry.find("revenue").state == RUNNING
        registration.write(record(age_ms=SILENT_AFTER_MS + 1, has_begun=True))
        assert registry.find("revenue").state == SILENT


def test_the_directory_is_the_variables_or_the_users_own() -> None:
    assert state_directory({"STREAMHOUSE_STATE_DIR": "/state"}) == Path("/state/pipelines")
    assert state_directory({}) == Path.home() / ".streamhouse" / "pipelines"
