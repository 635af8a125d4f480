"""What the planning API says is there, read at the places that it names, is what a Kafka client reads."""

from __future__ import annotations

import threading
from uuid import UUID

import pytest

from log_parts.batches import real
from log_parts.kafka import Kafka
from planning_parts.reading import ALL, PIECE_BYTES, plan, question, read_plan
from streamhouse.client.planning import PlanningClient
from streamhouse.format.compression import Codec
from streamhouse.model.errors import InvalidInput, MalformedRequest, NotFound, OffsetOutOfRange, Unavailable
from streamhouse.model.settings import Settings
from streamhouse.server.http.node import _location
from streamhouse.testing import Broker
from streamhouse.wire.http import planning as api


def produce(kafka: Kafka, topic: str, *, count: int, size_bytes: int = 1_000, at_ms: int = 1_000) -> None:
    """Batches of ten, each of which is not compressible and has a time of its own."""
    for start in range(0, count, 10):
        values = [f"{start + index}".encode() + b"." * size_bytes for index in range(10)]
        batch = real(*values, timestamps=(at_ms + start,) * 10, codec=Codec.ZSTD if start % 20 else Codec.NONE)
        assert kafka.produce(topic, batch).error_code == 0


@pytest.fixture
def blocky(client: PlanningClient, kafka: Kafka, broker: Broker, topic: str) -> str:
    """A topic whose first partition has a segment of three blocks, one of one block, and a tail."""
    for _ in range(3):
        for start in range(20):
            assert kafka.produce(topic, real(*([bytes([start]) * 2_500] * 5), timestamps=(1_000,) * 5)).error_code == 0
    broker.flush()
    produce(kafka, topic, count=50, at_ms=50_000)
    broker.flush()
    produce(kafka, topic, count=20, at_ms=90_000)
    return topic


def test_the_cluster_is_named_with_its_doors(client: PlanningClient, broker: Broker) -> None:
    answer = client.cluster()

    assert answer.cluster_id == broker.node.broker.identity.cluster_id
    assert answer.kafka == [broker.bootstrap]
    assert answer.objects == api.ObjectsLocation(url="memory:")


def test_topics_have_their_effective_config(client: PlanningClient, broker: Broker) -> None:
    broker.create_topic("zeta", partitions=3, config={"retention.ms": "77"})

    (zeta,) = (topic for topic in client.topics() if topic.name == "zeta")

    assert (zeta.partition_count, zeta.config["retention.ms"]) == (3, "77")
    assert zeta.config["cleanup.policy"] == "delete"
    assert zeta.topic_id == broker.node.broker.topics.get("zeta").topic_id


def test_offsets_are_those_at_the_ends_and_at_times(client: PlanningClient, blocky: str) -> None:
    def ask(partition: int, time: int) -> api.OffsetQuestion:
        return api.OffsetQuestion(topic=blocky, partition=partition, timestamp_ms=time)

    times = (api.EARLIEST, api.LATEST, 0, 50_001, 90_010, 90_011)
    found = client.offsets([*(ask(0, time) for time in times), ask(1, api.LATEST), ask(1, 0)])

    assert found == [0, 370, 0, 310, 360, None, 0, None]


def test_pieces_and_tail_hold_what_a_kafka_client_reads(client: PlanningClient, kafka: Kafka, blocky: str) -> None:
    answer = plan(client, blocky)

    assert (answer.log_start_offset, answer.high_watermark) == (0, 370)
    assert (answer.tail_start, answer.tail_end) == (350, 370)
    assert 20 * 1_000 > answer.tail_bytes > 1_000
    assert len(answer.pieces) == 2
    assert read_plan(client, blocky, answer) == kafka.read(blocky)


def test_pieces_are_cut_at_blocks_and_side_by_side(client: PlanningClient, kafka: Kafka, blocky: str) -> None:
    answer = plan(client, blocky, piece_bytes=1)

    assert len(answer.pieces) == 4, "a block is never cut"
    assert [piece.start for piece in answer.pieces] == [0, *(piece.end for piece in answer.pieces[:-1])]
    assert answer.pieces[-1].end == answer.tail_start
    assert read_plan(client, blocky, answer) == kafka.read(blocky)


