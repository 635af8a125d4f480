"""The types that stand for Kafka's primitive ones."""

from __future__ import annotations

from typing import Final, TypeAlias
from uuid import UUID

from streamhouse.model.buffer import Buffer

Records: TypeAlias = Buffer | list[Buffer]
"""Record batches: decoded as one view of the request, encoded from one buffer or from several in order."""

ZERO_UUID: Final = UUID(int=0)
