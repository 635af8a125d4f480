"""A Spark driver in a process of its own, which can be stopped at a named point and killed there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from node.process import clean_environment
from node.wait import eventually
from spark_parts.session import S3_ENVIRONMENT, TESTS

START_SECONDS = 240.0
"""A session starts in 7 s on an idle machine; on one where eight others start theirs, it only must not hang."""

_OUTPUT_SHOWN = 6000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Stop whoever calls this function, before its call or after it: `module` "streamhouse.client.planning",
    `function` "PlanningClient.adopt". It goes for every Python process of the driver, its workers and planners too.

    The first `skip` calls pass; one call is held, and later ones pass."""

    name: str
    module: str
    function: str
    is_after: bool = False
    skip: int = 0


class Driver:
    """`with Driver(directory, script, holds=[...]) as driver:` runs Python text; `arguments` are its sys.argv[1:]."""

    def __init__(self, directory: Path, script: str, *arguments: str, holds: Sequence[Hold] = ()) -> None:
        self._points = Path(tempfile.mkdtemp(prefix="points-", dir=directory))
        self._output = self._points / "output"
        program = self._points / "driver.py"
        program.write_text(textwrap.dedent(script))
        environment = {
            **clean_environment(),
            **S3_ENVIRONMENT,
            "PYTHONPATH": os.pathsep.join([str(TESTS / "spark_parts" / "holding"), str(TESTS)]),
            "HOLD_POINTS": json.dumps([asdict(hold) for hold in holds]),
            "HOLD_DIRECTORY": str(self._points),
        }
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self._points,
                env=environment,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            error.add_note(f"output of the driver:\n{self.output()[-_OUTPUT_SHOWN:]}")
        self.kill9()

    def output(self) -> str:
        """What it and its workers printed, both streams."""
        return self._output.read_text(errors="replace")

    def wait_at(self, name: str, *, timeout: float = START_SECONDS) -> None:
        """Until somebody is held there."""
        eventually(lambda: self._is_at(name), f"the driver to reach {name}", timeout=timeout, pause=0.05)

    def _is_at(self, name: str) -> bool:
        reached = (self._points / f"{name}.reached").exists()
        assert reached or self._process.poll() is None, f"it ended before {name}:\n{self.output()[-_OUTPUT_SHOWN:]}"
        return reached

    def let_go(self, name: str) -> None:
        (self._points / f"{name}.go").touch()

    def kill9(self) -> None:
        """Driver, JVM and workers at once, as when their machine dies."""
        # Not the process group: PySpark's workers have one of their own.
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if self._is_ours(process):
                    process.kill()
        self._process.wait()

    def _is_ours(self, process: psutil.Process) -> bool:
        """In our session, and not just in one whose number has been ours."""
        with suppress(ProcessLookupError):
            in_session = os.getsid(process.pid) == self._process.pid
            return in_session and process.environ().get("HOLD_DIRECTORY") == str(self._points)
        return False

    def kill9_python(self) -> None:
        """Only the driver's Python: its JVM notices later, and may go on for a while."""
        self._process.kill()
        self._process.wait()

    def finish(self, *, expected_code: int = 0) -> str:
        """Its output, once it has ended, and with this exit code."""
        exit_code = self._process.wait(START_SECONDS)
        output = self.output()
        assert exit_code == expected_code, f"the driver exited with {exit_code}:\n{output[-_OUTPUT_SHOWN:]}"
        return output