@pytest.mark.parametrize(
    ("start", "end", "pieces"),
    [(0, 1, 1), (7, 8, 1), (99, 301, 4), (299, 300, 1), (300, 300, 0), (345, 355, 1), (369, ALL, 0)],
)
def test_only_the_blocks_of_the_range_are_named(
    client: PlanningClient, kafka: Kafka, blocky: str, start: int, end: int, pieces: int
) -> None:
    answer = plan(client, blocky, start=start, end=end, piece_bytes=1)

    assert len(answer.pieces) == pieces
    wanted = [record for record in kafka.read(blocky) if start <= record.offset < end]
    assert read_plan(client, blocky, answer) == wanted


def test_times_leave_out_segments_and_blocks_but_never_a_record_between_them(
    client: PlanningClient, kafka: Kafka, topic: str, broker: Broker
) -> None:
    for number in range(60):
        batch = real(*([bytes([number]) * 2_500] * 5), timestamps=(1_000 * number,) * 5)
        assert kafka.produce(topic, batch).error_code == 0
        if number % 30 == 29:
            broker.flush()

    late = plan(client, topic, min_timestamp_ms=50_000, piece_bytes=1)
    early = plan(client, topic, max_timestamp_ms=29_000, piece_bytes=1)

    everything = kafka.read(topic)
    assert len(plan(client, topic, piece_bytes=1).pieces) == 4
    assert len(late.pieces) == 1
    assert {record.offset for record in read_plan(client, topic, late)} >= {
        record.offset for record in everything if record.timestamp_ms >= 50_000
    }
    assert read_plan(client, topic, early) == [record for record in everything if record.timestamp_ms <= 29_000]


def test_a_range_beyond_the_end_is_empty(client: PlanningClient, blocky: str) -> None:
    answer = plan(client, blocky, start=1_000)

    assert (answer.pieces, answer.tail_start, answer.tail_end) == ([], 1_000, 1_000)
    assert answer.high_watermark == 370


def test_of_what_was_deleted_the_log_start_tells(
    client: PlanningClient, kafka: Kafka, broker: Broker, blocky: str
) -> None:
    node = broker.node
    leader = node.broker.topics.leader(node.broker.topics.get(blocky), 0)
    broker._run(node.broker.delete_records(leader, 320))

    answer = plan(client, blocky)

    assert answer.log_start_offset == 320
    assert answer.pieces[0].start == 320
    assert read_plan(client, blocky, answer) == kafka.read(blocky, offset=320)
    assert client.segments(blocky, 0).log_start_offset == 320


def test_a_tail_that_was_uploaded_meanwhile_is_still_served(
    client: PlanningClient, kafka: Kafka, broker: Broker, blocky: str
) -> None:
    answer = plan(client, blocky)
    broker.flush()

    assert plan(client, blocky).tail_start == 370
    assert read_plan(client, blocky, answer) == kafka.read(blocky)


def test_segments_are_as_the_metadata_store_has_them(client: PlanningClient, broker: Broker, blocky: str) -> None:
    answer = client.segments(blocky, 0)

    assert isinstance(answer.topic_id, UUID)
    assert answer.committed_end == 350
    assert [(segment.base_offset, segment.end_offset, segment.record_count) for segment in answer.segments] == [
        (0, 300, 300),
        (300, 350, 50),
    ]
    assert (answer.segments[1].min_timestamp_ms, answer.segments[1].max_timestamp_ms) == (50_000, 50_040)
    assert client.segments(blocky, 1) == api.SegmentsAnswer(
        topic_id=answer.topic_id, log_start_offset=0, committed_end=0, segments=[]
    )


