"""What a sink's tasks stage, written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import uuid4

from log_parts.batches import real
from streamhouse.format.object_keys import staged_object_key
from streamhouse.format.staging import StagedObject, StagedRun
from streamhouse.objects.store import ObjectStore

SINK = "sink"

Place = tuple[str, int]


async def stage(
    objects: ObjectStore,
    content: Mapping[Place, Sequence[Sequence[bytes]]],
    *,
    sink_id: str = SINK,
    batch_id: int = 0,
    task: int = 0,
    at_ms: int = 1_000,
) -> StagedObject:
    """One object: for each topic and partition its batches, each with these values, all of one time."""
    key = staged_object_key(sink_id, batch_id, task, uuid4())
    data = b""
    runs = []
    for (topic, partition), batches in content.items():
        start = len(data)
        data += b"".join(real(*values, timestamps=(at_ms,) * len(values)) for values in batches)
        count = sum(map(len, batches))
        runs.append(
            StagedRun(topic=topic, partition=partition, start_byte=start, end_byte=len(data), record_count=count)
        )
    await objects.create(key, [data])
    return StagedObject(key=key, runs=runs)
