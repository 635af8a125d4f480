"""Real clients under faults, and the history of what they were told: the checker's input."""

from __future__ import annotations

import hashlib
import itertools
import random
import threading
from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import Self

import confluent_kafka
from confluent_kafka import KafkaError, TopicPartition

from faults.checker import Content, Finding, History, Outcome, Partition, Poll, Seek, Send, check
from node import admin
from node.admin import QUICK
from node.wait import HUNG_SECONDS, eventually

# Refusals that say for certain that nothing was written. Any other error leaves it open.
_REFUSALS = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.TOPIC_EXCEPTION}


class Workload:
    """One topic, one idempotent producer with acks=all, and everything that was sent and read."""

    def __init__(self, bootstrap: str, topic: str = "history", *, partitions: int = 2, value_bytes: int = 300) -> None:
        self.topic = topic
        self.partitions = partitions
        self._bootstrap = bootstrap
        self._value_bytes = value_bytes
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._sent: list[tuple[Partition, Content]] = []
        self._outcomes: dict[Content, tuple[Outcome, int | None]] = {}
        self._reads: list[Seek | Poll] = []
        self._errors: list[str] = []
        self.slowest_seconds = 0.0
        """The longest that an acknowledgement took, from the hand-over of its record."""
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
                # Never: faults may last longer than any one wait, and `settle` says when it is enough.
                "message.timeout.ms": 0,
                **QUICK,
            }
        )

    def create_topic(self, *, exist_ok: bool = False, **config: str) -> None:
        try:
            create_topic(self._bootstrap, self.topic, self.partitions, **config)
        except confluent_kafka.KafkaException as problem:
            if not exist_ok or problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    # -- sending ------------------------------------------------------------------------------------------------

    def send(self, count: int) -> None:
        """Hand records to the producer, which sends them in the background and again when it must."""
        for _ in range(count):
            number = next(self._numbers)
            partition = number % self.partitions
            key, value = f"key-{number}".encode(), self._value(number)
            content = fingerprint(key, value)
            self._sent.append(((self.topic, partition), content))
            self._producer.produce(self.topic, value, key, partition, on_delivery=self._delivered)
            self._producer.poll(0)

    def _value(self, number: int) -> bytes:
        source = random.Random(number)
        return f"value-{number}:".encode() + source.randbytes(source.randrange(self._value_bytes))

    def _delivered(self, error: KafkaError | None, message: confluent_kafka.Message) -> None:
        content = fingerprint(message.key(), message.value())
        if error is None:
            self.slowest_seconds = max(self.slowest_seconds, message.latency() or 0.0)
            outcome: tuple[Outcome, int | None] = (Outcome.ACKNOWLEDGED, message.offset())
        else:
            self._errors.append(error.str())
            outcome = (Outcome.REFUSED if error.code() in _REFUSALS else Outcome.UNKNOWN, None)
        with self._lock:
            self._outcomes[content] = outcome

    @property
    def acknowledged(self) -> int:
        self._producer.poll(0)
        with self._lock:
            return sum(outcome is Outcome.ACKNOWLEDGED for outcome, _ in self._outcomes.values())

    @property
    def settled(self) -> bool:
        """Every record has its outcome."""
        self._producer.poll(0)
        with self._lock:
            return len(self._outcomes) == len(self._sent)

    def _open(self) -> dict[Partition, int]:
        with self._lock:
            return dict(Counter(partition for partition, content in self._sent if content not in self._outcomes))

    def wait_acknowledged(self, count: int) -> None:
        eventually(lambda: self.acknowledged >= count, f"{count} acknowledgements")

    def send_in_flight(self, count: int, *, acknowledged: int) -> None:
        """Send, and return as soon as so many more are acknowledged, with the others still on their way.

        The count begins before the sending: acknowledgements arrive while it goes on."""
        assert acknowledged <= count
        goal = self.acknowledged + acknowledged
        self.send(count)
        self.wait_acknowledged(goal)

    def settle(self) -> None:
        """Wait until every record is acknowledged: faults have ended, and the producer does not give up."""
        try:
            eventually(lambda: self.settled, "every record's outcome")
        except AssertionError as problem:
            problem.add_note(f"records without an outcome, by partition: {self._open()}")
            raise
        assert self.acknowledged == len(self._sent), f"some records were given up: {set(self._errors)}"

    # -- reading ------------------------------------------------------------------------------------------------

    def read_all(self, consumer: str = "reader") -> None:
        """Read every partition from its beginning to its end."""
        client = _consumer(self._bootstrap, "enable.partition.eof")
        try:
            targets = [TopicPartition(self.topic, number, 0) for number in range(self.partitions)]
            client.assign(targets)
            self._note(Seek(consumer=consumer, partition=(self.topic, at.partition), offset=0) for at in targets)
            ended: set[int] = set()
            while len(ended) < self.partitions:
                # It returns after the time-out even if it has something, unless it has as many as were asked for.
                messages = eventually(lambda: client.consume(500, timeout=0.02), "a record or the end of a partition")
                ended |= {message.partition() for message in messages if _is_end(message)}
                self._note(self._polls(consumer, messages))
        finally:
            client.close()

    def tail(self, consumer: str = "tail") -> Tail:
        """A reader that follows all partitions in the background, over every crash, from now until it is closed."""
        return Tail(self, consumer)

    def _note(self, reads: Iterable[Seek | Poll]) -> None:
        with self._lock:
            self._reads.extend(reads)

    def _polls(self, consumer: str, messages: list[confluent_kafka.Message]) -> list[Poll]:
        """One poll per message keeps the order that the application saw."""
        return [
            Poll(
                consumer=consumer,
                partition=(message.topic(), message.partition()),
                records=((message.offset(), fingerprint(message.key(), message.value())),),
            )
            for message in messages
            if not _failed(message)
        ]

    # -- judging ------------------------------------------------------------------------------------------------

    def history(self) -> History:
        with self._lock:
            sends = [
                Send(
                    producer="producer",
                    partition=partition,
                    content=content,
                    outcome=self._outcomes.get(content, (Outcome.UNKNOWN, None))[0],
                    offset=self._outcomes.get(content, (Outcome.UNKNOWN, None))[1],
                )
                for partition, content in self._sent
            ]
            return History(sends=sends, reads=list(self._reads))

    def assert_holds(self) -> None:
        """Read everything once more and let the checker judge all that was ever seen."""
        self.read_all()
        findings = check(self.history())
        assert not findings, _report(findings)


