"""Events into the topic through confluent-kafka: as fast as they go, or at a steady pace."""

from __future__ import annotations

import threading
import time  # noqa: TID251 - rates and latencies as a client sees them
from collections.abc import Callable, Sequence
from itertools import cycle

from confluent_kafka import KafkaError, Message, Producer

from demo.failure import DemoFailed
from demo.orders import Event
from demo.progress import Meter
from demo.quiet import QUIET

_FLUSH_SECONDS = 60.0
_QUEUE_RECORDS = 50_000
_POLL_EVERY = 1_000


class OrderProducer:
    """An idempotent producer that notes how long each acknowledgement took, and the first failure."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                # Batches form by themselves while earlier ones are under way; a lone event need not wait.
                "linger.ms": 0,
                # The partitions that a Java client would choose.
                "partitioner": "murmur2_random",
                "queue.buffering.max.messages": 2 * _QUEUE_RECORDS,
                **QUIET,
            }
        )
        self._failure: KafkaError | None = None
        self._ack_seconds: list[float] = []

    def send_first(self, event: Event) -> None:
        """The first event waits for a connection, metadata and a producer id, which would blur what is measured."""
        self._send(event)
        self._finish(1)

    def send_fast(self, events: Sequence[Event], meter: Meter) -> float:
        """Returns the seconds until the last acknowledgement."""
        self._ack_seconds.clear()
        began = time.perf_counter()
        for number, event in enumerate(events, start=1):
            self._send(event)
            if number % _POLL_EVERY == 0:
                self._let_work(0)
                meter.reached(len(self._ack_seconds))
            while len(self._producer) >= _QUEUE_RECORDS:
                self._let_work(0.01)
        self._finish(len(events))
        meter.reached(len(events))
        return time.perf_counter() - began

    def send_paced(
        self, events: Sequence[Event], per_second: int, meter: Meter, sent: Callable[[Event, float], None]
    ) -> list[float]:
        """Each event at its time, reported to `sent` when it goes; returns the seconds each acknowledgement took."""
        self._ack_seconds.clear()
        began = time.perf_counter()
        for number, event in enumerate(events):
            due = began + number / per_second
            # Polling is also waiting: acknowledgements are served meanwhile.
            while (left := due - time.perf_counter()) > 0:
                self._let_work(left)
            sent(event, time.perf_counter())
            self._send(event)
            meter.reached(len(self._ack_seconds))
        self._finish(len(events))
        meter.reached(len(events))
        return list(self._ack_seconds)

    def send_until(self, stopping: threading.Event, events: Sequence[Event], per_second: int) -> int:
        """The events over and over; returns how many there were, all of them acknowledged."""
        self._ack_seconds.clear()
        began = time.perf_counter()
        count = 0
        for count, event in enumerate(cycle(events)):
            while (left := began + count / per_second - time.perf_counter()) > 0:
                self._let_work(left)
            if stopping.is_set():
                break
            self._send(event)
        self._finish(count)
        return count

    def _send(self, event: Event) -> None:
        self._producer.produce(
            self._topic, event.value, event.key, timestamp=event.timestamp_ms, on_delivery=self._delivered
        )

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failure = self._failure or error
        else:
            self._ack_seconds.append(message.latency() or 0.0)

    def _let_work(self, seconds: float) -> None:
        self._producer.poll(seconds)
        if self._failure is not None:
            raise DemoFailed(f"an event was not delivered: {self._failure.str()}")

    def _finish(self, expected: int) -> None:
        self._producer.flush(_FLUSH_SECONDS)
        self._let_work(0)
        if len(self._ack_seconds) != expected:
            raise DemoFailed(f"{len(self._ack_seconds):,} of {expected:,} events were acknowledged")
