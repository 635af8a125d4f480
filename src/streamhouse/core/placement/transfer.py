"""The states of a hand-over of one partition, and what moves it from one to the next.

pending ──accept──▶ accepted ──complete──▶ completed
   │                   │
   ├──reject───────────┤──▶ rejected
   └──time-out─────────┴──▶ failed
"""

from __future__ import annotations

from enum import Enum


class TransferState(Enum):
    PENDING = "pending"
    ACCEPTED = "accepted"
    COMPLETED = "completed"
    REJECTED = "rejected"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        return self in (TransferState.COMPLETED, TransferState.REJECTED, TransferState.FAILED)


class TransferEvent(Enum):
    ACCEPT = "accept"
    REJECT = "reject"
    COMPLETE = "complete"
    TIME_OUT = "time-out"


_NEXT = {
    (TransferState.PENDING, TransferEvent.ACCEPT): TransferState.ACCEPTED,
    (TransferState.PENDING, TransferEvent.REJECT): TransferState.REJECTED,
    (TransferState.PENDING, TransferEvent.TIME_OUT): TransferState.FAILED,
    (TransferState.ACCEPTED, TransferEvent.REJECT): TransferState.REJECTED,
    (TransferState.ACCEPTED, TransferEvent.COMPLETE): TransferState.COMPLETED,
    (TransferState.ACCEPTED, TransferEvent.TIME_OUT): TransferState.FAILED,
}


def next_state(state: TransferState, event: TransferEvent) -> TransferState | None:
    """None if the event means nothing in that state."""
    return _NEXT.get((state, event))
