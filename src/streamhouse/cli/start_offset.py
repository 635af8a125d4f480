"""Where `consume` starts: `earliest`, `latest`, an offset, the last N, or the first record at a time."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from enum import Enum

from streamhouse.model.errors import InvalidInput

OFFSET_HELP = "an offset, earliest, latest, -N for the last N, or @TIME (2026-01-31T12:00:00Z, or milliseconds)"


class StartKind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    LAST = "last"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class StartOffset:
    """`value` is the offset, the count or the timestamp in milliseconds, as the kind says."""

    kind: StartKind
    value: int = 0


def parse_start_offset(text: str) -> StartOffset:
    if text in (StartKind.EARLIEST.value, StartKind.LATEST.value):
        return StartOffset(StartKind(text))
    if re.fullmatch(r"[0-9]{1,18}", text):
        return StartOffset(StartKind.OFFSET, int(text))
    if re.fullmatch(r"-[0-9]{1,18}", text):
        return StartOffset(StartKind.LAST, -int(text))
    if text.startswith("@"):
        return StartOffset(StartKind.TIMESTAMP, _parse_timestamp_ms(text[1:]))
    raise InvalidInput(f"{text!r} is not where to start", hint=f"write {OFFSET_HELP}")


def _parse_timestamp_ms(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{text!r} is not a time", hint="write 2026-01-31T12:00:00Z, or milliseconds since 1970"
        ) from None
    # A time without a zone is UTC, not whatever zone this machine happens to be in.
    return round((moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp() * 1000)
