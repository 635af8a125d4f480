"""Where the pages are read: a machine with one node, PostgreSQL, S3 and Spark, the checkout's own commands, and a
reader at a terminal.

The node is the one of the README: `streamhouse serve` and nothing else, on one directory, so that what a page does is
there for the pages behind it. What else a page starts ends with its block, or with the page where that says so, and the
node comes back."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from node.process import clean_environment
from node.wait import eventually
from page_parts.blocks import REPOSITORY
from page_parts.namespace import Namespace, namespace
from page_parts.services import ENVIRONMENT
from page_parts.shell import SECONDS, Shell, Started
from page_parts.transcripts import Command
from services.process import start_process

TESTS = REPOSITORY / "tests"
PLAIN = Command(place="the node", text="streamhouse serve")
_READY = re.compile(r"^ready .*\n", re.MULTILINE)
_DATABASE = re.compile(r"postgresql://\S+")
_ERRORS_SHOWN = 4000
_SHIM = """#!/bin/sh
case "$1" in pipeline | maintain) exec {python} {client} "$@" ;; esac
exec {streamhouse} "$@"
"""


class PageFailed(AssertionError):
    """Says where, what was run and what came of it."""

    def __init__(self, place: str, command: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}\n    {command.replace(chr(10), chr(10) + '    ')}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One that runs, and the command of the page that started it."""

    command: Command
    started: Started

    @property
    def is_plain(self) -> bool:
        return bare(self.command.text) == PLAIN.text


def bare(text: str) -> str:
    return text.removesuffix("&").strip().removeprefix(".venv/bin/")


class World:
    """`directory` is the one in which all pages are read."""

    def __init__(self, root: Path, machine: Namespace, ending: ExitStack) -> None:
        self._root = root
        self._ending = ending
        self.machine = machine
        self.directory = root / "streamhouse"
        self._make_checkout()
        self._services: dict[str, str] | None = None
        self._spark: Path | None = None
        self._servers: list[Server] = []
        self._own_shell = ending.enter_context(self.shell())

    # -- what pages need ------------------------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        """A terminal's, with keys for S3 where there is one."""
        inherited = {name: value for name, value in clean_environment().items() if not name.lower().endswith("_proxy")}
        return {
            **inherited,
            "PATH": f"{self.directory / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self._root),
            "CURL_HOME": str(self._root),
            "PAGES_SPARK": str(self._root / "spark"),
            **(self._services or {}),
        }

    def shell(self) -> Shell:
        return Shell(self.machine.wrapper, self.directory, self.environment())

    def need_services(self) -> None:
        """PostgreSQL and S3, from now on."""
        if self._services is None:
            self._start_module("page_parts.services", self._root, ready=self._root / ENVIRONMENT)
            lines = (self._root / ENVIRONMENT).read_text().splitlines()
            self._services = dict(line.removeprefix("export ").split("=", 1) for line in lines)

    def need_spark(self) -> None:
        """It starts while the page is read."""
        if self._spark is None:
            self.need_services()
            self._spark = self._root / "spark"
            self._start_module("page_parts.spark_server", self._spark, ready=self._spark)

    def said_by_spark(self) -> str:
        """What it wrote on its own account, and not for who asked."""
        log = self._root / "page_parts.spark_server.log"
        return log.read_text(errors="replace")[-_ERRORS_SHOWN:] if log.exists() else ""

    @property
    def metadata_url(self) -> str | None:
        """Of the database that a server of the page uses; None while it is the node alone that runs."""
        named = [_DATABASE.search(server.command.text) for server in self._servers]
        return next((found[0] for found in named if found), None)

    # -- servers --------------------------------------------------------------------------------------------------

    def serve(self, command: Command, shell: Shell | None = None) -> Started:
        """Started and ready; what is at its port ends before."""
        self.make_room(command)
        started = (shell or self._own_shell).start(command.text, separate=True)
        with suppress(AssertionError):
            eventually(lambda: _READY.search(started.output) or not started.is_running, "ready", timeout=SECONDS)
        if not _READY.search(started.output):
            raise PageFailed(command.place, command.text, f"is not ready\n{started.output}\n{_last(started.errors)}")
        self._servers.append(Server(command=command, started=started))
        return started

    def make_room(self, command: Command) -> None:
        """For one that serves."""
        for server in [server for server in self._servers if server.command.kafka_port == command.kafka_port]:
            self._stop(server)

    def stop(self, started: Started) -> None:
        self._stop(next(server for server in self._servers if server.started is started))

    def back_to_the_node(self) -> None:
        """Nothing else runs."""
        for server in [server for server in self._servers if not server.is_plain]:
            self._stop(server)
        if not self._servers:
            self.serve(PLAIN)

    def _stop(self, server: Server) -> None:
        """It drains, and nothing is wrong with that, unless a page has killed it."""
        self._servers.remove(server)
        if not server.started.is_running:
            return
        code = server.started.end("TERM")
        if code != 0:
            problem = f"ended with {code} when it was stopped\n{_last(server.started.errors)}"
            raise PageFailed(server.command.place, server.command.text, problem)

    # -- making it ------------------------------------------------------------------------------------------------

    def _make_checkout(self) -> None:
        """What a reader has after `make setup`, without what pages do not touch."""
        self.directory.mkdir()
        # A reader sees a refusal in the answer; by itself curl ends with 0 all the same.
        (self._root / ".curlrc").write_text("fail-with-body\n")
        shutil.copytree(REPOSITORY / "examples", self.directory / "examples")
        prefix, binaries = Path(sys.prefix), self.directory / ".venv" / "bin"
        binaries.mkdir(parents=True)
        for name in ("lib", "pyvenv.cfg"):
            (binaries.parent / name).symlink_to(prefix / name)
        for file in (prefix / "bin").iterdir():
            if file.name != "streamhouse":
                (binaries / file.name).symlink_to(file)
        shim = binaries / "streamhouse"
        client = TESTS / "page_parts" / "spark_client.py"
        shim.write_text(_SHIM.format(python=sys.executable, client=client, streamhouse=prefix / "bin" / "streamhouse"))
        shim.chmod(shim.stat().st_mode | stat.S_IXUSR)

    def _start_module(self, module: str, argument: Path, *, ready: Path) -> None:
        environment = {**self.environment(), "PYTHONPATH": str(TESTS), "TMPDIR": str(self._root)}
        variables = [f"{name}={value}" for name, value in environment.items()]
        process = start_process(
            [*self.machine.wrapper, "env", "-i", *variables, sys.executable, "-m", module, str(argument)],
            log=self._root / f"{module}.log",
            ready=ready.exists,
        )
        self._ending.callback(subprocess.Popen.wait, process)
        self._ending.callback(subprocess.Popen.kill, process)


@contextmanager
def world() -> Iterator[World]:
    # Others than root must get to what is theirs: PostgreSQL runs as nobody.
    root = Path(tempfile.mkdtemp(prefix="pages-"))
    root.chmod(0o711)
    try:
        with ExitStack() as ending:
            yield World(root, ending.enter_context(namespace(root)), ending)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _last(errors: str) -> str:
    return errors[-_ERRORS_SHOWN:]
