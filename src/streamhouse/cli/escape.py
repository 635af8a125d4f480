"""Bytes and text from strangers, made safe for a terminal: nothing in them can move its cursor or change its title."""

from __future__ import annotations

import unicodedata

# Cc: control characters; Cf: invisible direction and joining marks; Cs, Co, Cn: nothing that has a shape;
# Zl, Zp: line and paragraph separators, which some terminals obey.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape_text(text: str) -> str:
    """The text on one line; unsafe characters become \\n, \\x1b or \\u202e, and a backslash stays as it is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape_character(character) for character in text)


def escape_bytes(data: bytes | memoryview) -> str:
    """UTF-8 where it is UTF-8, \\xNN for every byte that is not."""
    # surrogateescape keeps undecodable bytes apart from control characters: each is one lone surrogate here.
    return escape_text(bytes(data).decode("utf-8", "surrogateescape"))


def _escape_character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if unicodedata.category(character) not in _UNSAFE_CATEGORIES:
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
