"""How much one message may hold: what is small on the wire may take a hundred times as much when it is read."""

from __future__ import annotations

from streamhouse.model.errors import InvalidInput

MAX_QUESTION_BYTES = 1024 * 1024
"""For messages that hold no records."""
MAX_PARTS = 200_000
"""Records and their headers together, in one request."""


def check_question(message: bytes) -> None:
    if len(message) > MAX_QUESTION_BYTES:
        raise InvalidInput(f"{len(message)} bytes are too many for this call", hint=f"at most {MAX_QUESTION_BYTES}")
