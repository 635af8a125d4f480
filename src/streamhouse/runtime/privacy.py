"""Files that are nobody else's: other users of the machine can neither read nor list them."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

_log = logging.getLogger(__name__)

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private_directory(path: Path) -> None:
    """If it is not there. What is above it is made as the process makes directories."""
    path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)


def make_private_file(path: Path) -> None:
    """An empty one, if it is not there."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))


def warn_if_open_to_others(path: Path) -> None:
    """What is found is left as it is: somebody may want it so."""
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if mode & _OTHERS:
        wanted = DIRECTORY_MODE if path.is_dir() else FILE_MODE
        _log.warning("%s is open to other users of this machine (mode %o): `chmod %o` closes it", path, mode, wanted)
