"""What a produce request holds, as columns: a request has many records, and a message object for each is slow."""

from __future__ import annotations

from typing import NamedTuple

from streamhouse.format.columns import Columns
from streamhouse.model.errors import BatchTooLarge

NOT_GIVEN = -(2**31)
"""Where a record names no partition."""


class ProduceRows(NamedTuple):
    """The records of a ProduceRequest or a ProduceStreamRequest. `partitions` are int32, in the machine's byte order;
    all offsets are 0. The topic and the headers' keys are what was sent, whether that is text or not."""

    topic: bytes
    columns: Columns
    partitions: bytes


def too_many_parts(max_parts: int) -> BatchTooLarge:
    return BatchTooLarge(f"more than {max_parts} records and headers in one request", hint="send less at once")
