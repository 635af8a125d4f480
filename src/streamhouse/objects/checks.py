"""What every object store refuses before it does anything: keys, prefixes and ranges that make no sense."""

from __future__ import annotations

import re

from streamhouse.model.errors import InvalidInput

# The characters that a file system, a URL and S3 all carry unchanged; a part fits a file name, a key fits S3's limit
# of 1,024 bytes with room for a prefix.
_PART = re.compile(r"[A-Za-z0-9._=-]{1,255}")
_MAX_KEY_CHARACTERS = 900


def check_key(key: str) -> str:
    if len(key) > _MAX_KEY_CHARACTERS or not all(_is_part(part) for part in key.split("/")) or key.startswith("."):
        raise InvalidInput(
            f"{key[:300]!r} is not an object key",
            hint="use parts of letters, digits, '.', '_', '=' and '-', separated by '/'; the first may not be hidden",
        )
    return key


def check_prefix(prefix: str) -> str:
    """The prefix in the form that keys under it start with: empty, or ending in '/'."""
    path = prefix.removesuffix("/")
    return f"{check_key(path)}/" if path else ""


def check_range(start: int, end: int) -> None:
    if not 0 <= start <= end:
        raise InvalidInput(f"[{start}, {end}) is not a range of bytes")


def check_suffix(size_bytes: int) -> None:
    if size_bytes < 0:
        raise InvalidInput(f"{size_bytes} is not a number of bytes")


def _is_part(part: str) -> bool:
    return _PART.fullmatch(part) is not None and part not in (".", "..")
