"""What a sink stages: objects of whole record batches, and the manifest that says which of them make up a batch."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import msgspec

from streamhouse.model.errors import CorruptData


class StagedRun(msgspec.Struct, frozen=True, kw_only=True):
    """Whole record batches of one partition, bytes [start_byte, end_byte) of a staged object."""

    topic: str
    partition: int
    start_byte: int
    end_byte: int
    record_count: int


class StagedObject(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    runs: list[StagedRun]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One try of a sink's batch; the order of objects and runs is the order of the records. `topics` tells which topics
    the names meant when it was written."""

    sink_id: str
    batch_id: int
    topics: dict[str, UUID]
    objects: list[StagedObject]


_DECODER = msgspec.json.Decoder(Manifest)


def encode_manifest(manifest: Manifest) -> bytes:
    return msgspec.json.encode(manifest)


def decode_manifest(data: bytes) -> Manifest:
    try:
        return _DECODER.decode(data)
    except msgspec.DecodeError as problem:
        raise CorruptData(f"a sink's manifest is damaged: {problem}") from None


def count_records(objects: Iterable[StagedObject]) -> int:
    return sum(run.record_count for staged in objects for run in staged.runs)
