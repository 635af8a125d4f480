"""What happens when records that a query was to read are gone."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from streamhouse.format.batch import BatchHeader
from streamhouse.model.errors import CorruptBatch, OffsetOutOfRange, UnreadableRecords

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLoss:
    """As option failOnDataLoss says: the query fails, or a warning tells what it goes on without.

    `passes_over_unreadable`: likewise for records that are there and cannot be read; else they end the task."""

    is_fatal: bool
    passes_over_unreadable: bool = False

    def report(self, what: str) -> None:
        if self.is_fatal:
            raise OffsetOutOfRange(what, hint="set option failOnDataLoss to false to go on without them")
        logger.warning("%s", what)

    def pass_over(self, topic: str, partition: int, header: BatchHeader, problem: CorruptBatch) -> None:
        """A batch that is damaged, or that its producer wrote wrong."""
        what = f"records {header.base_offset} to {header.end_offset - 1} of {topic}-{partition} cannot be read"
        if not self.passes_over_unreadable:
            raise UnreadableRecords(
                f"{what}: {problem.message}",
                hint=f"failOnDataLoss=false passes over them, and so does a query from offset {header.end_offset} on",
                next_offset=header.end_offset,
            )
        logger.warning("%s, and are left out: %s", what, problem.message)
