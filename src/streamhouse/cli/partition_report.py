"""What the `partition` commands show of a partition: who leads it, how far it is, and what stands in its way."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from streamhouse.cli.console import print_table
from streamhouse.cli.time_span import show_span
from streamhouse.cluster.orders import waiting_note

if TYPE_CHECKING:
    from streamhouse.wire.http.rest.cluster import PlacementAnswer


def print_placements(placements: Sequence[PlacementAnswer], live: Set[str]) -> None:
    """`live` are the agents that are alive."""
    print_table(
        (
            "topic",
            "partition",
            "leader",
            "epoch",
            "log start",
            "high watermark",
            "committed end",
            "lease left",
            "note",
        ),
        [
            (
                placement.topic,
                placement.partition,
                placement.leader,
                placement.epoch,
                placement.log_start_offset,
                placement.high_watermark,
                placement.committed_end,
                show_span(placement.lease_left_ms) if placement.lease_left_ms > 0 else None,
                _note(placement, live),
            )
            for placement in placements
        ],
    )


def placement_as_json(placement: PlacementAnswer, live: Set[str]) -> dict[str, object]:
    return {
        "topic": placement.topic,
        "topic_id": str(placement.topic_id),
        "partition": placement.partition,
        "leader": placement.leader,
        "epoch": placement.epoch,
        "log_start_offset": placement.log_start_offset,
        "high_watermark": placement.high_watermark,
        "committed_end": placement.committed_end,
        "lease_left_ms": placement.lease_left_ms,
        "waits_for": placement.waits_for,
        "pinned_to": placement.pinned_to,
        "note": _note(placement, live),
    }


def _note(placement: PlacementAnswer, live: Set[str]) -> str:
    notes = []
    if placement.waits_for is not None:
        notes.append(waiting_note(placement.waits_for))
    if placement.pinned_to:
        is_live = placement.pinned_to in live
        notes.append(f"pinned to {placement.pinned_to}{'' if is_live else ', which is not alive'}")
    return "; ".join(notes)
