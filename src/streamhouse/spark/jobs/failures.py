"""What Spark raises, as our errors: the last thing that a worker said is what matters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from streamhouse.model import errors

_SHOWN_CHARACTERS = 300
_OURS = re.compile(r"^streamhouse\.model\.errors\.(?P<kind>\w+): (?P<message>.*)$", re.MULTILINE)


@contextmanager
def spark_errors() -> Iterator[None]:
    """A task is tried several times before Spark gives up, and the error of the last try is told as text."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _as_ours(str(error)) from error


def _as_ours(text: str) -> errors.StreamHouseError:
    found = _OURS.search(text)
    kind = getattr(errors, found["kind"], None) if found else None
    if found and isinstance(kind, type) and issubclass(kind, errors.StreamHouseError):
        return kind(found["message"])
    return errors.Unavailable(
        f"Spark gave up: {_reason(text)}", hint="run the same command again: what is done is not done twice"
    )


def _reason(text: str) -> str:
    """A worker's traceback ends with the exception; the JVM's own follows, and says nothing new."""
    own = [line for line in text.partition("\n\tat ")[0].splitlines() if line.strip()]
    raised = [line for line in own if not line[0].isspace() and ": " in line]
    return (raised or own or ["without a reason"])[-1][:_SHOWN_CHARACTERS]
