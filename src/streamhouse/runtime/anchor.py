"""A file or directory known by what it is and not by its name, so that it is missed when it is removed or replaced."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)


class Anchor:
    def __init__(self, path: Path | str) -> None:
        """OSError if there is nothing to be missed."""
        self.path = Path(path)
        self._identity = _identity(os.stat(path))

    @property
    def is_there(self) -> bool:
        """As far as is known: what cannot be looked at just now is not gone for that."""
        try:
            return _identity(os.stat(self.path)) == self._identity
        except OSError as problem:
            return problem.errno not in _GONE


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino
