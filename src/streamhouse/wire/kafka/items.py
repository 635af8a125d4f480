"""How many things a request names, whatever it is, so that one who names too many is sent away before work begins."""

from __future__ import annotations

import msgspec

MAX_ITEMS = 50_000
"""No client names as many in earnest."""


def count_items(message: msgspec.Struct) -> int:
    """The elements of all its arrays, those inside others included."""
    count = 0
    parts: list[object] = [message]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            count += len(part)
            if part and isinstance(part[0], msgspec.Struct):
                parts += part
        elif isinstance(part, msgspec.Struct):
            parts += [value for name in part.__struct_fields__ if isinstance(value := getattr(part, name), _HOLDERS)]
    return count


_HOLDERS = (list, msgspec.Struct)
