"""Groups of real clients that go from the classic protocol to the consumer protocol and back, one member at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, ConsumerGroupType
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from compat.conftest import Broker, NewTopicName, unused_name
from group_members.member import LONG_SESSION_MS, Member, wait_for_one_owner_each
from node.process import Node
from node.wait import HUNG_SECONDS, eventually

PARTITIONS = 6
NEWER = "consumer-protocol"
CLASSIC = [
    ("confluent", "range"),
    ("confluent", "cooperative-sticky"),
    ("aiokafka", "range"),
    ("kafka-python", "range"),
]

Join = Callable[..., Member]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """KIP-848 members beat often, so that they hear soon of what classic members gave up."""
    elsewhere = os.environ.get("KAFKA_BOOTSTRAP")
    if elsewhere:
        yield Broker(bootstrap=elsewhere)
        return
    with Node(
        tmp_path_factory.mktemp("node"),
        *("--group-initial-rebalance-delay", "200ms"),
        *("--group-consumer-heartbeat-interval", "300ms"),
        *("--group-consumer-session-timeout", "6s"),
    ) as node:
        yield Broker(bootstrap=node.bootstrap)


@pytest.fixture
def topic(new_topic: NewTopicName) -> str:
    return new_topic(PARTITIONS)


@pytest.fixture
def group() -> str:
    return unused_name()


@pytest.fixture
def join(broker: Broker, group: str, topic: str) -> Iterator[Join]:
    """Starts a member of the test's group; whoever still runs ends with the test."""
    with ExitStack() as running:

        def start(kind: str, **options: Any) -> Member:
            return running.enter_context(Member(kind, broker.bootstrap, group, topic, **options))

        yield start


class Numbers:
    """Records one after the other, to the partitions in turn."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": "all"})
        self._topic = topic
        self.sent: list[str] = []

    def send(self, count: int = 60) -> None:
        for number in range(len(self.sent), len(self.sent) + count):
            self._producer.produce(self._topic, str(number), partition=number % PARTITIONS)
            self.sent.append(str(number))
        assert self._producer.flush(HUNG_SECONDS) == 0, "records were never acknowledged"


def committed_total(admin: AdminClient, group: str) -> int:
    asked = ConsumerGroupTopicPartitions(group)
    answer = admin.list_consumer_group_offsets([asked])[group].result(HUNG_SECONDS)
    return sum(at.offset for at in answer.topic_partitions if at.offset > 0)


def lengthen_sessions(admin: AdminClient, group: str) -> None:
    """Those of the consumer protocol."""
    session = ConfigEntry(
        "consumer.session.timeout.ms", str(LONG_SESSION_MS), incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[session])
    admin.incremental_alter_configs([resource])[resource].result(HUNG_SECONDS)


def kind_of(admin: AdminClient, group: str) -> ConsumerGroupType:
    listed = admin.list_consumer_groups().result(HUNG_SECONDS).valid
    (found,) = [one for one in listed if one.group_id == group]
    return found.type


@pytest.mark.parametrize(("classic", "assignor"), CLASSIC)
def test_a_group_is_rolled_to_the_newer_protocol_and_back_and_every_record_is_read(
    broker: Broker, admin: AdminClient, group: str, topic: str, join: Join, classic: str, assignor: str
) -> None:
    numbers = Numbers(broker.bootstrap, topic)
    live = [join(classic, assignor=assignor), join(classic, assignor=assignor)]
    everybody = list(live)

    def settle(kind: ConsumerGroupType) -> None:
        numbers.send()
        wait_for_one_owner_each(live, PARTITIONS)
        numbers.send()
        eventually(lambda: committed_total(admin, group) == len(numbers.sent), "the commit of everything")
        assert kind_of(admin, group) == kind

    def replace(index: int, kind: str) -> None:
        """A new one first, then the old one goes: at no time is there nobody."""
        live.append(join(kind, assignor=assignor))
        everybody.append(live[-1])
        numbers.send()
        wait_for_one_owner_each(live, PARTITIONS)
        live.pop(index).leave()

    settle(ConsumerGroupType.CLASSIC)
    replace(0, NEWER)
    settle(ConsumerGroupType.CONSUMER)
    replace(0, NEWER)
    settle(ConsumerGroupType.CONSUMER)
    replace(0, classic)
    settle(ConsumerGroupType.CONSUMER)
    replace(0, classic)
    settle(ConsumerGroupType.CLASSIC)
    eventually(
        lambda: {value for member in everybody for value in member.values} == set(numbers.sent),
        "everything that was produced",
    )


def test_clients_of_every_kind_share_one_group_and_read_everything_once(
    broker: Broker, admin: AdminClient, group: str, topic: str, join: Join
) -> None:
    members = [join(kind) for kind in ("confluent", NEWER, "aiokafka", "kafka-python", NEWER)]
    wait_for_one_owner_each(members, PARTITIONS)
    numbers = Numbers(broker.bootstrap, topic)
    numbers.send(120)
    eventually(lambda: sum(len(member.values) for member in members) >= 120, "everything that was produced")
    eventually(lambda: committed_total(admin, group) == 120, "the commit of everything")
    seen = [value for member in members for value in member.values]
    assert sorted(seen) == sorted(numbers.sent), "in a stable group everything is read once"
    assert not any(member.refusals for member in members)


@pytest.mark.parametrize(("before", "after"), [("confluent", NEWER), (NEWER, "confluent")])
def test_a_static_member_comes_back_in_the_other_protocol_and_has_its_partitions(
    admin: AdminClient, group: str, join: Join, before: str, after: str
) -> None:
    lengthen_sessions(admin, group)
    stays = join(before, instance_id="first", session_ms=LONG_SESSION_MS)
    changes = join(before, instance_id="second", session_ms=LONG_SESSION_MS)
    wait_for_one_owner_each([stays, changes], PARTITIONS)
    moved = changes.owned
    changes.crash()
    again = join(after, instance_id="second", session_ms=LONG_SESSION_MS)
    wait_for_one_owner_each([stays, again], PARTITIONS)
    assert again.owned == moved
    assert kind_of(admin, group) == ConsumerGroupType.CONSUMER


def test_a_classic_member_that_vanishes_from_a_consumer_group_is_removed_after_its_own_session(join: Join) -> None:
    stays, vanishes = join(NEWER), join("confluent")
    wait_for_one_owner_each([stays, vanishes], PARTITIONS)
    vanishes.crash()
    wait_for_one_owner_each([stays], PARTITIONS)


def test_when_the_last_member_of_the_newer_protocol_vanishes_the_classic_ones_go_on_as_before(
    admin: AdminClient, group: str, join: Join
) -> None:
    stays, vanishes = join("confluent"), join(NEWER)
    wait_for_one_owner_each([stays, vanishes], PARTITIONS)
    assert kind_of(admin, group) == ConsumerGroupType.CONSUMER
    vanishes.crash()
    wait_for_one_owner_each([stays], PARTITIONS)
    assert kind_of(admin, group) == ConsumerGroupType.CLASSIC
