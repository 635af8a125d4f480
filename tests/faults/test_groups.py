"""Storms over consumer groups: members come, leave, crash and pause while producers run and the node itself dies."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import confluent_kafka
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from group_members.member import Member, wait_for_one_owner_each
from node.admin import QUICK
from node.wait import HUNG_SECONDS, eventually
from streamhouse.testing import Broker

TOPIC, GROUP = "storm", "weather"
PARTITIONS = 12
PACE_SECONDS = 0.005
"""Between two records: members must have something to read at every moment, not as much as they can."""


class Producing:
    """Numbers that go to the partitions in turn, over every crash of the node, until the block ends."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: set[str] = set()
        self.errors: list[str] = []
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "retry.backoff.ms": 20,
                **QUICK,
            }
        )
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Until everything that was sent is acknowledged."""
        self._stopped.set()
        self._thread.join(HUNG_SECONDS)

    def _run(self) -> None:
        for number in itertools.count():
            if self._stopped.wait(PACE_SECONDS):
                break
            self._producer.produce(TOPIC, str(number), partition=number % PARTITIONS, on_delivery=self._delivered)
            self._producer.poll(0)
        if self._producer.flush(HUNG_SECONDS):
            self.errors.append("some records were never acknowledged")

    def _delivered(self, error: KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.errors.append(error.str())
        else:
            self.acknowledged.add((message.value() or b"").decode())


class Commits:
    """Looks at the group's committed offsets again and again and notes each that went back between two looks,
    as only a stale member's commit can. A step that its owner mends in between is not seen."""

    def __init__(self, bootstrap: str) -> None:
        self.went_back: list[str] = []
        self.latest: dict[int, int] = {}
        self._bootstrap = bootstrap
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stopped.set()
        self._thread.join(HUNG_SECONDS)

    @property
    def total(self) -> int:
        return sum(self.latest.values())

    def _connect(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._bootstrap, **QUICK})

    def _run(self) -> None:
        admin = self._connect()
        while not self._stopped.wait(0.05):
            try:
                asked = ConsumerGroupTopicPartitions(GROUP)
                answer = admin.list_consumer_group_offsets([asked], request_timeout=5)[GROUP].result(HUNG_SECONDS)
            except KafkaException:
                # The node is down; an admin client that waits for it may go on waiting when it is up again.
                admin = self._connect()
                continue
            for at in answer.topic_partitions:
                if at.offset < self.latest.get(at.partition, 0):
                    self.went_back.append(f"{at.partition}: {self.latest[at.partition]} to {at.offset}")
                self.latest[at.partition] = at.offset


class Storm:
    """All that run, all that ever ran, and what they have read together."""

    def __init__(self, broker: Broker, commits: Commits, ending: ExitStack) -> None:
        self.broker = broker
        self.live: list[Member] = []
        self.all: list[Member] = []
        self._commits = commits
        self._ending = ending

    def join(self, *kinds: str) -> None:
        for kind in kinds:
            member = self._ending.enter_context(Member(kind, self.broker.bootstrap, GROUP, TOPIC))
            self.live.append(member)
            self.all.append(member)

    def leave(self, index: int) -> None:
        self.live.pop(index).leave()

    def wait_until_at_work(self, index: int) -> None:
        """A member that closes before it has found the node again cannot say so: its session must then run out."""
        member = self.live[index]
        goal = len(member.seen) + 30
        eventually(lambda: len(member.seen) >= goal, "the member to read and commit again")

    def crash(self, index: int) -> None:
        self.live.pop(index).crash()

    def crash_the_node(self) -> None:
        self.broker.kill()
        self.broker.start()

    def go_on(self, records: int = 200) -> None:
        """Until the group has committed that many records more."""
        goal = self._commits.total + records
        eventually(lambda: self._commits.total >= goal, f"the group to commit {records} records more")

    def seen(self) -> set[str]:
        return {value for member in self.all for value in member.values}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(durable=True, group_initial_rebalance_delay=200) as broker:
        broker.create_topic(TOPIC, PARTITIONS)
        yield broker


