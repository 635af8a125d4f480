"""What an acknowledgement means, topics that appear when first named, limits, and producers that never repeat."""

from __future__ import annotations

import asyncio
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import kafka.errors
import pytest
from confluent_kafka import KafkaError

from compat.conftest import Broker, NewTopicName, unused_name
from node.process import Node
from node.raw import RawConnection, build_batch, produce_request, read_batches, read_values
from node.wait import HUNG_SECONDS, eventually

START_MS = 1_700_000_000_000


def send_with_confluent(broker: Broker, topic: str, values: list[bytes], **config: Any) -> list[int]:
    """The offsets that were acknowledged; the first error is raised."""
    settings = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0, **config}
    producer = confluent_kafka.Producer(settings)
    offsets: list[int] = []
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            errors.append(error)
        else:
            offsets.append(message.offset())

    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(HUNG_SECONDS) == 0
    if errors:
        raise confluent_kafka.KafkaException(errors[0])
    return offsets


# -- acknowledgements -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_confluent_records_arrive_whatever_the_acknowledgement(
    broker: Broker, raw: RawConnection, new_topic: NewTopicName, acks: str
) -> None:
    topic = new_topic()
    values = [f"{number}".encode() for number in range(20)]
    offsets = send_with_confluent(broker, topic, values, acks=acks)
    if acks != "0":
        assert offsets == list(range(20))
    eventually(lambda: raw.list_offset(topic, -1).offset == 20, "all records")
    assert list(read_values(raw.fetch(topic, 0).records).values()) == values


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_kafka_python_records_arrive_whatever_the_acknowledgement(
    broker: Broker, raw: RawConnection, new_topic: NewTopicName, acks: int
) -> None:
    topic = new_topic()
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, acks=acks, enable_idempotence=False)
    for number in range(20):
        producer.send(topic, f"{number}".encode(), partition=0)
    producer.flush(HUNG_SECONDS)
    producer.close()
    eventually(lambda: raw.list_offset(topic, -1).offset == 20, "all records")


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_aiokafka_records_arrive_whatever_the_acknowledgement(
    broker: Broker, raw: RawConnection, new_topic: NewTopicName, acks: int | str
) -> None:
    topic = new_topic()

    async def send() -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks=acks) as producer:
            for number in range(20):
                await producer.send(topic, f"{number}".encode(), partition=0)
            await producer.flush()

    asyncio.run(send())
    eventually(lambda: raw.list_offset(topic, -1).offset == 20, "all records")


def test_a_produce_without_acknowledgement_gets_no_answer(raw: RawConnection, new_topic: NewTopicName) -> None:
    topic = new_topic()
    raw.send(produce_request(topic, build_batch(b"silent"), acks=0))
    # The next answer on the connection belongs to the next request, not to the silent one.
    assert raw.list_offset(topic, -2).offset == 0
    eventually(lambda: raw.list_offset(topic, -1).offset == 1, "the record")


def test_a_nonsense_acknowledgement_is_refused(raw: RawConnection, new_topic: NewTopicName) -> None:
    topic = new_topic()
    assert raw.produce(topic, build_batch(b"x"), acks=7).error_code == 21  # INVALID_REQUIRED_ACKS
    assert raw.list_offset(topic, -1).offset == 0


# -- topics that appear ---------------------------------------------------------------------------------------------


def test_a_topic_appears_when_a_producer_names_it(broker: Broker, raw: RawConnection) -> None:
    topic = unused_name()
    assert send_with_confluent(broker, topic, [b"first"]) == [0]
    assert len(raw.metadata(topic).topics[0].partitions) == 4


def test_a_topic_does_not_appear_when_the_client_says_so(raw: RawConnection) -> None:
    answer = raw.metadata(unused_name(), create=False)
    assert answer.topics[0].error_code == 3  # UNKNOWN_TOPIC_OR_PARTITION


def test_no_topic_appears_when_the_node_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    with (
        Node(tmp_path_factory.mktemp("node"), env={"STREAMHOUSE_AUTO_CREATE_TOPICS": "false"}) as node,
        RawConnection(node.address) as raw,
    ):
        assert raw.metadata("wanted", create=True).topics[0].error_code == 3
        assert raw.produce("wanted", build_batch(b"x")).error_code == 3


def test_a_free_port_is_picked_and_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Node(tmp_path_factory.mktemp("node"), port=0) as node, RawConnection(node.address) as raw:
        (told,) = raw.metadata().brokers
        assert node.port != 0
        assert (told.host, told.port) == node.address


# -- limits ---------------------------------------------------------------------------------------------------------


def test_a_batch_above_the_topics_limit_is_refused(broker: Broker, raw: RawConnection, new_topic: NewTopicName) -> None:
    topic = new_topic(max_message_bytes="2000")
    with pytest.raises(confluent_kafka.KafkaException) as failure:
        send_with_confluent(broker, topic, [b"x" * 5000])
    assert failure.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert raw.list_offset(topic, -1).offset == 0
    assert send_with_confluent(broker, topic, [b"x" * 500]) == [0]


def test_a_batch_whose_bytes_were_changed_is_refused(raw: RawConnection, new_topic: NewTopicName) -> None:
    topic = new_topic()
    batch = bytearray(build_batch(b"precious"))
    batch[-3] ^= 1
    assert raw.produce(topic, bytes(batch)).error_code == 2  # CORRUPT_MESSAGE
    assert raw.list_offset(topic, -1).offset == 0


