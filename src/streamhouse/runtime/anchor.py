"""A file or directory known by what it is and not by its name, so that it is missed when it is removed or replaced."""

from __future__ import annotations

import os
from pathlib import Path


class Anchor:
    def __init__(self, path: Path | str) -> None:
        """OSError if there is nothing to be missed."""
        self.path = Path(path)
        self._identity = _identity(os.stat(path))

    @property
    def is_there(self) -> bool:
        try:
            return _identity(os.stat(self.path)) == self._identity
        except (FileNotFoundError, NotADirectoryError):
            return False


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino
