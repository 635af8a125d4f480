"""The constants of the local WAL's bytes and the batch that its scan finds, shared with the kernels."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

FILE_MAGIC = b"SHWAL\x00\x00\x01"
FILE_HEADER_BYTES = 32
ENTRY_HEADER_BYTES = 16

MARK_KIND = 0
BATCH_KIND = 1

MARK_PAYLOAD = bytes([MARK_KIND]) + b"SHMARK1"
MARK_BYTES = ENTRY_HEADER_BYTES + len(MARK_PAYLOAD)
# Kind, topic id and partition: what comes between an entry's header and its batch.
PREFIX_BYTES = 21


class WalBatch(NamedTuple):
    """A batch that the WAL holds: the entry's position, whose it is, and where the batch lies in the scanned buffer."""

    position: int
    topic_id: UUID
    partition: int
    start: int
    end: int
    base_offset: int
    end_offset: int
