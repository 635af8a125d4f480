"""What readers ask of the metadata store so that retention leaves them what they have yet to read, for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from streamhouse.model.errors import InvalidInput
from streamhouse.model.names import TopicPartition

LONGEST_PIN_MS = 7 * 24 * 3_600_000
LONGEST_PIN_ID = 255
MAX_PINNED_PARTITIONS = 10_000
"""Of one pin."""
MAX_PINS = 1_000
"""Live at once: they are anybody's to set, and each may keep a log from being shortened."""


class PinStore(Protocol):
    async def set_pins(self, pin_id: str, ttl_ms: int, offsets: Mapping[TopicPartition, int]) -> None:
        """Keep each partition from its offset on, until `ttl_ms` from now. It takes the place of the pin's earlier
        offsets; without any, the pin is removed. Partitions that are gone are passed over. InvalidInput for a pin that
        lasts too long or holds too many, and when there are too many pins. Those that have expired are forgotten."""

    async def load_pins(self, partitions: Sequence[TopicPartition]) -> list[int | None]:
        """In the order asked: the smallest offset that a live pin keeps; None if there is none."""


def too_many_pins() -> InvalidInput:
    return InvalidInput(f"there are {MAX_PINS} pins already", hint="remove one, or wait until one expires")
