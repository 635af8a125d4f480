"""Staged objects of one task: record batches are gathered by partition, and written out when they are many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamhouse.format.object_keys import staged_object_key
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import AlreadyExists
from streamhouse.runtime.entropy import new_uuid
from streamhouse.wire.http.planning import StagedObject, StagedRun

_OBJECT_BYTES = 32 * 2**20

Put = Callable[[str, Sequence[Buffer]], None]
"""Creates an object; AlreadyExists if the key is taken."""


class StagingArea:
    def __init__(self, put: Put, sink_id: str, batch_id: int, task: int) -> None:
        self._put = put
        self._sink_id = sink_id
        self._batch_id = batch_id
        self._task = task
        self._gathered: dict[tuple[str, int], list[bytes]] = {}
        self._records: dict[tuple[str, int], int] = {}
        self._size_bytes = 0
        self._staged: list[StagedObject] = []

    def add(self, topic: str, partition: int, batches: Sequence[bytes], record_count: int) -> None:
        place = (topic, partition)
        self._gathered.setdefault(place, []).extend(batches)
        self._records[place] = self._records.get(place, 0) + record_count
        self._size_bytes += sum(map(len, batches))
        if self._size_bytes >= _OBJECT_BYTES:
            self._write()

    def finish(self) -> list[StagedObject]:
        """What was staged, in order."""
        if self._gathered:
            self._write()
        return self._staged

    def _write(self) -> None:
        key = staged_object_key(self._sink_id, self._batch_id, self._task, new_uuid())
        parts: list[Buffer] = []
        runs: list[StagedRun] = []
        at = 0
        for (topic, partition), batches in self._gathered.items():
            start = at
            at += sum(map(len, batches))
            parts += batches
            count = self._records[topic, partition]
            runs.append(StagedRun(topic=topic, partition=partition, start_byte=start, end_byte=at, record_count=count))
        try:
            self._put(key, parts)
        except AlreadyExists:
            pass  # nobody else has this key: an earlier try of this very call got through
        self._staged.append(StagedObject(key=key, runs=runs))
        self._gathered, self._records, self._size_bytes = {}, {}, 0
