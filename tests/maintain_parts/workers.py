"""The Python workers of a Spark driver that a test started, to be killed where they are."""

from __future__ import annotations

from pathlib import Path

import psutil

_DAEMON = "pyspark.daemon"


def kill9_workers() -> int:
    """Those of the drivers that this test started; returns how many. The daemons that start new ones are left."""
    drivers = [child for child in psutil.Process().children() if _runs_a_driver(child)]
    workers = [
        process
        for driver in drivers
        for process in driver.children(recursive=True)
        if _is_daemon(process) and (parent := process.parent()) is not None and _is_daemon(parent)
    ]
    for worker in workers:
        worker.kill()
    return len(workers)


def _runs_a_driver(process: psutil.Process) -> bool:
    return any(Path(argument).name == "driver.py" for argument in process.cmdline())


def _is_daemon(process: psutil.Process) -> bool:
    try:
        return _DAEMON in process.cmdline()
    except psutil.NoSuchProcess:
        return False
