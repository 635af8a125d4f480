"""Faults at the Kafka port, as real clients meet them: errors, delays, connections that end, rebalances."""

from __future__ import annotations

import time

import kafka.errors
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from log_parts.batches import real
from log_parts.kafka import Kafka, fetch_request
from node.wait import eventually
from streamhouse.model.errors import InvalidInput, NotFound
from streamhouse.server.kafka.session import KafkaSession
from streamhouse.testing import Broker
from streamhouse.testing.faulty_session import FaultySession
from streamhouse.testing.kafka_faults import error_named
from streamhouse.testing.kafka_refusals import REFUSALS
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import fetch, metadata, produce
from streamhouse.wire.kafka.registry import APIS


@pytest.fixture
def broker(streamhouse_broker: Broker) -> Broker:
    streamhouse_broker.create_topic("orders")
    streamhouse_broker.create_topic("refunds")
    return streamhouse_broker


def producer_of(broker: Broker, **config: object) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "retry.backoff.ms": 10, **config})


def values(broker: Broker, topic: str = "orders") -> list[bytes]:
    return [record.value for record in broker.read(topic)]


def readers(broker: Broker, **config: object) -> Consumer:
    return Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
        | {"heartbeat.interval.ms": 100, **config}
    )


def handlers(broker: Broker) -> list[object]:
    return [connection.handler for connection in broker.node.kafka.traffic.connections]


# --- errors ---


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_producer_sends_again_what_was_refused_for_a_while(broker: Broker, idempotent: bool) -> None:
    fault = broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    producer = producer_of(broker, **{"enable.idempotence": idempotent, "linger.ms": 0})
    for number in range(50):
        producer.produce("orders", b"%d" % number)
        producer.poll(0)

    assert producer.flush(60) == 0
    assert fault.met == 2
    assert sorted(values(broker), key=int) == [b"%d" % number for number in range(50)]
    if idempotent:
        assert values(broker) == [b"%d" % number for number in range(50)]


def test_a_producer_reports_what_was_refused_for_good(broker: Broker) -> None:
    broker.faults.fail(api="Produce", error="MESSAGE_TOO_LARGE", topic="orders")
    failed: list[KafkaError] = []
    producer = producer_of(broker)
    for topic in ("orders", "refunds"):
        producer.produce(topic, b"a", on_delivery=lambda problem, _: failed.append(problem) if problem else None)
    assert producer.flush(60) == 0

    assert [problem.name() for problem in failed] == ["MSG_SIZE_TOO_LARGE"]
    assert (values(broker), values(broker, "refunds")) == ([], [b"a"])


async def test_aiokafka_meets_it_as_well(broker: Broker) -> None:
    broker.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", times=1)
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, retry_backoff_ms=10) as producer:
        await producer.send_and_wait("orders", b"a")

    assert values(broker) == [b"a"]


def test_one_topic_of_a_request_is_refused_and_the_others_are_served(broker: Broker) -> None:
    batch = real(b"a")
    request = produce.ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            produce.TopicProduceData(
                name=name, partition_data=[produce.PartitionProduceData(index=0, records=memoryview(batch))]
            )
            for name in ("orders", "refunds")
        ],
    )
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders")
    broker.faults.fail("Fetch", "OFFSET_OUT_OF_RANGE", topic="refunds")
    with Kafka(broker.bootstrap) as kafka:
        produced = kafka.call(produce, request, 9)
        fetched = kafka.call(
            fetch,
            fetch.FetchRequest(
                max_wait_ms=60_000,
                min_bytes=1,
                topics=[
                    fetch.FetchTopic(topic=name, partitions=[fetch.FetchPartition(partition_max_bytes=1000)])
                    for name in ("orders", "refunds")
                ],
            ),
            12,
        )

    codes = {topic.name: topic.partition_responses[0].error_code for topic in produced.responses}
    assert codes == {"orders": ErrorCode.NOT_LEADER_OR_FOLLOWER, "refunds": ErrorCode.NONE}
    codes = {topic.topic: topic.partitions[0].error_code for topic in fetched.responses}
    assert codes == {"orders": ErrorCode.NONE, "refunds": ErrorCode.OFFSET_OUT_OF_RANGE}
    assert (values(broker), values(broker, "refunds")) == ([], [b"a"])


