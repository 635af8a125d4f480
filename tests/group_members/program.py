"""The process of a member: one client of one kind that reads, tells, and then commits, until SIGTERM lets it leave.

A commit that is refused, say while the group changes hands, is made again: there may be nothing more to read."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable
from typing import Any

from group_members.events import Ownership, tell, tell_records

HEARTBEAT_MS = 300
POLL_MS = 50


class Leaving:
    """True from the moment at which the test asked the member to leave."""

    def __init__(self) -> None:
        self._asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_: object) -> None:
        self._asked = True

    def __bool__(self) -> bool:
        return self._asked


def run_confluent(options: dict[str, Any], leaving: Leaving) -> None:
    import confluent_kafka

    config: dict[str, Any] = {
        "bootstrap.servers": options["bootstrap"],
        "group.id": options["group"],
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "log_level": 0,
    }
    if options["kind"] == "consumer-protocol":
        config["group.protocol"] = "consumer"
    else:
        config |= {
            "session.timeout.ms": options["session_ms"],
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": options["assignor"],
        }
    if options["instance_id"] is not None:
        config["group.instance.id"] = options["instance_id"]
    consumer = confluent_kafka.Consumer(config)
    ownership = Ownership()

    def revoked(_: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
        ownership.revoked(at.partition for at in partitions)

    consumer.subscribe([options["topic"]], on_revoke=revoked, on_lost=revoked)
    owes_commit = False
    while not leaving:
        messages = consumer.consume(500, timeout=POLL_MS / 1000)
        ownership.now(at.partition for at in consumer.assignment())
        owes_commit |= tell_records((m.partition(), m.offset(), m.value()) for m in messages if m.error() is None)
        if owes_commit:
            try:
                consumer.commit(asynchronous=False)
                owes_commit = False
            except confluent_kafka.KafkaException as refusal:
                tell("refused", reason=str(refusal))
                owes_commit = refusal.args[0].code() != confluent_kafka.KafkaError._NO_OFFSET
    consumer.close()


def run_kafka_python(options: dict[str, Any], leaving: Leaving) -> None:
    import kafka
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            Ownership.revoked(at.partition for at in revoked)

        def on_partitions_assigned(self, assigned: Any) -> None:
            """The loop tells it."""

    consumer = kafka.KafkaConsumer(
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        group_instance_id=options["instance_id"],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=options["session_ms"],
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=[RangePartitionAssignor],
        reconnect_backoff_ms=20,
        reconnect_backoff_max_ms=200,
    )
    consumer.subscribe([options["topic"]], listener=Listener())
    ownership = Ownership()
    owes_commit = False
    while not leaving:
        try:
            batches = consumer.poll(POLL_MS)
            ownership.now(at.partition for at in consumer.assignment())
            owes_commit |= tell_records((r.partition, r.offset, r.value) for rows in batches.values() for r in rows)
            if owes_commit:
                consumer.commit()
                owes_commit = False
        except kafka.errors.KafkaError as refusal:
            tell("refused", reason=repr(refusal))
    consumer.close(autocommit=False)


async def read_with_aiokafka(options: dict[str, Any], leaving: Leaving) -> None:
    import aiokafka
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            Ownership.revoked(at.partition for at in revoked)

        def on_partitions_assigned(self, assigned: Any) -> None:
            """The loop tells it."""

    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        group_instance_id=options["instance_id"],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=options["session_ms"],
        heartbeat_interval_ms=HEARTBEAT_MS,
        partition_assignment_strategy=(RangePartitionAssignor,),
    )
    consumer.subscribe([options["topic"]], listener=Listener())
    await consumer.start()
    ownership = Ownership()
    owes_commit = False
    while not leaving:
        try:
            batches = await consumer.getmany(timeout_ms=POLL_MS)
            ownership.now(at.partition for at in consumer.assignment())
            owes_commit |= tell_records((r.partition, r.offset, r.value) for rows in batches.values() for r in rows)
            if owes_commit:
                await consumer.commit()
                owes_commit = False
        except aiokafka.errors.KafkaError as refusal:
            tell("refused", reason=repr(refusal))
    await consumer.stop()


def run_aiokafka(options: dict[str, Any], leaving: Leaving) -> None:
    asyncio.run(read_with_aiokafka(options, leaving))


RUNS: dict[str, Callable[[dict[str, Any], Leaving], None]] = {
    "confluent": run_confluent,
    "consumer-protocol": run_confluent,
    "aiokafka": run_aiokafka,
    "kafka-python": run_kafka_python,
}


def main() -> None:
    options = json.loads(sys.argv[1])
    RUNS[options["kind"]](options, Leaving())
    tell("left")


if __name__ == "__main__":
    main()