def test_while_producers_write_and_segments_are_committed_no_plan_has_a_gap(
    client: PlanningClient, broker: Broker, topic: str
) -> None:
    ending = threading.Event()

    def write() -> None:
        with Kafka(broker.bootstrap) as kafka:
            while not ending.is_set():
                kafka.produce_values(topic, b"v" * 100, b"w")
                broker.flush()

    writer = threading.Thread(target=write)
    writer.start()
    start = 0
    try:
        for _ in range(50):
            answer = plan(client, topic, start=start)
            found = [record.offset for record in read_plan(client, topic, answer)]
            assert found == list(range(start, answer.high_watermark))
            start = max(0, answer.high_watermark - 10)
    finally:
        ending.set()
        writer.join()


# --- what is refused ---


@pytest.mark.parametrize("partition", [-1, 2, 2**40])
def test_partitions_that_do_not_exist_are_not_found(client: PlanningClient, topic: str, partition: int) -> None:
    with pytest.raises(NotFound, match="partition"):
        client.ranges([question(topic, partition)], piece_bytes=PIECE_BYTES)
    with pytest.raises(NotFound, match="partition"):
        client.tail(topic, partition, 0, 1)
    with pytest.raises(NotFound, match="partition"):
        client.segments(topic, partition)
    with pytest.raises(NotFound, match="partition"):
        client.offsets([api.OffsetQuestion(topic=topic, partition=partition, timestamp_ms=api.LATEST)])


def test_topics_that_do_not_exist_are_not_found(client: PlanningClient) -> None:
    with pytest.raises(NotFound, match="there is no topic 'nowhere'"):
        client.ranges([question("nowhere")], piece_bytes=PIECE_BYTES)
    with pytest.raises(NotFound, match="there is no topic"):
        client.tail("no/topic\ud800"[:-1], 0, 0, 1)


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (5, 4), (-(2**62), -1)])
def test_ranges_that_are_none_are_refused(client: PlanningClient, topic: str, start: int, end: int) -> None:
    with pytest.raises(InvalidInput, match="not a range of offsets"):
        client.ranges([question(topic, 0, start, end)], piece_bytes=PIECE_BYTES)


def test_numbers_that_fit_nowhere_are_refused(client: PlanningClient, topic: str) -> None:
    with pytest.raises(MalformedRequest, match="start"):
        client.tail(topic, 0, 2**63, 1)
    with pytest.raises(MalformedRequest, match="timestamp_ms"):
        client.offsets([api.OffsetQuestion(topic=topic, partition=0, timestamp_ms=-(2**70))])
    with pytest.raises(MalformedRequest, match="end"):
        client.ranges([question(topic, 0, 0, 2**64)], piece_bytes=PIECE_BYTES)


def test_other_numbers_that_make_no_sense_are_refused(client: PlanningClient, topic: str) -> None:
    with pytest.raises(InvalidInput, match="piece_bytes"):
        client.ranges([question(topic)], piece_bytes=0)
    with pytest.raises(InvalidInput, match="is not a time"):
        client.offsets([api.OffsetQuestion(topic=topic, partition=0, timestamp_ms=-3)])
    with pytest.raises(InvalidInput):
        client.tail(topic, 0, -1, 1)
    with pytest.raises(OffsetOutOfRange):
        client.tail(topic, 0, 5, 1)


def test_a_store_that_cannot_be_read_is_unavailable_and_then_asked_again(
    client: PlanningClient, broker: Broker, kafka: Kafka, topic: str
) -> None:
    kafka.produce_values(topic, b"value")
    broker.flush()
    broker.faults.fail_reads(times=None)
    with (
        PlanningClient(broker.endpoint, timeout_seconds=3) as impatient,
        pytest.raises(Unavailable, match="injected"),
    ):
        impatient.ranges([question(topic)], piece_bytes=PIECE_BYTES)
    broker.faults.heal()
    broker.faults.fail_reads(times=2)

    assert read_plan(client, topic, plan(client, topic)) == kafka.read(topic)


@pytest.mark.parametrize("endpoint", ["http://key:secret@s3.example.com:9000/x", "http://s3.example.com:9000/x", ""])
def test_who_is_told_where_the_store_is_gets_no_keys_of_it(endpoint: str) -> None:
    told = _location(Settings(s3_endpoint=endpoint), "s3://bucket/prefix").endpoint
    assert told == endpoint.replace("key:secret@", "")
