"""Where the records of offset ranges are right now: questions to a node, answers as pieces of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamhouse.client.planning import PlanningClient
from streamhouse.core.scan_plan import ScanPiece, StoredPiece, TailPiece
from streamhouse.wire.http.planning import RangeAnswer, RangeQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRange:
    """The pieces of one range in offset order, and what the log held when they were looked up."""

    pieces: tuple[ScanPiece, ...]
    log_start_offset: int
    high_watermark: int

    @property
    def size_bytes(self) -> int:
        return sum(piece.size_bytes for piece in self.pieces)


def find_ranges(
    client: PlanningClient, questions: Sequence[RangeQuestion], *, piece_bytes: int, presign: bool
) -> list[FoundRange]:
    """In the order asked."""
    if not questions:
        return []
    answers = client.ranges(questions, piece_bytes=piece_bytes, presign=presign)
    return [_found(question, answer) for question, answer in zip(questions, answers, strict=True)]


def _found(question: RangeQuestion, answer: RangeAnswer) -> FoundRange:
    pieces: list[ScanPiece] = [
        StoredPiece(
            topic=question.topic,
            partition=question.partition,
            start=piece.start,
            end=piece.end,
            key=piece.key,
            start_byte=piece.start_byte,
            end_byte=piece.end_byte,
            url=piece.url,
            topic_id=question.topic_id,
        )
        for piece in answer.pieces
    ]
    if answer.tail_end > answer.tail_start:
        pieces.append(
            TailPiece(
                topic=question.topic,
                partition=question.partition,
                start=answer.tail_start,
                end=answer.tail_end,
                size_bytes=answer.tail_bytes,
                topic_id=question.topic_id,
            )
        )
    return FoundRange(
        pieces=tuple(pieces), log_start_offset=answer.log_start_offset, high_watermark=answer.high_watermark
    )