def weather_of_classic_members(storm: Storm) -> None:
    storm.join("confluent", "aiokafka", "confluent", "aiokafka")
    storm.go_on()
    storm.join("aiokafka", "confluent", "aiokafka", "confluent")
    storm.leave(0)
    storm.go_on()
    storm.crash(1)
    storm.crash_the_node()
    storm.join("aiokafka")
    storm.go_on()
    storm.live[0].pause()
    storm.leave(2)
    storm.join("confluent", "kafka-python")
    storm.go_on()
    storm.live[0].resume()
    storm.crash(3)
    storm.crash_the_node()
    storm.go_on()


def weather_of_consumer_protocol_members(storm: Storm) -> None:
    """Without crashes of members: the session of this protocol is the server's, and longer than a test."""
    storm.join("consumer-protocol", "consumer-protocol", "consumer-protocol")
    storm.go_on()
    storm.join("consumer-protocol")
    storm.crash_the_node()
    storm.wait_until_at_work(0)
    storm.leave(0)
    storm.go_on()
    storm.join("consumer-protocol", "consumer-protocol")
    storm.go_on()
    storm.crash_the_node()
    storm.wait_until_at_work(1)
    storm.leave(1)
    storm.go_on()


def weather_of_both_protocols(storm: Storm) -> None:
    """From one to the other and back, with the node dying around both conversions."""
    storm.join("confluent", "aiokafka", "kafka-python")
    storm.go_on()
    storm.join("consumer-protocol")
    storm.crash_the_node()
    storm.wait_until_at_work(3)
    storm.leave(0)
    storm.go_on()
    storm.join("consumer-protocol")
    storm.crash(0)
    storm.go_on()
    storm.leave(0)
    storm.crash_the_node()
    storm.wait_until_at_work(0)
    storm.join("confluent", "aiokafka")
    storm.wait_until_at_work(3)
    storm.leave(0)
    storm.crash_the_node()
    storm.wait_until_at_work(0)
    storm.leave(0)
    storm.crash_the_node()
    storm.go_on()


@pytest.mark.parametrize(
    "weather", [weather_of_classic_members, weather_of_consumer_protocol_members, weather_of_both_protocols]
)
def test_after_a_storm_each_partition_has_one_owner_and_nothing_was_lost(
    broker: Broker, weather: Callable[[Storm], None]
) -> None:
    with ExitStack() as ending:
        producing = ending.enter_context(Producing(broker.bootstrap))
        commits = ending.enter_context(Commits(broker.bootstrap))
        storm = Storm(broker, commits, ending)
        weather(storm)
        producing.stop()
        assert not producing.errors, set(producing.errors)
        wait_for_one_owner_each(storm.live, PARTITIONS)
        sent = producing.acknowledged
        eventually(lambda: commits.total == len(sent), "the committed offsets to reach the end")
        assert storm.seen() == sent, "everything was read at least once, and nothing else"
        assert not commits.went_back, "a stale member's commit was taken"


def test_a_group_outlives_a_restart_of_its_node_without_reading_again(broker: Broker) -> None:
    """An orderly restart: whoever had committed goes on from there, with the partitions that it had."""
    with ExitStack() as ending:
        producing = ending.enter_context(Producing(broker.bootstrap))
        commits = ending.enter_context(Commits(broker.bootstrap))
        storm = Storm(broker, commits, ending)
        storm.join("confluent", "aiokafka", "kafka-python")
        wait_for_one_owner_each(storm.live, PARTITIONS)
        storm.go_on()
        producing.stop()
        eventually(lambda: commits.total == len(producing.acknowledged), "the committed offsets to reach the end")
        before = storm.seen()
        read = [len(member.seen) for member in storm.live]
        owned = [member.owned for member in storm.live]
        broker.restart()
        with Producing(broker.bootstrap) as again:
            storm.go_on()
        eventually(
            lambda: commits.total == len(producing.acknowledged) + len(again.acknowledged),
            "the committed offsets to reach the new end",
        )
        assert before == producing.acknowledged
        assert [member.owned for member in storm.live] == owned
        fresh = [one.value for member, count in zip(storm.live, read, strict=True) for one in list(member.seen)[count:]]
        assert sorted(fresh) == sorted(again.acknowledged), "only the new ones, and each once"