def test_what_metadata_says_of_a_topic_is_refused_and_its_brokers_are_named(broker: Broker) -> None:
    broker.faults.fail("Metadata", "LEADER_NOT_AVAILABLE", topic="orders")
    request = metadata.MetadataRequest(topics=None)
    with Kafka(broker.bootstrap) as kafka:
        first, second = kafka.call(metadata, request, 12), kafka.call(metadata, request, 12)

    assert len(first.brokers) == 1
    assert {topic.name: topic.error_code for topic in first.topics} == {"orders": 5, "refunds": 0}
    assert {topic.name: topic.error_code for topic in second.topics} == {"orders": 0, "refunds": 0}


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("Metadata", "LEADER_NOT_AVAILABLE"),
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("SyncGroup", "REBALANCE_IN_PROGRESS"),
        ("Heartbeat", "REBALANCE_IN_PROGRESS"),
        ("ListOffsets", "LEADER_NOT_AVAILABLE"),
        ("Fetch", "NOT_LEADER_OR_FOLLOWER"),
    ],
)
def test_a_consumer_gets_over_what_passes(broker: Broker, api: str, error: str) -> None:
    fault = broker.faults.fail(api, error)
    broker.produce("orders", "a")
    consumer = readers(broker, **{"retry.backoff.ms": 10})
    consumer.subscribe(["orders"])

    def polled() -> bytes | None:
        message = consumer.poll(0.1)
        return message.value() if message is not None and message.error() is None else None

    assert eventually(polled, "the record comes") == b"a"
    eventually(lambda: polled() is None and fault.met, f"{api} was refused")
    consumer.close()


def test_a_member_of_the_newer_protocol_that_is_fenced_joins_again(broker: Broker) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers", "group.protocol": "consumer"})
    consumer.subscribe(["orders"])
    eventually(lambda: consumer.poll(0.05) or consumer.assignment(), "the consumer has its partition")

    fault = broker.faults.fail("ConsumerGroupHeartbeat", "FENCED_MEMBER_EPOCH")
    eventually(lambda: consumer.poll(0.05) or fault.met, "it was fenced")

    eventually(lambda: consumer.poll(0.05) or consumer.assignment(), "it is back")
    consumer.close()


def test_a_commit_that_is_refused_is_raised_by_the_client(broker: Broker) -> None:
    broker.faults.fail("OffsetCommit", "UNKNOWN_MEMBER_ID")
    consumer = readers(broker)

    with pytest.raises(KafkaException, match="UNKNOWN_MEMBER_ID"):
        consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)

    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    broker.wait(group="readers", topic="orders", committed=1)
    consumer.close()


