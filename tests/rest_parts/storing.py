"""Records for searches to find, stored over REST."""

from __future__ import annotations

from typing import Any

from rest_parts.caller import RestCaller


def store(rest: RestCaller, topic: str, *records: dict[str, Any]) -> None:
    rest.post(f"topics/{topic}/records", {"records": records})


def store_numbers(rest: RestCaller, topic: str, count: int) -> None:
    """At the times 0 to `count`, in turn over the partitions."""
    store(rest, topic, *({"value": {"n": n}, "partition": n % 3, "timestamp_ms": n} for n in range(count)))
