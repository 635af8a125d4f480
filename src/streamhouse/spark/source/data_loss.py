"""What happens when records that a query was to read are gone."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from streamhouse.model.errors import OffsetOutOfRange

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLoss:
    """As option failOnDataLoss says: the query fails, or a warning tells what it goes on without."""

    is_fatal: bool

    def report(self, what: str) -> None:
        if self.is_fatal:
            raise OffsetOutOfRange(what, hint="set option failOnDataLoss to false to go on without them")
        logger.warning("%s", what)
