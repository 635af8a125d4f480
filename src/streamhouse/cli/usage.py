"""Wrong usage, which ends with 2: whatever is refused before anything was asked or done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from streamhouse.model.errors import InvalidInput, NotFound


@contextmanager
def refusing_as_usage(option: str = "") -> Iterator[None]:
    """Around what reads arguments, and nothing else: a value that makes no sense, a file that is not there."""
    try:
        yield
    except (InvalidInput, NotFound) as problem:
        raise click.UsageError(f"{option}: {problem}" if option else str(problem)) from None
