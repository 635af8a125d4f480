"""A real PostgreSQL server: the one that $TEST_PG_DSN names, or one of our own from the system's binaries."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg

from services.ports import free_port
from services.process import start_process, stop_process, unprivileged_user

_USER = "streamhouse"
PASSWORD = "s3cret-of-the-tests"


class PostgresServer:
    """Databases come and go on it. One that we started ourselves can be stopped, crashed and started again."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def dsn(self, database: str) -> str:
        return urlsplit(self._dsn)._replace(path=f"/{database}").geturl()

    def create_database(self) -> str:
        """The DSN of a new, empty one."""
        name = f"test_{uuid4().hex}"
        self._execute(f"CREATE DATABASE {name}")
        return self.dsn(name)

    def drop_database(self, dsn: str) -> None:
        self._execute(f"DROP DATABASE IF EXISTS {urlsplit(dsn).path.removeprefix('/')} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        async def run() -> None:
            connection = await asyncpg.connect(self._dsn)
            try:
                await connection.execute(statement)
            finally:
                await connection.close()

        # On a thread of its own, so that a test may call this while its own loop runs.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, run()).result()


class OwnPostgresServer(PostgresServer):
    """Keeps its data and its port across `stop` and `start`."""

    def __init__(self, directory: Path, port: int | None = None) -> None:
        self.port = free_port() if port is None else port
        super().__init__(f"postgresql://{_USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres")
        self._directory = directory
        self._binaries = _find_binaries()
        self._process: subprocess.Popen[bytes] | None = None

    def initialise(self) -> None:
        user = unprivileged_user()
        password = self._directory / "password"
        password.write_text(PASSWORD)
        if user is not None:
            # It refuses to run as root, so all of this must be the other user's.
            for path in (self._directory, password):
                os.chown(path, user, user)
        command = [
            self._binaries / "initdb",
            f"--pgdata={self._directory / 'data'}",
            f"--username={_USER}",
            f"--pwfile={password}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            cwd=self._directory,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        if done.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{done.stderr.decode(errors='replace')}")

    def start(self) -> None:
        assert self._process is None, "already running"
        command = [
            self._binaries / "postgres",
            "-D",
            self._directory / "data",
            "-k",
            self._directory,
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-c",
            "max_connections=200",
        ]
        self._process = start_process(
            command, log=self._directory / "postgres.log", ready=self._is_ready, user=unprivileged_user()
        )

    def stop(self) -> None:
        """Orderly: clients are disconnected, what is committed is on disk."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """As when its machine dies; it recovers at the next start."""
        self._end(signal.SIGQUIT)

    def log(self) -> str:
        return (self._directory / "postgres.log").read_text(errors="replace")

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            stop_process(self._process, how)
            self._process = None

    def _is_ready(self) -> bool:
        command = [self._binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command).returncode == 0


@contextmanager
def own_postgres_server() -> Iterator[OwnPostgresServer]:
    """For tests that stop it: nobody else uses this one."""
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))
    server = OwnPostgresServer(directory)
    try:
        server.initialise()
        server.start()
        yield server
    finally:
        server.crash()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    given = os.environ.get("TEST_PG_DSN")
    if given:
        yield PostgresServer(given)
    else:
        with own_postgres_server() as server:
            yield server


def _find_binaries() -> Path:
    """Debian keeps each version's in a directory of its own, off the PATH; the newest is taken."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[4]))
    on_path = shutil.which("postgres")
    if not found and on_path is None:
        raise RuntimeError("no PostgreSQL: run tools/install_debian_packages.sh, or set TEST_PG_DSN")
    return found[-1].parent if found else Path(str(on_path)).resolve().parent
