"""The tests' own package of real servers, which is not installed: it is found beside this one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent / "tests"


class ServiceMissing(Exception):
    """A server cannot be started here; the message says why."""


def service_module(name: str) -> Any:
    if str(TESTS) not in sys.path:
        sys.path.append(str(TESTS))
    try:
        return importlib.import_module(f"services.{name}")
    except ImportError as error:
        raise ServiceMissing(f"not measured: the tests' servers are not there ({error})") from None


@contextmanager
def running(starting: AbstractContextManager[Any]) -> Iterator[Any]:
    """What cannot be started is missing; what goes wrong afterwards is something else."""
    try:
        service = starting.__enter__()
    except RuntimeError as error:
        raise ServiceMissing(f"not measured: {error}") from None
    try:
        yield service
    finally:
        starting.__exit__(None, None, None)
