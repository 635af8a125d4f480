"""A partition leader that traces some of what it is given, from the append to the segment.

One batch at a time: the next is chosen when the one before is in a segment, so what it costs does not grow with the
load. Without tracing no leader is one of these."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context

from streamhouse.format.batch import BatchHeader
from streamhouse.log.leader import Acknowledgement, Appended, PartitionLeader
from streamhouse.metadata.store import SegmentRow
from streamhouse.model.errors import StreamHouseError


class _TracedBatch:
    """`produce` lasts until the batch is in a segment; `wal` until it is durable, when its producer is answered."""

    __slots__ = ("end_offset", "produce", "tracer", "wal")

    def __init__(self, tracer: Tracer, attributes: dict[str, str | int]) -> None:
        self.tracer = tracer
        self.end_offset = 0
        self.produce: Span = tracer.start_span("produce", attributes=attributes)
        self.wal: Span | None = self.step("wal")

    def step(self, name: str) -> Span:
        return self.tracer.start_span(name, context=set_span_in_context(self.produce))

    def durable(self) -> None:
        if self.wal is not None:
            self.wal.end()
            self.wal = None

    def end(self, problem: BaseException | None = None) -> None:
        for span in (self.wal, self.produce):
            if span is not None:
                _end(span, problem)
        self.wal = None


class TracedLeader(PartitionLeader):
    def __init__(self, tracer: Tracer, **parts: Any) -> None:
        super().__init__(**parts)
        self._tracer = tracer
        self._traced: _TracedBatch | None = None

    def append(
        self, batch: memoryview, header: BatchHeader, acknowledgement: Acknowledgement, *, owned: bool = False
    ) -> Appended:
        if self._traced is not None:
            return super().append(batch, header, acknowledgement, owned=owned)
        traced = _TracedBatch(self._tracer, self._attributes(header, len(batch)))
        try:
            appended = super().append(batch, header, acknowledgement, owned=owned)
        except StreamHouseError as problem:
            traced.end(problem)
            raise
        traced.end_offset = appended[0] + header.last_offset_delta + 1
        traced.produce.set_attribute("streamhouse.base_offset", appended[0])
        self._traced = traced
        self._settle()
        return appended

    def _attributes(self, header: BatchHeader, size_bytes: int) -> dict[str, str | int]:
        return {
            "messaging.system": "streamhouse",
            "messaging.destination.name": self.topic,
            "messaging.destination.partition.id": str(self.partition.partition),
            "messaging.batch.message_count": header.last_offset_delta + 1,
            "streamhouse.batch_bytes": size_bytes,
            "streamhouse.epoch": self.epoch,
        }

    def durable(self, end_offset: int) -> None:
        super().durable(end_offset)
        self._settle()

    def not_durable(self, problem: StreamHouseError) -> None:
        super().not_durable(problem)
        if self._traced is not None and self._traced.wal is not None:
            self._traced.end(problem)
            self._traced = None

    def segment_committed(self, segment: SegmentRow, raw_bytes: int) -> None:
        super().segment_committed(segment, raw_bytes)
        self._settle()

    def remove(self, problem: StreamHouseError) -> None:
        super().remove(problem)
        if self._traced is not None:
            self._traced.end(problem)
            self._traced = None

    def step(self, name: str, end_offset: int) -> AbstractContextManager[None]:
        traced = self._traced
        if traced is None or traced.end_offset > end_offset:
            return super().step(name, end_offset)
        return _in_span(traced.step(name))

    def _settle(self) -> None:
        """A repeat of what was stored long ago is settled at once."""
        traced = self._traced
        if traced is None:
            return
        if traced.end_offset <= self.high_watermark:
            traced.durable()
        if traced.end_offset <= self.committed_end:
            traced.end()
            self._traced = None


@contextmanager
def _in_span(span: Span) -> Iterator[None]:
    try:
        yield
    except BaseException as problem:
        _end(span, problem)
        raise
    _end(span, None)


def _end(span: Span, problem: BaseException | None) -> None:
    if problem is not None:
        span.set_status(Status(StatusCode.ERROR, str(problem)))
    span.end()