def test_a_partition_that_is_not_there_is_refused(raw: RawConnection, new_topic: NewTopicName) -> None:
    assert raw.produce(new_topic(), build_batch(b"x"), partition=7).error_code == 3


def test_log_append_time_is_the_nodes_clock(raw: RawConnection, new_topic: NewTopicName) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    answer = raw.produce(topic, build_batch(b"a", b"b", timestamp=START_MS))
    assert answer.error_code == 0
    assert answer.log_append_time_ms > START_MS + 1_000_000
    (batch,) = read_batches(raw.fetch(topic, 0).records)
    records = list(batch)
    assert batch.timestamp_type == 1
    assert {record.timestamp for record in records} == {answer.log_append_time_ms}


# -- producers that never repeat themselves --------------------------------------------------------------------------


def test_every_clients_idempotent_producer_works(broker: Broker, raw: RawConnection, new_topic: NewTopicName) -> None:
    topic = new_topic()
    assert send_with_confluent(broker, topic, [b"a"] * 50, **{"enable.idempotence": True}) == list(range(50))

    async def send() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True)
        async with producer:
            for _ in range(50):
                await producer.send_and_wait(topic, b"b", partition=0)

    asyncio.run(send())
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True)
    pending = [producer.send(topic, b"c", partition=0) for _ in range(50)]
    assert [future.get(HUNG_SECONDS).offset for future in pending] == list(range(100, 150))
    producer.close()
    assert raw.list_offset(topic, -1).offset == 150


def test_producer_ids_are_never_given_twice(broker: Broker) -> None:
    with RawConnection(broker.address) as one, RawConnection(broker.address) as two:
        given = [connection.init_producer_id() for _ in range(20) for connection in (one, two)]
    assert all(answer.error_code == 0 and answer.producer_epoch == 0 for answer in given)
    assert len({answer.producer_id for answer in given}) == len(given)


class Sequenced:
    """A producer of one batch at a time, whose every number a test chooses."""

    def __init__(self, raw: RawConnection, topic: str) -> None:
        self._raw = raw
        self._topic = topic
        self.producer_id = raw.init_producer_id().producer_id

    def send(self, sequence: int, *values: bytes, epoch: int = 0) -> tuple[int, int]:
        """(error code, offset)"""
        batch = build_batch(*values, producer_id=self.producer_id, producer_epoch=epoch, sequence=sequence)
        answer = self._raw.produce(self._topic, batch)
        return answer.error_code, answer.base_offset


@pytest.fixture
def sequenced(raw: RawConnection, new_topic: NewTopicName) -> Sequenced:
    topic = new_topic()
    # Something of others before it, so that offsets and sequences differ.
    raw.produce(topic, build_batch(b"others", b"others", b"others"))
    return Sequenced(raw, topic)


def test_a_repeated_batch_gets_its_first_offset_again(sequenced: Sequenced) -> None:
    assert sequenced.send(0, b"a", b"b") == (0, 3)
    assert sequenced.send(2, b"c") == (0, 5)
    assert sequenced.send(2, b"c") == (0, 5)
    assert sequenced.send(0, b"a", b"b") == (0, 3)
    assert sequenced.send(3, b"d") == (0, 6)


def test_each_of_the_last_five_batches_may_be_repeated(sequenced: Sequenced) -> None:
    offsets = {sequence: sequenced.send(sequence, b"x")[1] for sequence in range(7)}
    for sequence in range(2, 7):
        assert sequenced.send(sequence, b"x") == (0, offsets[sequence])
    code, _ = sequenced.send(0, b"x")
    assert code in (45, 46)  # too old to know where it went: OUT_OF_ORDER or DUPLICATE_SEQUENCE_NUMBER
    assert sequenced.send(7, b"x") == (0, offsets[6] + 1)


def test_a_gap_in_the_sequence_is_refused(sequenced: Sequenced) -> None:
    assert sequenced.send(0, b"a") == (0, 3)
    assert sequenced.send(2, b"c")[0] == 45  # OUT_OF_ORDER_SEQUENCE_NUMBER
    assert sequenced.send(1, b"b") == (0, 4)


def test_an_older_epoch_of_a_producer_is_refused(sequenced: Sequenced) -> None:
    assert sequenced.send(0, b"a", epoch=1) == (0, 3)
    assert sequenced.send(1, b"zombie", epoch=0)[0] == 47  # INVALID_PRODUCER_EPOCH
    assert sequenced.send(1, b"b", epoch=1) == (0, 4)


def test_a_newer_epoch_starts_its_sequence_again(sequenced: Sequenced) -> None:
    assert sequenced.send(0, b"a") == (0, 3)
    assert sequenced.send(1, b"b") == (0, 4)
    assert sequenced.send(5, b"gap", epoch=1)[0] == 45
    assert sequenced.send(0, b"c", epoch=1) == (0, 5)


def test_a_producer_raises_its_epoch(raw: RawConnection) -> None:
    first = raw.init_producer_id()
    second = raw.init_producer_id(first.producer_id, first.producer_epoch)
    assert second.error_code == 0
    assert (second.producer_id, second.producer_epoch) != (first.producer_id, first.producer_epoch)


def test_the_sequence_goes_round_at_its_largest_value(raw: RawConnection, new_topic: NewTopicName) -> None:
    """Kafka accepts any first sequence of a producer it does not know, and 0 follows 2^31-1."""
    topic = new_topic()
    producer = Sequenced(raw, topic)
    assert producer.send(2**31 - 2, b"a", b"b") == (0, 0)
    assert producer.send(0, b"c") == (0, 2)
    assert producer.send(0, b"c") == (0, 2)
