"""A Spark cluster of one master and a worker on each of several addresses of this machine, which Spark takes for hosts.

Speculation needs that: Spark never starts a second attempt of a task on the host that has the first."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pyspark

from node.wait import eventually
from services.ports import free_port
from spark_parts.session import session_conf

START_SECONDS = 240.0
_LOOPBACK = "127.0.0.1"
_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


@contextmanager
def standalone(directory: Path, hosts: Sequence[str]) -> Iterator[str]:
    """The master's URL. A worker has one core, so that an executor has one task at a time."""
    port = free_port()
    url = f"spark://{_LOOPBACK}:{port}"
    processes = [_start(directory, "master.Master", "--host", _LOOPBACK, "--port", str(port))]
    try:
        eventually(lambda: _listens(port), "the master", timeout=START_SECONDS, pause=0.1)
        for host in hosts:
            options = ("--host", host, "--cores", "1", "--memory", "1g", "--work-dir", str(directory / host))
            processes.append(_start(directory, "worker.Worker", *options, url))
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def cluster_conf(directory: Path) -> dict[str, str]:
    """For a session on it: a driver on loopback, and small executors with what this process has."""
    return {
        **session_conf(str(directory / "warehouse")),
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
    }


def _start(directory: Path, main: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (directory / f"{main}.log").open("ab") as log:
        return subprocess.Popen(
            [str(_SPARK_CLASS), f"org.apache.spark.deploy.{main}", *arguments, "--webui-port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": _LOOPBACK},
        )


def _listens(port: int) -> bool:
    with suppress(OSError), closing(socket.create_connection((_LOOPBACK, port), timeout=1)):
        return True
    return False
