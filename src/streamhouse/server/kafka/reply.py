"""A request's place in the order of replies, to be filled when its answer is known."""

from __future__ import annotations

from typing import Protocol

from streamhouse.broker.measures import DoorMeasures
from streamhouse.model.buffer import Buffer
from streamhouse.server.kafka.refused_sequences import RefusedSequences


class ReplySender(Protocol):
    measures: DoorMeasures
    refused: RefusedSequences

    def reply_filled(self) -> None:
        """Some reply can be sent, if it is its turn."""


class Reply:
    """`received_s`: when the request came; `timeout_ms`: how long its client lets us wait."""

    __slots__ = ("_sender", "buffers", "received_s", "timeout_ms")

    def __init__(self, sender: ReplySender, timeout_ms: int) -> None:
        self._sender = sender
        self.timeout_ms = timeout_ms
        self.buffers: list[Buffer] | None = None
        self.received_s = 0.0

    def fill(self, buffers: list[Buffer]) -> None:
        self.buffers = buffers
        self._sender.reply_filled()

    def timed_out(self) -> None:
        """Answer now, though not everything is known."""
        raise NotImplementedError
