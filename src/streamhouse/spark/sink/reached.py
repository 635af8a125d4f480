"""Whether a stream has reached its node before: Spark makes its writer anew for every micro-batch and every commit, in
Python processes that come and go, and the scratch directory of the application is what stays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import Unavailable
from streamhouse.spark.connections import first_client, planning_client
from streamhouse.spark.options import Options

_SCRATCH_DIRECTORIES = "SPARK_LOCAL_DIRS"
_OF_A_STREAM = ("checkpointLocation", "queryName", "topic")


@contextmanager
def client_of_stream(endpoint: str, options: Mapping[str, str]) -> Iterator[PlanningClient]:
    """A node that this application's stream has reached, and that is started anew, is waited for. That nobody answers
    whom it never reached is told in seconds."""
    mark = _mark(endpoint, Options(options))
    client = planning_client(endpoint) if mark is not None and mark.exists() else first_client(endpoint)
    try:
        yield client
    except Unavailable:
        # The query ends with that. Who begins it again has not reached anybody.
        _change(mark, is_reached=False)
        raise
    _change(mark, is_reached=True)


def _mark(endpoint: str, options: Options) -> Path | None:
    """Spark removes the directory when the application ends."""
    scratch = os.environ.get(_SCRATCH_DIRECTORIES, "").partition(",")[0]
    told_apart = (endpoint, *map(options.text, _OF_A_STREAM))
    name = sha256("\n".join(told_apart).encode()).hexdigest()
    return Path(scratch, f"streamhouse-reached-{name}") if scratch else None


def _change(mark: Path | None, *, is_reached: bool) -> None:
    if mark is None:
        return
    with suppress(OSError):  # a full disk costs patience, and not the query
        if is_reached:
            mark.touch()
        else:
            mark.unlink(missing_ok=True)
