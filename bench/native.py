"""The programs in C: compiled when the benchmark starts, run as child processes that print one JSON object."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

SOURCES = Path(__file__).parent / "native"
PROGRAMS = ("sink", "requests", "exchange", "latency", "fetch", "lookup", "loopback")
HUNG_SECONDS = 300


class NativeFailed(Exception):
    """A program in C could not be compiled, or ended with an error."""


class Native:
    """Knows where the compiled programs are."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def build(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        for program in PROGRAMS:
            flags = ["-O2", "-Wall", "-Wextra", "-std=gnu11", "-pthread"]
            command = ["gcc", *flags, str(SOURCES / f"{program}.c"), "-o", str(self.path(program))]
            done = subprocess.run(command, capture_output=True, text=True, timeout=HUNG_SECONDS)
            if done.returncode:
                raise NativeFailed(f"gcc could not compile {program}.c:\n{done.stderr}")

    def path(self, program: str) -> Path:
        return self.directory / program

    def run(self, program: str, *arguments: object) -> dict[str, float]:
        return finished(self.start(program, *arguments))

    def start(self, program: str, *arguments: object) -> subprocess.Popen[str]:
        command = [str(self.path(program)), *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> dict[str, float]:
    """Waits for a started program and reads what it measured."""
    try:
        output, errors = process.communicate(timeout=HUNG_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise NativeFailed(f"{_shown(process)} did not end within {HUNG_SECONDS} s") from None
    if process.returncode:
        raise NativeFailed(f"{_shown(process)} ended with {process.returncode}: {last_lines(errors)}")
    measured: dict[str, float] = json.loads(output)
    return measured


def _shown(process: subprocess.Popen[str]) -> str:
    assert isinstance(process.args, list)
    return " ".join(map(str, process.args))


def last_lines(text: str, count: int = 3) -> str:
    """The end of a log, which is where the reason is, on one line."""
    return " | ".join(text.strip().splitlines()[-count:])
