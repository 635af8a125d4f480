"""A task on an executor: pieces of the log become Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa

from streamhouse.core.scan_plan import ScanPiece, StoredPiece
from streamhouse.format import kernel
from streamhouse.format.column_stream import iter_columns
from streamhouse.format.segment import iter_blocks
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import NotFound, OffsetOutOfRange, StorageUnavailable, Unavailable
from streamhouse.runtime.pause import pause_ms
from streamhouse.runtime.retry import backoff_ms
from streamhouse.spark.connections import planning_client
from streamhouse.spark.options import Connection
from streamhouse.spark.source.data_loss import DataLoss
from streamhouse.spark.source.options import SourceOptions
from streamhouse.spark.source.presigned import get_url_range
from streamhouse.spark.source.ranges import find_ranges
from streamhouse.spark.source.rows import RowBatches
from streamhouse.spark.source.task import ScanTask
from streamhouse.wire.http.planning import ObjectsLocation, RangeQuestion

Result = TypeVar("Result")

# Arrow batches of 50 to 100 thousand rows cross to the JVM at the best rate; large records fill one sooner. A segment
# of 100-byte records is then one.
_TARGET_ROWS = 90_000
_TARGET_BYTES = 16 * 2**20
_TAIL_BYTES = 8 * 2**20
_PIECE_BYTES = 16 * 2**20
_TRIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReader:
    """What all tasks of a query have in common; pickled with the query."""

    connection: Connection
    include_headers: bool
    presign: bool
    data_loss: DataLoss

    @staticmethod
    def of(options: SourceOptions) -> TaskReader:
        return TaskReader(
            connection=options.connection,
            include_headers=options.include_headers,
            presign=options.presign,
            data_loss=DataLoss(
                is_fatal=options.fail_on_data_loss, passes_over_unreadable=not options.fail_on_data_loss
            ),
        )

    def read(self, task: ScanTask) -> Iterator[pa.RecordBatch]:
        rows = RowBatches(include_headers=self.include_headers)
        return self._read(task.pieces, task.location, rows, _TRIES)

    def _read(
        self, pieces: Sequence[ScanPiece], location: ObjectsLocation, rows: RowBatches, tries: int
    ) -> Iterator[pa.RecordBatch]:
        for piece, fetched in self._fetched(pieces, location):
            try:
                if fetched is not None:
                    yield from self._decode(piece, iter_blocks(fetched.result()), rows)
                else:
                    yield from self._read_tail(piece, rows)
            except _Moved as moved:
                if tries == 0:
                    raise moved.problem from None
                yield from self._read(self._find_again(piece, moved.start), location, rows, tries - 1)

    def _fetched(
        self, pieces: Sequence[ScanPiece], location: ObjectsLocation
    ) -> Iterator[tuple[ScanPiece, Future[bytes] | None]]:
        """Each piece, with its bytes if it is stored. While one is decoded, the next is on its way."""
        with ThreadPoolExecutor(1) as thread:

            def fetch(piece: ScanPiece) -> Future[bytes] | None:
                return thread.submit(self._get, piece, location) if isinstance(piece, StoredPiece) else None

            following = fetch(pieces[0]) if pieces else None
            for number, piece in enumerate(pieces):
                fetched = following
                following = fetch(pieces[number + 1]) if number + 1 < len(pieces) else None
                yield piece, fetched

    def _get(self, piece: StoredPiece, location: ObjectsLocation) -> bytes:
        url = piece.url
        try:
            if url is not None:
                return _patiently(lambda: get_url_range(url, piece.start_byte, piece.end_byte))
            store = self.connection.store(location)
            return _patiently(lambda: store.get_range(piece.key, piece.start_byte, piece.end_byte))
        except NotFound as problem:
            raise _Moved(piece.start, problem) from None

    def _read_tail(self, piece: ScanPiece, rows: RowBatches) -> Iterator[pa.RecordBatch]:
        client = planning_client(self.connection.endpoint)
        start = piece.start
        while start < piece.end:
            try:
                content = client.tail(piece.topic, piece.partition, start, _TAIL_BYTES, topic_id=piece.topic_id)
            except (OffsetOutOfRange, NotFound) as problem:
                raise _Moved(start, problem) from None
            if not content:
                raise Unavailable(f"{piece.topic}-{piece.partition} has no records from offset {start} on any more")
            yield from self._decode(replace(piece, start=start), [content], rows)
            start = kernel.scan_run(content, 0, len(content)).end_offset

    def _decode(self, piece: ScanPiece, runs: Iterable[Buffer], rows: RowBatches) -> Iterator[pa.RecordBatch]:
        parts = iter_columns(
            runs,
            start_offset=piece.start,
            end_offset=piece.end,
            target_rows=_TARGET_ROWS,
            target_bytes=_TARGET_BYTES,
            pass_over=partial(self.data_loss.pass_over, piece.topic, piece.partition),
        )
        for part in parts:
            yield from rows.of(piece.topic, piece.partition, part)

    def _find_again(self, piece: ScanPiece, start: int) -> Sequence[ScanPiece]:
        """Segments are merged, compacted and deleted, and tails become segments, while a query runs."""
        question = RangeQuestion(
            topic=piece.topic, partition=piece.partition, start=start, end=piece.end, topic_id=piece.topic_id
        )
        client = planning_client(self.connection.endpoint)
        try:
            (found,) = find_ranges(client, [question], piece_bytes=_PIECE_BYTES, presign=self.presign)
        except NotFound:
            self.data_loss.report(f"topic {piece.topic} was deleted while its records were read")
            return ()
        if found.log_start_offset > start:
            self.data_loss.report(
                f"records {start} to {min(found.log_start_offset, piece.end) - 1} of {piece.topic}-{piece.partition} "
                "were deleted before they could be read"
            )
        return found.pieces


class _Moved(Exception):
    """What was planned is no longer where it was; `start` is the first offset that was not read."""

    def __init__(self, start: int, problem: Exception) -> None:
        super().__init__(str(problem))
        self.start = start
        self.problem = problem


def _patiently(attempt: Callable[[], Result]) -> Result:
    """Not every master tries a task again, and a store that is briefly overloaded is no reason to fail one."""
    waits = backoff_ms()
    for _ in range(_TRIES - 1):
        try:
            return attempt()
        except StorageUnavailable:
            pause_ms(next(waits))
    return attempt()
