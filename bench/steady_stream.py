"""confluent-kafka with its default settings, sending one record after the other at a steady rate whatever happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

from confluent_kafka import KafkaError, Message, Producer

from bench.batches import order_values
from bench.servers import ServerFailed
from bench.topics import CRITICAL

PATIENCE_SECONDS = 120.0


class Sent(NamedTuple):
    at: float
    """By perf_counter; also where the wait is counted from, not from when the client found room for it."""
    wait_seconds: float


class SteadyStream:
    """`with SteadyStream(...) as stream:` sends to the partitions in turn until the end of the block."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, rate: float) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": CRITICAL})
        self._topic = topic
        self._partitions = partitions
        self._rate = rate
        [self._value] = order_values(100, 1)
        self._delivered: list[Sent] = []
        self._failed: list[KafkaError] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Self:
        """Returns when every partition had its first record: connections are made, and leaders known."""
        for partition in range(self._partitions):
            self._producer.produce(self._topic, self._value, partition=partition)
        if self._producer.flush(PATIENCE_SECONDS):
            raise ServerFailed(f"{self._topic} does not take records")
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._ending.set()
        self._thread.join()
        left = self._producer.flush(PATIENCE_SECONDS)
        if error is None and (left or self._failed):
            raise ServerFailed(f"{left} records are not delivered and {len(self._failed)} failed: {self._failed[:1]}")

    def waits(self, start: float = 0.0, end: float = float("inf")) -> list[float]:
        """How long each record waited that was sent in this time; call it after the end."""
        return [sent.wait_seconds for sent in self._delivered if start <= sent.at < end]

    def _send(self) -> None:
        due = time.perf_counter()
        partition = 0
        while not self._ending.is_set():
            due += 1 / self._rate
            partition = (partition + 1) % self._partitions
            self._producer.produce(
                self._topic, self._value, partition=partition, on_delivery=self._noting(time.perf_counter())
            )
            self._producer.poll(0)
            while (pause := due - time.perf_counter()) > 0:
                self._producer.poll(pause)

    def _noting(self, sent_at: float) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                self._failed.append(error)
            else:
                self._delivered.append(Sent(sent_at, time.perf_counter() - sent_at))

        return note
