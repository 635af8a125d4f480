"""Paths and URLs of a pipeline's file: what is relative is relative to the file."""

from __future__ import annotations

from pathlib import Path


def place(text: str, directory: Path) -> str:
    """Absolute, unless it is a URL."""
    return text if "://" in text or not text else str((directory / text).absolute())


def local_path(text: str) -> Path | None:
    """None if it is not on this machine's disk."""
    if text.startswith("file://"):
        return Path(text.removeprefix("file://"))
    return None if "://" in text else Path(text)
