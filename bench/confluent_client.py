"""confluent-kafka as the load, in a process of its own so that its CPU can be told from everybody else's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from bench.batches import order_values
from bench.native import finished

CALL_RECORDS = 2_000
"""Records per call of the client: few calls, and still every partition gets its turn."""
QUEUE_RECORDS = 400_000
STALL_SECONDS = 60.0
USAGE = """python -m bench.confluent_client produce ADDRESS TOPIC PARTITIONS VALUE_BYTES CODEC SECONDS
python -m bench.confluent_client consume ADDRESS TOPIC PARTITIONS RECORDS SECONDS"""


def measure_produce(address: str, topic: str, partitions: int, value_bytes: int, codec: str, seconds: float) -> Any:
    """Runs a producer for about that long and says how many records were delivered, how fast, at what CPU."""
    return _in_own_process("produce", address, topic, partitions, value_bytes, codec, seconds)


def measure_consume(address: str, topic: str, partitions: int, records: int, seconds: float) -> Any:
    """Reads the topic's records from its start, for about that long."""
    return _in_own_process("consume", address, topic, partitions, records, seconds)


def _in_own_process(*arguments: object) -> Any:
    command = [sys.executable, "-m", "bench.confluent_client", *map(str, arguments)]
    return finished(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))


def produce(
    address: str, topic: str, partitions: int, value_bytes: int, codec: str, seconds: float
) -> dict[str, float]:
    producer = Producer(
        {
            "bootstrap.servers": address,
            "acks": "all",
            "compression.type": codec,
            "queue.buffering.max.messages": 2 * QUEUE_RECORDS,
            "queue.buffering.max.kbytes": 1 << 20,
            "error_cb": _fail,
        }
    )
    producer.list_topics(topic, timeout=30)
    calls = [
        [{"value": value} for value in order_values(value_bytes, CALL_RECORDS, seed)]
        for seed in range(min(partitions, 8))
    ]
    cpu, start = _cpu_seconds(), time.perf_counter()
    sent = turn = 0
    while time.perf_counter() - start < seconds:
        if len(producer) > QUEUE_RECORDS:
            producer.poll(0.001)
            continue
        sent += producer.produce_batch(topic, calls[turn % len(calls)], partition=turn % partitions)
        turn += 1
    left = producer.flush(STALL_SECONDS)
    elapsed = time.perf_counter() - start
    if left:
        raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT, f"{left} records were not delivered"))
    return {"records": sent, "seconds": elapsed, "cpu_seconds": _cpu_seconds() - cpu}


def consume(address: str, topic: str, partitions: int, records: int, seconds: float) -> dict[str, float]:
    """Reads the topic from its start, again and again until the time is over, whole passes only.

    A pass counts from when its first messages are there, and without them: how long a client takes to connect and to
    seek is not asked here."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "bench", "enable.auto.commit": False, "error_cb": _fail}
    )
    start_of_topic = [TopicPartition(topic, partition, 0) for partition in range(partitions)]
    seen, elapsed = 0, 0.0
    cpu, end = _cpu_seconds(), time.perf_counter() + seconds
    while not seen or time.perf_counter() < end:
        consumer.assign(start_of_topic)
        left = records - len(_next_messages(consumer, 1))
        seen += left
        start = time.perf_counter()
        while left > 0:
            left -= len(_next_messages(consumer, min(left, CALL_RECORDS)))
        elapsed += time.perf_counter() - start
    used = _cpu_seconds() - cpu
    consumer.close()
    return {"records": seen, "seconds": elapsed, "cpu_seconds": used}


def _next_messages(consumer: Consumer, count: int) -> list[Message]:
    """At most that many; `consume` waits until it has all of them, so never ask for more than there are."""
    deadline = time.monotonic() + STALL_SECONDS
    while time.monotonic() < deadline:
        messages = consumer.consume(count, timeout=0.2)
        for message in messages:
            error = message.error()
            if error is not None:
                raise KafkaException(error)
        if messages:
            return messages
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"nothing arrived for {STALL_SECONDS:g} s"))


def _fail(error: KafkaError) -> None:
    if error.fatal():
        raise KafkaException(error)


def _cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system


def main(arguments: list[str]) -> None:
    match arguments:
        case ["produce", address, topic, partitions, value_bytes, codec, seconds]:
            result = produce(address, topic, int(partitions), int(value_bytes), codec, float(seconds))
        case ["consume", address, topic, partitions, records, seconds]:
            result = consume(address, topic, int(partitions), int(records), float(seconds))
        case _:
            raise SystemExit(USAGE)
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
