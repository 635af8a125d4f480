"""`python -m page_parts.spark_server SOCKET`: runs all that needs Spark in one process, one request after the other.

Java takes longer to start than most of what the pages do with Spark, and two cores have no room for many of it. So the
first that needs it starts it, and it stays. `page_parts.spark_client` hands a command of the terminal over, with its
directory, variables and streams."""

from __future__ import annotations

import json
import os
import socket
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_parts.session import QUICK_JAVA
from streamhouse.cli.main import run
from streamhouse.spark.session import open_session

CHECKOUT = "streamhouse"
"""The directory in which pages are read, beside the socket."""

REQUEST_BYTES = 1 << 20
_STREAMS = (1, 2)


def main(path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    # Java has what it is started with for good: its directory, that of the pages, and options for a run of seconds.
    os.chdir(path.with_name(CHECKOUT))
    open_session("pages", master="local[2]", conf={"spark.driver.extraJavaOptions": QUICK_JAVA})
    names: dict[str, dict[str, Any]] = {}
    while True:
        connection, _ = listener.accept()
        with connection:
            request, streams, _, _ = socket.recv_fds(connection, REQUEST_BYTES, len(_STREAMS))
            asked = json.loads(request)
            with _as_asked(asked["directory"], asked["environment"], streams):
                if "program" in asked:
                    page = asked["page"]
                    if not asked["goes_on"] or page not in names:
                        names[page] = {"__name__": "__main__"}
                    code = _run_program(asked["program"], names[page])
                else:
                    _stop_session()
                    code = run(asked["arguments"])
            connection.sendall(b"%d\n" % code)


def _stop_session() -> None:
    """A command has one of its own."""
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


def _run_program(file: str, names: dict[str, Any]) -> int:
    """Its names stay for the next program of the page, if that goes on from it."""
    try:
        exec(compile(Path(file).read_text("utf-8"), file, "exec"), names)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


@contextmanager
def _as_asked(directory: str, environment: Mapping[str, str], streams: list[int]) -> Iterator[None]:
    own = [os.dup(stream) for stream in _STREAMS]
    before = dict(os.environ)
    for stream, asked in zip(_STREAMS, streams, strict=True):
        os.dup2(asked, stream)
        os.close(asked)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.environ.clear()
        os.environ.update(before)
        for stream, mine in zip(_STREAMS, own, strict=True):
            os.dup2(mine, stream)
            os.close(mine)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
