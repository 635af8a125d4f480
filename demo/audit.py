"""Is everything there, once and unchanged? Asked of what consumers received and of the object store itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Message

from demo.failure import DemoFailed
from demo.orders import Event
from streamhouse.format.object_keys import SEGMENTS_PREFIX, TOPICS_PREFIX, parse_segment_key
from streamhouse.format.segment import FOOTER_BYTES, Footer, decode_footer

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegments:
    """The segments of the object store, by what their footers say."""

    count: int
    records: int
    stored_bytes: int
    raw_bytes: int


def read_segments(objects: Path, topic: str) -> StoredSegments:
    """Reads every footer of the topic; a partition's segments must follow one another without a gap."""
    footers: list[Footer] = []
    stored_bytes = 0
    ends: Counter[int] = Counter()
    for path in sorted((objects / SEGMENTS_PREFIX / _topic_id(objects, topic)).rglob("*.strm")):
        key = parse_segment_key(path.relative_to(objects).as_posix())
        assert key is not None
        size_bytes = path.stat().st_size
        with path.open("rb") as file:
            file.seek(size_bytes - FOOTER_BYTES)
            footer = decode_footer(file.read(), size_bytes)
        if footer.base_offset != ends[key.partition]:
            raise DemoFailed(f"{path.name} does not begin where the segment before it ends, at {ends[key.partition]}")
        ends[key.partition] = footer.end_offset
        footers.append(footer)
        stored_bytes += size_bytes
    return StoredSegments(
        count=len(footers),
        records=sum(footer.record_count for footer in footers),
        stored_bytes=stored_bytes,
        raw_bytes=sum(footer.raw_bytes for footer in footers),
    )


def _topic_id(objects: Path, topic: str) -> str:
    """As the bucket itself has it, which describes every topic."""
    for path in (objects / TOPICS_PREFIX).glob("*/*.json"):
        if json.loads(path.read_text())["name"] == topic:
            return path.parent.name
    raise DemoFailed(f"the object store does not know the topic {topic!r}")
