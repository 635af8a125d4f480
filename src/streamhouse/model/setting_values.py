"""A setting's value as people write it, in a flag, a variable, a TOML line or a test, made what `Settings` has."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from streamhouse.model.errors import InvalidConfig, StreamHouseError
from streamhouse.model.settings import Kind
from streamhouse.model.units import parse_duration_ms, parse_size_bytes

_YES = ("true", "yes", "on", "1")
_NO = ("false", "no", "off", "0")


def parse_setting(raw: object, kind: Kind, source: str) -> object:
    """`source`: where it was given, which the error begins with."""
    try:
        return _PARSERS[kind](raw)
    except StreamHouseError as problem:
        raise InvalidConfig(f"{source}: {problem.message}", hint=problem.hint) from None


def did_you_mean(given: str, known: Iterable[str], otherwise: str) -> str:
    """A hint for a name that there is not: the one that is most like it, or `otherwise`."""
    nearest = difflib.get_close_matches(given, list(known), n=1)
    return f"did you mean {nearest[0]}?" if nearest else otherwise


def parse_text(raw: object) -> str:
    if not isinstance(raw, str):
        raise InvalidConfig(f"{raw!r} is not text", hint="put it in quotes")
    return raw


def _integer(raw: object) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", raw):
        return int(raw)
    raise InvalidConfig(f"{raw!r} is not a whole number")


def _flag(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in _YES + _NO:
        return raw.strip().lower() in _YES
    raise InvalidConfig(f"{raw!r} is neither true nor false")


def _duration(raw: object) -> int:
    if not isinstance(raw, str):
        raise InvalidConfig(f"{raw!r} is not a duration", hint='write "250ms", "30s", "5m", "2h" or "7d"')
    return parse_duration_ms(raw)


def _size(raw: object) -> int:
    return _integer(raw) if not isinstance(raw, str) else parse_size_bytes(raw)


_PARSERS: Mapping[Kind, Callable[[object], object]] = MappingProxyType(
    {
        Kind.TEXT: parse_text,
        Kind.SECRET: parse_text,
        Kind.INTEGER: _integer,
        Kind.FLAG: _flag,
        Kind.DURATION: _duration,
        Kind.SIZE: _size,
    }
)
