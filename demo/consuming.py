"""Events out of the topic through confluent-kafka: all of them from the start, or new ones as they come."""

from __future__ import annotations

import threading
import time  # noqa: TID251 - rates and latencies as a client sees them
from collections.abc import Callable

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

from demo.failure import DemoFailed
from demo.progress import Meter
from demo.quiet import QUIET

_CALL_RECORDS = 2_000
_STALL_SECONDS = 30.0
_QUIET_SECONDS = 0.2


def _open_consumer(bootstrap: str) -> Consumer:
    # A group id is only needed because librdkafka insists: partitions are assigned here, nothing is committed.
    return Consumer({"bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False, **QUIET})


def _check(message: Message) -> Message:
    problem = message.error()
    if problem is not None:
        raise DemoFailed(f"a fetch failed: {problem.str()}")
    return message


def read_all(
    bootstrap: str, topic: str, partitions: int, expected: int, meter: Meter, received: Callable[[Message], None]
) -> float:
    """Read from the start until the expected number has come; returns the seconds from the first to the last of them.

    Anything that comes after them is received too: it would be one too many."""
    consumer = _open_consumer(bootstrap)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    count = 0
    began = 0.0
    try:
        while count < expected:
            # Returns when so many have come, so the last call must not ask for more than there are.
            wanted = min(_CALL_RECORDS, expected - count) if count else 1
            messages = consumer.consume(wanted, _STALL_SECONDS)
            if len(messages) < wanted:
                raise DemoFailed(f"events stopped coming after {count + len(messages):,} of {expected:,}")
            began = began or time.perf_counter()
            for message in messages:
                received(_check(message))
            count += wanted
            meter.reached(count)
        seconds = time.perf_counter() - began
        for message in consumer.consume(1, _QUIET_SECONDS):
            received(_check(message))
        return seconds
    finally:
        consumer.close()


class Tail:
    """A consumer at the end of the topic, on a thread of its own, that notes when each new value arrives."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._consumer = _open_consumer(bootstrap)
        self._ends: dict[int, int] = {}
        starts = []
        for partition in range(partitions):
            _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
            self._ends[partition] = end
            # From the last record that is there: when it has come, this partition is being followed.
            starts.append(TopicPartition(topic, partition, max(0, end - 1)))
        self._consumer.assign(starts)
        self._awaited = {partition for partition, end in self._ends.items() if end > 0}
        self._arrivals: dict[bytes, float] = {}
        self._failure: Exception | None = None
        self._following = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tail", daemon=True)
        self._thread.start()
        if not self._following.wait(_STALL_SECONDS) or self._failure is not None:
            self._stopping.set()
            raise DemoFailed(f"the tailing consumer did not start: {self._failure}")

    def finish(self, expected: int) -> dict[bytes, float]:
        """When each value arrived (on `perf_counter`), once the expected number has."""
        deadline = time.perf_counter() + _STALL_SECONDS
        while len(self._arrivals) < expected and self._failure is None and time.perf_counter() < deadline:
            time.sleep(0.005)
        self._stopping.set()
        self._thread.join()
        self._consumer.close()
        if self._failure is not None:
            raise DemoFailed(f"the tailing consumer failed: {self._failure}")
        if len(self._arrivals) != expected:
            raise DemoFailed(f"the tailing consumer saw {len(self._arrivals):,} of {expected:,} events")
        return self._arrivals

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if not self._awaited:
                    self._following.set()
                message = self._consumer.poll(0.05)
                if message is not None:
                    self._note(_check(message))
        except Exception as problem:
            self._failure = problem
            self._following.set()

    def _note(self, message: Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        if offset < self._ends[partition]:
            self._awaited.discard(partition)
        else:
            self._arrivals[value] = time.perf_counter()
