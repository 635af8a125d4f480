"""How far a micro-batch of limited bytes goes: whole blocks, in proportion to what each partition has waiting."""

from __future__ import annotations

from collections.abc import Sequence

from streamhouse.client.planning import PlanningClient
from streamhouse.core.admission import share, whole_within
from streamhouse.core.scan_plan import ScanPiece, TailPiece
from streamhouse.spark.source.positions import Offsets, TopicPartition
from streamhouse.spark.source.ranges import find_ranges
from streamhouse.wire.http.planning import RangeQuestion

# Coarse enough to look over a long backlog; where it is cut, as fine as blocks are.
_COARSE_BYTES = 64 * 2**20
_FINE_BYTES = 1


def ends_within_bytes(client: PlanningClient, starts: Offsets, ends: Offsets, max_bytes: int) -> Offsets:
    """Where each partition's part of the micro-batch ends. The limit is soft: a partition that gets anything gets at
    least a block."""
    waiting = [partition for partition, end in ends.items() if end > starts[partition]]
    questions = [_question(partition, starts[partition], ends[partition]) for partition in waiting]
    found = dict(zip(waiting, find_ranges(client, questions, piece_bytes=_COARSE_BYTES, presign=False), strict=True))
    # Offsets without records, as compaction leaves them, are passed as if they were a byte.
    sizes = {partition: max(1, each.size_bytes) for partition, each in found.items()}
    budgets = share(sizes, max_bytes)
    admitted = dict(ends)
    for partition, budget in budgets.items():
        if budget == 0:
            admitted[partition] = starts[partition]
        elif budget < sizes[partition]:
            admitted[partition] = _cut(client, partition, found[partition].pieces, budget)
    return admitted


def _cut(client: PlanningClient, partition: TopicPartition, pieces: Sequence[ScanPiece], budget: int) -> int:
    """The offset up to which the pieces, which are more than the budget, are taken."""
    whole = whole_within(pieces, budget)
    budget -= sum(piece.size_bytes for piece in pieces[:whole])
    crossing = pieces[whole]
    if isinstance(crossing, TailPiece):
        taken = (crossing.end - crossing.start) * budget // crossing.size_bytes
        return crossing.start + max(taken, 0 if whole else 1)
    question = _question(partition, crossing.start, crossing.end)
    (found,) = find_ranges(client, [question], piece_bytes=_FINE_BYTES, presign=False)
    blocks = found.pieces[: max(whole_within(found.pieces, budget), 0 if whole else 1)]
    return blocks[-1].end if blocks else crossing.start


def _question(partition: TopicPartition, start: int, end: int) -> RangeQuestion:
    return RangeQuestion(topic=partition.topic, partition=partition.partition, start=start, end=end)