def test_administrators_are_refused_too(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    broker.faults.fail("CreateTopics", "POLICY_VIOLATION")
    broker.faults.fail("DeleteTopics", "TOPIC_AUTHORIZATION_FAILED")

    with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
        admin.create_topics([NewTopic("new", 1, 1)])["new"].result()
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        admin.delete_topics(["orders"])["orders"].result()
    admin.delete_topics(["orders"])["orders"].result()


@pytest.mark.parametrize("api", sorted(REFUSALS))
def test_every_api_that_can_be_refused_is_so_in_all_its_versions(broker: Broker, api: str) -> None:
    """With the message that is empty: there is an answer, and it can be read."""
    known = next(each for each in APIS.values() if each.name == api)
    with Kafka(broker.bootstrap) as kafka:
        module = __import__(f"streamhouse.wire.kafka.messages.{_module(api)}", fromlist=["x"])
        message = getattr(module, f"{api}Request")()
        if api == "Produce":
            message = produce.ProduceRequest(acks=-1)
        for version in range(known.min_version, known.max_version + 1):
            fault = broker.faults.fail(api, "UNKNOWN_SERVER_ERROR")
            kafka.call(module, message, version)
            assert fault.met == 1


def _module(api: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in api).lstrip("_")


# --- delays and connections ---


def test_requests_are_slow_and_arrive(broker: Broker) -> None:
    fault = broker.faults.slow("Produce", delay_ms=200)
    begun_s = time.monotonic()
    with Kafka(broker.bootstrap) as kafka:
        kafka.produce_values("orders", b"a")

    assert time.monotonic() - begun_s >= 0.19
    assert fault.met == 1
    assert values(broker) == [b"a"]


def test_all_requests_may_be_slow_until_a_heal(broker: Broker) -> None:
    fault = broker.faults.slow(delay_ms=20, times=None)
    with Kafka(broker.bootstrap) as kafka:
        kafka.produce_values("orders", b"a", b"b")
        kafka.read("orders")
    met = fault.met
    assert met >= 3

    broker.faults.heal()
    with Kafka(broker.bootstrap) as kafka:
        kafka.read("orders")
    assert fault.met == met


def test_requests_on_one_connection_are_answered_in_their_order(broker: Broker) -> None:
    broker.faults.slow("Metadata", delay_ms=50, times=None)
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=1)
    with Kafka(broker.bootstrap) as kafka:
        kafka.send_produce("orders", real(b"refused"))
        kafka.send_produce("orders", real(b"taken"))
        kafka.send(metadata, metadata.MetadataRequest(topics=[]), 12)
        kafka.send_produce("orders", real(b"taken too"))
        kafka.send(fetch, fetch_request("orders", 0), 12)
        frames = [kafka.receive_frame() for _ in range(5)]

    correlation_ids = [int.from_bytes(frame[:4], "big") for frame in frames]
    assert correlation_ids == sorted(correlation_ids)
    assert values(broker) == [b"taken", b"taken too"]


def test_a_refusal_waits_for_the_answer_to_what_came_before_it(broker: Broker) -> None:
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
    with Kafka(broker.bootstrap) as kafka:
        kafka.send(fetch, fetch_request("orders", 0, max_wait_ms=200), 12)  # at the end of the log
        kafka.send_produce("orders", real(b"refused"))
        first, second = (kafka.receive_frame() for _ in range(2))

    assert int.from_bytes(first[:4], "big") < int.from_bytes(second[:4], "big")


def test_what_an_idempotent_producer_sent_behind_a_refused_batch_is_refused_as_well(broker: Broker) -> None:
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
    batches = [real(value, producer=(7, 0, sequence)) for sequence, value in enumerate([b"a", b"b"])]
    codes: list[int] = []
    with Kafka(broker.bootstrap) as kafka:
        for _ in range(2):
            for batch in batches:
                kafka.send_produce("orders", batch)
            answers = [kafka.receive() for _ in batches]
            codes += [answer.responses[0].partition_responses[0].error_code for answer in answers]

    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert codes == [refused, refused, ErrorCode.NONE, ErrorCode.NONE]
    assert values(broker) == [b"a", b"b"]


def test_all_connections_end_and_clients_come_back(broker: Broker) -> None:
    producer = producer_of(broker)
    producer.produce("orders", b"a")
    assert producer.flush(60) == 0
    with Kafka(broker.bootstrap) as kafka:
        kafka.read("orders")
        broker.faults.drop_connections()
        assert kafka.is_closed_by_broker()

    producer.produce("orders", b"b")
    assert producer.flush(60) == 0
    assert values(broker) == [b"a", b"b"]


def test_a_connection_ends_before_a_request_is_carried_out(broker: Broker) -> None:
    broker.faults.drop_connections("Produce")
    with Kafka(broker.bootstrap) as kafka:
        kafka.send_produce("orders", real(b"a"))
        assert kafka.is_closed_by_broker()

    assert values(broker) == []


