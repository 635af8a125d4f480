"""Who in a browser may call: a web page of another site may not, though its visitor's machine reaches this port."""

from __future__ import annotations

from collections.abc import Mapping

from streamhouse.wire.http.rest.problems import FOREIGN_ORIGIN, Problem, problem


def foreign_origin(headers: Mapping[str, str]) -> Problem | None:
    """Browsers say with what changes something, and with every WebSocket, from where the page came that asks; programs
    say nothing."""
    origin = headers.get("origin")
    if origin is None:
        return None
    site = origin.partition("://")[2].lower()
    if site and site == headers.get("host", "").lower():
        return None
    return problem(
        FOREIGN_ORIGIN, 403, f"a page of {origin[:100]} may not call this port", "call it from a page of its own"
    )
