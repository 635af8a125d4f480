"""What somebody probably meant who wrote a name that there is none of."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from streamhouse.model.errors import NotFound

_MOST_CHARACTERS = 250
_MOST_NAMES = 10_000


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name most like it, if one is like it at all; capitals make no difference."""
    by_folded = {known.casefold(): known for _, known in zip(range(_MOST_NAMES), names, strict=False)}
    found = get_close_matches(name[:_MOST_CHARACTERS].casefold(), by_folded, n=1, cutoff=0.65)
    return by_folded[found[0]] if found else None


def no_such_topic(name: str, names: Iterable[str]) -> NotFound:
    """The error for a topic that is not among these."""
    similar = nearest(name, names)
    hint = f"did you mean {similar!r}?" if similar else "`streamhouse topic list` shows what there is"
    return NotFound(f"there is no topic {name!r}", hint=hint)
