"""What both metadata stores decide alike about a sink's batches: what they refuse, and who writes the next one."""

from __future__ import annotations

from typing import NamedTuple

from streamhouse.metadata.checks import check_offset, check_text
from streamhouse.metadata.sinks import NewSinkBatch
from streamhouse.model.errors import InvalidInput

_MAX_PRODUCER_EPOCH = 2**15 - 1


class Sink(NamedTuple):
    """A sink's row: who wrote its last batch, and up to where its batches may have been forgotten."""

    producer_id: int
    producer_epoch: int
    forgotten_through: int


def needs_new_producer(sink: Sink, *, has_unfinished_batch: bool) -> bool:
    return has_unfinished_batch or sink.producer_epoch == _MAX_PRODUCER_EPOCH


def check_sink_batch(batch: NewSinkBatch) -> None:
    check_sink(batch.sink_id, batch.batch_id)
    check_text("object key", batch.manifest_key)
    check_offset(batch.record_count)
    for key in batch.object_keys:
        check_text("object key", key)


def check_sink(sink_id: str, batch_id: int) -> None:
    check_text("sink id", sink_id)
    if not 0 <= batch_id < 2**63:
        raise InvalidInput(f"{batch_id} is not a batch id")


def abandoned(batch: NewSinkBatch, object_key: str) -> InvalidInput:
    return InvalidInput(
        f"{object_key!r}, staged for batch {batch.batch_id} of sink {batch.sink_id!r}, was abandoned",
        hint="run the batch again",
    )


def forgotten(batch: NewSinkBatch, forgotten_through: int) -> InvalidInput:
    return InvalidInput(
        f"whether batch {batch.batch_id} of sink {batch.sink_id!r} was done is forgotten, as of all up to "
        f"{forgotten_through}",
        hint="if it was not, write it with another sinkId",
    )