@pytest.mark.parametrize(("idempotent", "copies"), [(True, 1), (False, 2)])
def test_an_answer_is_lost_and_only_an_idempotent_producer_stores_its_record_once(
    broker: Broker, idempotent: bool, copies: int
) -> None:
    fault = broker.faults.drop_connections("Produce", lost_answer=True)
    assert fault is not None
    producer = producer_of(broker, **{"enable.idempotence": idempotent})
    producer.produce("orders", b"a")

    assert producer.flush(60) == 0
    assert fault.met == 1
    assert values(broker) == [b"a"] * copies


def test_a_commit_whose_answer_was_lost_is_made_again(broker: Broker) -> None:
    broker.faults.drop_connections("OffsetCommit", lost_answer=True)
    consumer = readers(broker)

    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)

    broker.wait(group="readers", topic="orders", committed=1)
    consumer.close()


# --- rebalances ---


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_rebalance_is_forced_and_members_come_back(broker: Broker, protocol: str) -> None:
    config = {"group.protocol": protocol} | ({} if protocol == "consumer" else {"heartbeat.interval.ms": 100})
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers", **config})
    revoked: list[object] = []
    assigned: list[object] = []
    consumer.subscribe(
        ["orders"],
        on_assign=lambda _, partitions: assigned.extend(partitions),
        on_revoke=lambda _, partitions: revoked.extend(partitions),
    )
    eventually(lambda: consumer.poll(0.05) or assigned, "the consumer has its partition")
    broker.wait(group="readers", members=1)
    assigned.clear()

    broker.faults.rebalance("readers")

    eventually(lambda: consumer.poll(0.05) or revoked, "its partition is revoked")
    eventually(lambda: consumer.poll(0.05) or assigned, "and it gets it again")
    broker.wait(group="readers", members=1)
    consumer.close()


def test_a_group_that_there_is_not_cannot_be_rebalanced(broker: Broker) -> None:
    with pytest.raises(NotFound, match=r"group 'nobody' cannot be rebalanced: GROUP_ID_NOT_FOUND"):
        broker.faults.rebalance("nobody")


# --- what costs nothing ---


