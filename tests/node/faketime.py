"""The wall clock of a node, moved by libfaketime while it runs."""

from __future__ import annotations

import os
from pathlib import Path


class Clock:
    """The wall clock of a node, which libfaketime moves while it runs. Its monotonic clock is left alone."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "clock"
        self.jump(0)

    def jump(self, seconds: int) -> None:
        """To so many seconds off the true time."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}")
        os.replace(new, self._file)

    @property
    def env(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(libfaketime()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",  # it reads the file again after a second
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }


def libfaketime() -> Path:
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    assert found, "libfaketime is missing: run tools/install_debian_packages.sh"
    return found[0]
