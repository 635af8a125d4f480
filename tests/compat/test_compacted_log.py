"""A compacted log, with gaps of every kind, as real consumers read it: all that is left, at its offsets, from anywhere.

The gaps are inside batches, between batches, between blocks, at the front of a segment and at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import aiokafka
import confluent_kafka
import kafka
import pytest

from compat.clients import HUNG_MS
from node.process import Node
from node.raw import RawConnection, build_batch, read_batches
from node.wait import HUNG_SECONDS, eventually
from planning_parts.compaction import prepare
from streamhouse.client.planning import PlanningClient

TOPIC = "compacted"
START_MS = 1_700_000_000_000
BATCH_RECORDS, SEGMENT_RECORDS, SEGMENTS = 5, 10, 6
COMPACTED_END = SEGMENT_RECORDS * SEGMENTS
END = COMPACTED_END + 3
LEFT = [4, 5, 6, 12, 19, *range(20, 30), 38, 49, 50, 57, *range(COMPACTED_END, END)]

Read = Callable[[int], list[tuple[int, bytes]]]


def value_of(offset: int) -> bytes:
    return b"value-%d" % offset


def timestamp_of(offset: int) -> int:
    return START_MS + offset * 1_000


def produce(raw: RawConnection, start: int, count: int) -> None:
    batch = build_batch(*(value_of(offset) for offset in range(start, start + count)), timestamp=timestamp_of(start))
    assert raw.produce(TOPIC, batch).error_code == 0


def fill(node: Node, client: PlanningClient) -> None:
    with RawConnection(node.address) as raw:
        raw.metadata(TOPIC, create=True)
        for end in range(SEGMENT_RECORDS, COMPACTED_END + 1, SEGMENT_RECORDS):
            for start in range(end - SEGMENT_RECORDS, end, BATCH_RECORDS):
                produce(raw, start, BATCH_RECORDS)
            eventually(lambda: client.segments(TOPIC, 0).committed_end == end, "a segment")  # noqa: B023


def compact(client: PlanningClient) -> None:
    """The third segment stays as it is. Of the last one the last record goes, and its batch is said to reach on."""
    segments = client.segments(TOPIC, 0).segments
    bounds = [segment.base_offset for segment in segments]
    first, second, third = (bounds.index(base) for base in (20, 30, 50))
    small = {"batch_bytes": 150, "block_bytes": 1}
    for part, sizes in (
        (segments[:first], small),
        (segments[second:third], {}),
        (segments[third:], {"end_offset": COMPACTED_END}),
    ):
        request = prepare(client, TOPIC, part, LEFT, **sizes)
        client.replace(request)
        client.replace(request)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """It is started again after the compaction, so that nothing of the old records is in its memory."""
    settings = ("--segment-age", "100ms", "--default-partitions", "1", "--retention-interval", "24h")
    with Node(tmp_path_factory.mktemp("node"), *settings) as node:
        with PlanningClient(node.http, timeout_seconds=HUNG_SECONDS) as client:
            fill(node, client)
            compact(client)
        assert node.terminate() == 0
        node.start("--segment-age", "1h")
        with RawConnection(node.address) as raw:
            produce(raw, COMPACTED_END, END - COMPACTED_END)
        yield node


@pytest.fixture
def raw(node: Node) -> Iterator[RawConnection]:
    with RawConnection(node.address) as connection:
        yield connection


def expected_from(start: int) -> list[tuple[int, bytes]]:
    return [(offset, value_of(offset)) for offset in LEFT if offset >= start]


def assert_reads_everything(read: Read) -> None:
    for start in range(END):
        assert read(start) == expected_from(start), f"from offset {start}"


def test_confluent_reads_what_is_left_from_every_offset(node: Node) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "compacted",
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 10,
        }
    )

    def read(start: int) -> list[tuple[int, bytes]]:
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, start)])
        found: list[tuple[int, bytes]] = []
        while True:
            message = consumer.poll(HUNG_SECONDS)
            assert message is not None, f"hangs after {found[-1:]}"
            if message.error() is not None:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                assert message.offset() == END
                return found
            found.append((message.offset(), message.value()))

    try:
        assert_reads_everything(read)
    finally:
        consumer.close()


def test_aiokafka_reads_what_is_left_from_every_offset(node: Node) -> None:
    async def run() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=node.bootstrap, auto_offset_reset="none", fetch_max_wait_ms=10
        )
        partition = aiokafka.TopicPartition(TOPIC, 0)
        async with consumer:
            consumer.assign([partition])
            for start in range(END):
                consumer.seek(partition, start)
                found: list[tuple[int, bytes]] = []
                while await consumer.position(partition) < END:
                    batches = await asyncio.wait_for(consumer.getmany(timeout_ms=HUNG_MS), HUNG_SECONDS)
                    found += [(message.offset, message.value) for batch in batches.values() for message in batch]
                assert found == expected_from(start), f"from offset {start}"

    asyncio.run(run())


def test_kafka_python_reads_what_is_left_from_every_offset(node: Node) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=node.bootstrap, group_id=None, auto_offset_reset="none")
    partition = kafka.TopicPartition(TOPIC, 0)
    consumer.assign([partition])

    def read(start: int) -> list[tuple[int, bytes]]:
        consumer.seek(partition, start)
        found: list[tuple[int, bytes]] = []
        while consumer.position(partition) < END:
            batches = consumer.poll(timeout_ms=HUNG_MS)
            assert batches, f"hangs after {found[-1:]}"
            found += [(message.offset, message.value) for batch in batches.values() for message in batch]
        return found

    try:
        assert_reads_everything(read)
    finally:
        consumer.close()


def test_a_consumer_that_takes_little_at_a_time_gets_on(raw: RawConnection) -> None:
    """One batch an answer, and each answer brings the position on."""
    for start in range(END):
        found: list[int] = []
        position = start
        while position < END:
            answer = raw.fetch(TOPIC, position, max_bytes=1)
            assert answer.error_code == 0
            batches = list(read_batches(answer.records))
            assert batches, f"nothing at {position}"
            found += [record.offset for batch in batches for record in batch if record.offset >= position]
            assert batches[-1].next_offset > position
            position = batches[-1].next_offset
        assert found == [offset for offset in LEFT if offset >= start]


def test_times_are_at_the_first_record_that_is_left(raw: RawConnection) -> None:
    for offset in range(END):
        found = raw.list_offset(TOPIC, timestamp_of(offset))
        # Records of one batch have its timestamp.
        later = [left for left in LEFT if left - left % BATCH_RECORDS >= offset]
        assert (found.error_code, found.offset) == (0, later[0] if later else -1)
    assert raw.list_offset(TOPIC, -2).offset == 0
    assert raw.list_offset(TOPIC, -1).offset == END