class Tail:
    def __init__(self, workload: Workload, name: str) -> None:
        self._workload = workload
        self._name = name
        self._stop = threading.Event()
        self._problems: list[str] = []
        self._seen = 0
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(HUNG_SECONDS)
        if error is None:
            assert not self._problems, self._problems

    @property
    def seen(self) -> int:
        return self._seen

    def _follow(self) -> None:
        workload = self._workload
        client = _consumer(workload._bootstrap)
        positions = dict.fromkeys(range(workload.partitions), 0)
        try:
            client.assign([TopicPartition(workload.topic, number, offset) for number, offset in positions.items()])
            while not self._stop.is_set():
                for message in client.consume(100, timeout=0.05):
                    if _claims_truncation(message):
                        client.seek(TopicPartition(workload.topic, message.partition(), positions[message.partition()]))
                        continue
                    polls = workload._polls(self._name, [message])
                    workload._note(polls)
                    self._seen += len(polls)
                    if polls:
                        positions[message.partition()] = message.offset() + 1
        except confluent_kafka.KafkaException as problem:
            # Among others: its position is out of range, so the high watermark went back.
            self._problems.append(str(problem))
        finally:
            client.close()


def create_topic(bootstrap: str, topic: str, partitions: int, **config: str) -> None:
    admin.create_topic(bootstrap, topic, partitions, {key.replace("_", "."): value for key, value in config.items()})


def fingerprint(key: bytes | None, value: bytes | None) -> str:
    """Names a record for people, and differs if any byte does."""
    digest = hashlib.sha256(repr((key, value)).encode()).hexdigest()[:16]
    return f"{(key or b'').decode(errors='replace')}#{digest}"


def _consumer(bootstrap: str, *switches: str) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "history",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
            "fetch.error.backoff.ms": 20,
            **QUICK,
            **dict.fromkeys(switches, True),
        }
    )


def _is_end(message: confluent_kafka.Message) -> bool:
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF


def _claims_truncation(message: confluent_kafka.Message) -> bool:
    """librdkafka asks where the epoch of its position ends, and compares the answer with the position that it has when
    the answer comes: if leaders change twice meanwhile, that may be of a later epoch. So its word is not enough. Who
    reads on from the same position finds out, by an offset that is out of range or a record that has changed."""
    error = message.error()
    return error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET and "truncation" in error.str()


def _failed(message: confluent_kafka.Message) -> bool:
    """True for what is no record; an error that no retry heals is raised."""
    error = message.error()
    if error is not None and not _is_end(message) and not error.retriable():
        raise confluent_kafka.KafkaException(error)
    return error is not None


def _report(findings: list[Finding]) -> str:
    shown = "\n".join(str(finding) for finding in findings[:20])
    return f"{len(findings)} violations:\n{shown}"
