"""What somebody probably meant who wrote a name that there is none of."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_CHARACTERS = 250
_MOST_NAMES = 10_000


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name most like it, if one is like it at all; capitals make no difference."""
    by_folded = {known.casefold(): known for _, known in zip(range(_MOST_NAMES), names, strict=False)}
    found = get_close_matches(name[:_MOST_CHARACTERS].casefold(), by_folded, n=1, cutoff=0.65)
    return by_folded[found[0]] if found else None
