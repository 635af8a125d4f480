"""One bash for a page: directory and variables stay from command to command, as in a terminal."""

from __future__ import annotations

import selectors
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

SECONDS = 300.0
"""No command of a page takes this long unless it hangs."""


class Ended(NamedTuple):
    """`output` is what a terminal would have shown, of both streams."""

    code: int
    output: str


class Shell:
    def __init__(self, wrapper: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
        self._files = Path(tempfile.mkdtemp(prefix="shell-", dir=directory.parent))
        self._commands = 0
        with (self._files / "stderr").open("wb") as stderr:
            self._process = subprocess.Popen(
                [*wrapper, "env", "--default-signal=INT", "bash", "--norc", "--noprofile"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=dict(environment),
                text=True,
                start_new_session=True,
            )
        # -m: what runs in the background can be interrupted, as at a terminal.
        self.tell(f"set -m -o pipefail; cd {shlex.quote(str(directory))}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()

    def run(self, command: str) -> Ended:
        script, output = self._new_files(command)
        code = self._ask(f". {script} >{output} 2>&1 </dev/null; echo $?")
        return Ended(int(code), _text_of(output))

    def start(self, command: str, *, separate: bool) -> Started:
        """In the background. `separate`: stderr is not what is looked at."""
        bare = command.rstrip().removesuffix("&").rstrip()
        _, output = self._new_files("")
        errors = output.with_suffix(".err")
        to = f">{output} 2>{errors if separate else '&1'} </dev/null"
        # A simple command is the process itself; anything else needs a shell around it.
        whole = f"{bare} {to} &" if separate else f"{{ {bare}\n}} {to} &"
        script, _ = self._new_files(f"{whole}\n")
        return Started(self, self._ask(f". {script}; echo $!"), output, errors)

    def tell(self, script: str) -> None:
        """Of our own, which cannot fail."""
        self._ask(f"{script}; echo done")

    def _new_files(self, script: str) -> tuple[Path, Path]:
        self._commands += 1
        file = self._files / f"{self._commands}.sh"
        file.write_text(script + "\n")
        return file, file.with_suffix(".out")

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            assert selector.select(SECONDS), f"no end within {SECONDS:.0f} s"
        answer = self._process.stdout.readline()
        assert answer, f"the shell ended: {_text_of(self._files / 'stderr')}"
        return answer.strip()


class Started:
    """A command in the background."""

    def __init__(self, shell: Shell, pid: str, output: Path, errors: Path) -> None:
        self._shell = shell
        self._pid = pid
        self._output = output
        self._errors = errors

    @property
    def output(self) -> str:
        return _text_of(self._output)

    @property
    def errors(self) -> str:
        return _text_of(self._errors)

    @property
    def is_running(self) -> bool:
        return self._shell.run(f"kill -0 {self._pid}").code == 0

    def end(self, signal: str) -> int:
        """Of the process alone. Its exit code."""
        return self._end(f"kill -{signal} {self._pid}")

    def interrupt(self) -> int:
        """As Ctrl-C does: all that runs for the command."""
        return self._end(f"kill -INT -- -{self._pid}")

    def _end(self, kill: str) -> int:
        return int(self._shell.run(f"{kill} 2>/dev/null; wait {self._pid}").code)


def _text_of(file: Path) -> str:
    return file.read_text("utf-8", errors="replace") if file.exists() else ""
