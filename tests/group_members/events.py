"""What a member's process tells its test, one JSON object to a line of standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any


def tell(event: str, **details: Any) -> None:
    """Written before anything else happens: what was told before a crash was told."""
    sys.stdout.write(json.dumps({"event": event, **details}) + "\n")
    sys.stdout.flush()


def tell_records(records: Iterable[tuple[int, int, bytes | None]]) -> bool:
    """Partition, offset and value of each; says whether there were any."""
    told = [[partition, offset, (value or b"").decode()] for partition, offset, value in records]
    if told:
        tell("records", records=told)
    return bool(told)


class Ownership:
    """Tells the partitions that the member owns whenever they change."""

    def __init__(self) -> None:
        self._owned: list[int] | None = None

    def now(self, partitions: Iterable[int]) -> None:
        owned = sorted(partitions)
        if owned != self._owned:
            self._owned = owned
            tell("owned", partitions=owned)

    @staticmethod
    def revoked(partitions: Iterable[int]) -> None:
        tell("revoked", partitions=sorted(partitions))
