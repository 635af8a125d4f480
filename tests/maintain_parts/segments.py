"""Segments without a node: records go in, an object in memory comes out, and jobs read it as if it were in a bucket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from uuid import UUID

from streamhouse.format.batch import place, stamp_append_time
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, decode_records, encode_records
from streamhouse.format.segment import decode_segment, encode_segment
from streamhouse.model.buffer import Buffer

TOPIC_ID = UUID(int=7)


@dataclass
class MemoryObjects:
    """In the place of `Objects` in a pointer, and of the store that it opens."""

    objects: dict[str, bytes] = field(default_factory=dict)

    def open(self) -> MemoryObjects:
        return self

    def get(self, key: str) -> bytes:
        return self.objects[key]

    def create(self, key: str, parts: Sequence[Buffer]) -> None:
        assert key not in self.objects
        self.objects[key] = b"".join(map(bytes, parts))


def batch_of(
    records: Sequence[Record], *, codec: Codec = Codec.NONE, epoch: int = 1, append_time_ms: int | None = None
) -> bytes:
    batch = bytearray(encode_records(records, codec=codec, base_offset=None))
    if append_time_ms is not None:
        batch = bytearray(stamp_append_time(batch, append_time_ms))
    place(batch, 0, records[0].offset, epoch)
    return bytes(batch)


def segment_of(batches: Iterable[Buffer], *, epoch: int = 1, block_bytes: int = 256 * 1024) -> bytes:
    return b"".join(map(bytes, encode_segment(list(batches), epoch=epoch, block_bytes=block_bytes).parts))


def segment_of_records(records: Sequence[Record], *, batch_records: int = 3, block_bytes: int = 200) -> bytes:
    """Small batches of every codec, several to a block."""
    starts = range(0, len(records), batch_records)
    return segment_of(
        (
            batch_of(records[start : start + batch_records], codec=codec)
            for start, codec in zip(starts, cycle(Codec), strict=False)
        ),
        block_bytes=block_bytes,
    )


def records_in(data: bytes) -> list[Record]:
    return [record for run in decode_segment(data)[1] for record in decode_records(run)]
