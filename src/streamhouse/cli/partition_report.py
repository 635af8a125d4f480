"""What the `partition` commands show of a partition: who leads it, how far it is, and what stands in its way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamhouse.cli.console import print_table
from streamhouse.cli.time_span import show_span
from streamhouse.cluster.state import ClusterState, leader_of, waits_for

if TYPE_CHECKING:
    from streamhouse.metadata.cluster import Placement


def print_placements(placements: Sequence[Placement], state: ClusterState) -> None:
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
                placement.partition.partition,
                leader_of(placement),
                placement.epoch,
                placement.log_start_offset,
                placement.durable_end,
                placement.committed_end,
                show_span(placement.lease_left_ms) if placement.lease_left_ms > 0 else None,
                _note(placement, state),
            )
            for placement in placements
        ],
    )


def _note(placement: Placement, state: ClusterState) -> str:
    notes = []
    missing = waits_for(placement)
    if missing is not None:
        notes.append(waiting_note(missing))
    if placement.pinned_to:
        is_live = state.is_live(placement.pinned_to)
        notes.append(f"pinned to {placement.pinned_to}{'' if is_live else ', which is not alive'}")
    return "; ".join(notes)


def waiting_note(agent_id: str) -> str:
    return f"waits for agent {agent_id}, whose disk may hold acknowledged records"


def placement_as_json(placement: Placement, state: ClusterState) -> dict[str, object]:
    return {
        "topic": placement.topic,
        "topic_id": str(placement.partition.topic_id),
        "partition": placement.partition.partition,
        "leader": leader_of(placement),
        "epoch": placement.epoch,
        "log_start_offset": placement.log_start_offset,
        "high_watermark": placement.durable_end,
        "committed_end": placement.committed_end,
        "lease_left_ms": max(0, placement.lease_left_ms),
        "waits_for": waits_for(placement),
        "pinned_to": placement.pinned_to or None,
        "note": _note(placement, state),
    }
