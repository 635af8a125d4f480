"""Is everything there, once and unchanged? Asked of what a consumer received."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from confluent_kafka import Message

from demo.failure import DemoFailed
from demo.orders import Event

_SHOWN = 3


class Audit:
    """Holds every received record against what was sent."""

    def __init__(self, sent: Sequence[Event]) -> None:
        # Every order has an id of its own, so its value names it.
        self._missing = {event.value: event for event in sent}
        self._next_offsets: Counter[int] = Counter()
        self._problems: list[str] = []

    def received(self, message: Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        place = f"orders/{partition} offset {offset}"
        if offset != self._next_offsets[partition]:
            self._problems.append(f"{place} came where {self._next_offsets[partition]} was next")
        self._next_offsets[partition] = offset + 1
        event = self._missing.pop(value or b"", None)
        if event is None:
            self._problems.append(f"{place} was received twice, or was never sent: {value!r:.80}")
        elif message.key() != event.key or message.timestamp()[1] != event.timestamp_ms:
            self._problems.append(f"{place} came back with another key or timestamp")

    def conclude(self) -> None:
        if self._missing:
            self._problems.append(f"{len(self._missing):,} events did not come back")
        if self._problems:
            shown = "\n".join(self._problems[:_SHOWN])
            raise DemoFailed(f"{len(self._problems):,} problems with what was received:\n{shown}")
