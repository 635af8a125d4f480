"""What went wrong in a query, out of the many lines in which Spark says it, as a kind of the error tree."""

from __future__ import annotations

import re

from streamhouse.model import errors
from streamhouse.model.errors import StreamHouseError, Unavailable

_PREAMBLE = re.compile(r".*?terminated with exception: ", re.DOTALL)
_CONDITION = re.compile(r"^\[[A-Z_.]+\]\s*")
# What follows is where the query was, and its plan.
_PLAN = "=== Streaming Query ==="
_TRACEBACK = "Traceback (most recent call last):"
# The last line of a traceback: an exception's name, with or without its module, and what it says.
_RAISED = re.compile(r"^(?:[\w.]+\.)?([A-Z]\w+): (.+)$", re.MULTILINE)
_LONGEST = 500
_LATE_START = "Python worker failed to connect back"


def as_error(query: str, exception: Exception) -> StreamHouseError:
    """The kind tells whether it may go better another time."""
    name, message = _raised(exception)
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, StreamHouseError):
        return kind(f"{query}: {message}")
    return Unavailable(f"{query}: {name}: {message}" if name else f"{query}: {message}")


def is_late_start(error: StreamHouseError) -> bool:
    """A Python process of the query took longer to start than Spark waits, which no setting changes."""
    return _LATE_START in str(error)


def _raised(exception: Exception) -> tuple[str, str]:
    """The name of what a Python process raised, if one did, and one line that says why."""
    text = str(exception).partition(_PLAN)[0]
    if _TRACEBACK in text:
        raised = _RAISED.findall(text[text.rindex(_TRACEBACK) :])
        if raised:
            return raised[-1][0], _one_line(raised[-1][1])
    return "", _one_line(_CONDITION.sub("", _PREAMBLE.sub("", text, count=1)))


def _one_line(text: str) -> str:
    return re.sub(r"\s*SQLSTATE: \w+\s*", " ", text.split("\n\n")[0].split("\n")[0]).strip()[:_LONGEST]