def test_nothing_stands_before_a_session_unless_there_are_faults(broker: Broker) -> None:
    with Kafka(broker.bootstrap) as kafka:
        kafka.produce_values("orders", b"a")
        assert [type(handler) for handler in handlers(broker)] == [KafkaSession]

        broker.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", times=None)
        assert [type(handler) for handler in handlers(broker)] == [FaultySession]
        kafka.produce_values("orders", b"b")
        assert kafka.fetch("orders", 0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

        broker.faults.heal()
        assert [type(handler) for handler in handlers(broker)] == [KafkaSession]
        assert [record.value for record in kafka.read("orders")] == [b"a", b"b"]
        with Kafka(broker.bootstrap) as other:
            other.produce_values("orders", b"c")
            assert {type(handler) for handler in handlers(broker)} == {KafkaSession}


def test_faults_outlive_a_restart_and_end_with_a_heal(broker: Broker) -> None:
    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=None)
    broker.restart()
    with Kafka(broker.bootstrap) as kafka:
        assert kafka.produce("orders", real(b"a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        broker.faults.heal()
        assert kafka.produce("orders", real(b"a")).error_code == ErrorCode.NONE


def test_a_broker_with_faults_and_clients_that_wait_can_be_closed() -> None:
    with Broker() as broker:
        broker.create_topic("orders")
        broker.faults.slow(delay_ms=600_000, times=None)
        kafka = Kafka(broker.bootstrap)
        kafka.send_produce("orders", real(b"a"))
    kafka.close()


def test_a_heal_ends_a_delay(broker: Broker) -> None:
    fault = broker.faults.slow("Produce", delay_ms=600_000)
    with Kafka(broker.bootstrap) as kafka:
        kafka.send_produce("orders", real(b"a"))
        eventually(lambda: fault.met, "the request waits")

        broker.faults.heal()

        kafka.receive()
    assert values(broker) == [b"a"]


# --- what is wrong ---


def test_what_is_misspelled_is_explained(broker: Broker) -> None:
    faults = broker.faults
    with pytest.raises(InvalidInput, match=r"no API 'Prodce' .*did you mean Produce"):
        faults.fail("Prodce", "NOT_LEADER_OR_FOLLOWER")
    with pytest.raises(InvalidInput, match=r"no error code 'NOT_LEADER_OR_FOLOWER' .*did you mean NOT_LEADER_OR_FOLL"):
        faults.fail("Produce", "NOT_LEADER_OR_FOLOWER")
    with pytest.raises(InvalidInput, match=r"a DescribeAcls request cannot be refused .*Produce"):
        faults.fail("DescribeAcls", "NOT_LEADER_OR_FOLLOWER")
    with pytest.raises(InvalidInput, match="NONE is no error"):
        faults.fail("Produce", 0)
    with pytest.raises(InvalidInput, match="no error code 9999"):
        faults.fail("Produce", 9999)
    with pytest.raises(InvalidInput, match="times=0"):
        faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=0)
    with pytest.raises(InvalidInput, match=r"a Heartbeat request names no topics"):
        faults.fail("Heartbeat", "REBALANCE_IN_PROGRESS", topic="orders")
    with pytest.raises(InvalidInput, match="delay_ms=-1"):
        faults.slow("Fetch", delay_ms=-1)
    with pytest.raises(InvalidInput, match="no error code -185"):
        faults.fail("Produce", KafkaError(KafkaError._TIMED_OUT))
    with pytest.raises(InvalidInput, match="not every request names topics"):
        faults.slow(delay_ms=1, topic="orders")
    for ignored in ({"topic": "orders"}, {"times": 3}, {"times": None}, {"lost_answer": True}):
        with pytest.raises(InvalidInput, match=r"without an API all connections end .*name one: drop_connections\("):
            faults.drop_connections(**ignored)
    for far in ("1h", None, 3.5, True):
        with pytest.raises(InvalidInput, match=r"not how far a clock can jump \(milliseconds"):
            faults.jump_clock(far)
    assert [type(handler) for handler in handlers(broker) if type(handler) is FaultySession] == []


def test_faults_of_the_object_store_that_could_not_come_are_refused(broker: Broker) -> None:
    faults = broker.faults
    for times in (-1, 0, 1.5, "2", True):
        for inject in (faults.fail_puts, faults.fail_reads, lambda times: faults.slow_puts(1, times)):
            with pytest.raises(InvalidInput, match="no number of times"):
                inject(times)
    for delay in (-1, "x", None, float("nan")):
        with pytest.raises(InvalidInput, match=r"is no delay \(milliseconds"):
            faults.slow_puts(delay)
    broker.produce("orders", "a")
    broker.flush()


def test_errors_may_be_called_what_clients_call_them(broker: Broker) -> None:
    librdkafka = {name: getattr(KafkaError, name) for name in dir(KafkaError) if name.isupper() and name[0] != "_"}
    known = {code.value for code in ErrorCode}
    of_kafka = {name: code for name, code in librdkafka.items() if isinstance(code, int) and code in known and code}
    assert "NOT_LEADER_FOR_PARTITION" in of_kafka
    python = [error for error in vars(kafka.errors).values() if getattr(error, "errno", None) in known - {0}]
    of_kafka |= {error.message: error.errno for error in python}

    assert {name: error_named(name) for name in of_kafka} == of_kafka
    assert error_named(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.faults.fail("Produce", "not_leader_for_partition")
    with Kafka(broker.bootstrap) as client:
        assert client.produce("orders", real(b"a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_names_may_be_written_in_small_letters_and_codes_as_numbers(broker: Broker) -> None:
    broker.faults.fail("produce", 6)
    with Kafka(broker.bootstrap) as kafka:
        assert kafka.produce("orders", real(b"a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
