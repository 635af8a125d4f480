"""Texts in quotes, as JSON has them: of conditions, and of names of fields."""

from __future__ import annotations

import json

import msgspec

from streamhouse.model.errors import InvalidInput

_STRING = msgspec.json.Decoder(str)


def text_in(quoted: str, at: int) -> str:
    """`at` is where it stands in what somebody wrote."""
    try:
        return _STRING.decode(quoted)
    except ValueError as problem:
        half = _half_character_in(quoted)
        if half is not None:
            says, hint = f"{half} is half of a character", "write the character itself, or both of its halves"
        else:
            says, hint = str(problem), "double every \\"
    raise InvalidInput(f"character {at + 1}: no text of JSON: {says}", hint=hint)


def _half_character_in(quoted: str) -> str | None:
    """The first, if that is what is wrong: UTF-8 knows no halves of UTF-16's pairs."""
    try:
        text = json.loads(quoted)
    except ValueError:
        return None
    return next((f"\\u{ord(each):04x}" for each in text if "\ud800" <= each <= "\udfff"), None)
