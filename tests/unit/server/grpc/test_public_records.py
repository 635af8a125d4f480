"""Records over gRPC: produced one call at a time and in streams, consumed with the client's pace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from grpc_parts.calls import Api, api_of, connected, refusal_of, rest_of
from streamhouse.core.partitioner import partition_for_key
from streamhouse.server.grpc.public import message_limits
from streamhouse.testing import Broker
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb

LARGE = 1_100_000
"""More than a topic takes by default in one batch."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(grpc=True) as broker:
        yield broker


@pytest.fixture
def api(broker: Broker, event_loop_runner: asyncio.Runner) -> Iterator[Api]:
    yield from api_of(broker, event_loop_runner)


def values_of(records: list[tuple[int, pb.Record]]) -> list[bytes]:
    return [record.value for _, record in records]


# --- Produce ---


async def test_a_record_is_stored_as_it_was_sent_for_kafka_clients_too(api: Api, broker: Broker) -> None:
    await api.create_topic("as-sent")
    sent = pb.NewRecord(
        key=b"k",
        value=b"\x00\xff",
        headers=[pb.Header(key="a", value=b"1"), pb.Header(key="a"), pb.Header(key="ü", value=b"")],
        partition=0,
        timestamp_ms=1_700_000_000_123,
    )

    answer = await api("Records.Produce", pb.ProduceRequest(topic="as-sent", records=[sent]))

    assert (list(answer.partitions), list(answer.offsets), list(answer.timestamps_ms)) == (
        [0],
        [0],
        [sent.timestamp_ms],
    )
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("as-sent", 0, 0)])
    (message,) = consumer.consume(1, timeout=60)
    consumer.close()
    assert (message.key(), message.value(), message.offset()) == (b"k", b"\x00\xff", 0)
    assert message.timestamp()[1] == sent.timestamp_ms
    assert message.headers() == [("a", b"1"), ("a", None), ("ü", b"")]
    ((_, read),) = await api.read_all("as-sent")
    assert read == pb.Record(
        offset=0, timestamp_ms=sent.timestamp_ms, key=b"k", value=b"\x00\xff", headers=sent.headers
    )


async def test_what_is_absent_is_null_and_what_is_empty_is_not(api: Api) -> None:
    await api.create_topic("nulls")
    records = [pb.NewRecord(key=b"tombstone"), pb.NewRecord(key=b"", value=b"")]
    await api("Records.Produce", pb.ProduceRequest(topic="nulls", records=records))

    first, second = [record for _, record in await api.read_all("nulls")]

    assert (first.HasField("key"), first.HasField("value")) == (True, False)
    assert (second.HasField("key"), second.HasField("value")) == (True, True)


async def test_a_key_goes_to_the_partition_that_kafka_clients_choose(api: Api) -> None:
    await api.create_topic("keyed", 5)
    keys = [f"key {number}".encode() for number in range(50)]
    records = [pb.NewRecord(key=key) for key in keys]

    answer = await api("Records.Produce", pb.ProduceRequest(topic="keyed", records=records))

    assert list(answer.partitions) == [partition_for_key(key, 5) for key in keys]


async def test_some_records_may_be_refused_and_others_not(api: Api) -> None:
    await api.create_topic("mixed", 2)
    records = [pb.NewRecord(partition=0), pb.NewRecord(partition=9), pb.NewRecord(partition=1, timestamp_ms=-5)]

    answer = await api("Records.Produce", pb.ProduceRequest(topic="mixed", records=records))

    assert list(answer.offsets) == [0, -1, -1]
    assert [(error.index, error.error.code) for error in answer.errors] == [(1, "not-found"), (2, "invalid-input")]


async def test_what_refuses_all_records_is_the_status(api: Api) -> None:
    await api.create_topic("refused")
    too_large = pb.ProduceRequest(topic="refused", records=[pb.NewRecord(value=b"x" * LARGE)])
    elsewhere = pb.ProduceRequest(topic="refused", records=[pb.NewRecord(partition=1), pb.NewRecord(partition=2)])
    no_name = pb.ProduceRequest(topic="../x", records=[pb.NewRecord()])

    assert await api.refusal("Records.Produce", too_large) == ("INVALID_ARGUMENT", "batch-too-large")
    assert await api.refusal("Records.Produce", elsewhere) == ("NOT_FOUND", "not-found")
    assert await api.refusal("Records.Produce", no_name) == ("INVALID_ARGUMENT", "invalid-name")
    assert await api.read_all("refused") == []


async def test_a_request_of_more_records_than_fit_in_memory_is_refused_unread(api: Api, broker: Broker) -> None:
    empty_records = pb.ProduceRequest(topic="many").SerializeToString() + b"\x12\x00" * (message_limits.MAX_PARTS + 1)
    headers = b"\x1a\x00" * (message_limits.MAX_PARTS + 1)
    one_record = b"\x12" + bytes([0x80 | len(headers) & 0x7F, 0x80 | len(headers) >> 7 & 0x7F, len(headers) >> 14])
    many_headers = pb.ProduceRequest(topic="many").SerializeToString() + one_record + headers

    for raw in (empty_records, many_headers):
        call = api.channel.unary_stream("/streamhouse.v1.Records/Produce")(raw, timeout=60)
        assert await refusal_of(call) == ("INVALID_ARGUMENT", "batch-too-large")

    await api.produce("still-here", [b"x"])
    assert values_of(await api.read_all("still-here")) == [b"x"]


# --- ProduceStream ---


async def test_a_stream_is_answered_in_order_and_stored_in_order(api: Api) -> None:
    await api.create_topic("streamed")
    call = api.converse("Records.ProduceStream")
    requests = [
        pb.ProduceStreamRequest(
            topic="streamed" if number == 0 else "",
            records=[pb.NewRecord(value=f"{number}.{part}".encode()) for part in range(3)],
        )
        for number in range(200)
    ]

    async def send() -> None:
        for request in requests:
            await call.write(request)
        await call.done_writing()

    sending = asyncio.ensure_future(send())
    answers = [answer async for answer in call]
    await sending

    assert [answer.request for answer in answers] == list(range(200))
    assert [offset for answer in answers for offset in answer.stored.offsets] == list(range(600))
    sent = [record.value for request in requests for record in request.records]
    assert values_of(await api.read_all("streamed")) == sent


async def test_a_refused_request_of_a_stream_refuses_no_other(api: Api) -> None:
    await api.create_topic("partly")
    call = api.converse("Records.ProduceStream")
    large = pb.ProduceStreamRequest(topic="partly", records=[pb.NewRecord(value=b"x" * LARGE)])
    # In one go, so that the large one is gathered with others.
    for request in (
        pb.ProduceStreamRequest(topic="partly", records=[pb.NewRecord(value=b"first")]),
        large,
        pb.ProduceStreamRequest(records=[pb.NewRecord(value=b"second")]),
        pb.ProduceStreamRequest(topic="../x", records=[pb.NewRecord()]),
        pb.ProduceStreamRequest(topic="partly", records=[pb.NewRecord(value=b"third")]),
    ):
        await call.write(request)
    await call.done_writing()

    outcomes = [answer.error.code or list(answer.stored.offsets) async for answer in call]

    assert outcomes == [[0], "batch-too-large", [1], "invalid-name", [2]]
    assert values_of(await api.read_all("partly")) == [b"first", b"second", b"third"]


async def test_a_stream_whose_topic_nobody_knows_is_ended(api: Api) -> None:
    call = api.converse("Records.ProduceStream")
    await call.write(pb.ProduceStreamRequest(records=[pb.NewRecord()]))

    assert await refusal_of(call) == ("INVALID_ARGUMENT", "invalid-input")


async def test_bytes_that_are_no_request_end_a_stream_after_what_came_before(api: Api) -> None:
    await api.create_topic("torn")
    call = api.channel.stream_stream(
        "/streamhouse.v1.Records/ProduceStream", response_deserializer=pb.ProduceStreamResponse.FromString
    )(timeout=60)
    whole = pb.ProduceStreamRequest(topic="torn", records=[pb.NewRecord(value=b"whole")])
    await call.write(whole.SerializeToString())
    await call.write(b"\x12\xff\xff\xff\xff\x07noise")

    assert await refusal_of(call) == ("INVALID_ARGUMENT", "malformed-request")
    assert values_of(await api.read_all("torn")) == [b"whole"]


async def test_a_client_that_takes_no_answers_is_not_read_from_for_ever(api: Api) -> None:
    await api.create_topic("deaf")
    call = api.converse("Records.ProduceStream")
    # Every refusal makes the answer longer, and one stored record tells that the request was answered.
    refused = [pb.NewRecord(partition=9), pb.NewRecord(timestamp_ms=-1)] * 500
    request = pb.ProduceStreamRequest(topic="deaf", records=[pb.NewRecord(partition=0), *refused])

    sent = 0

    async def send_for_ever() -> None:
        nonlocal sent
        while True:
            await call.write(request)
            sent += 1

    sending = asyncio.ensure_future(send_for_ever())
    await _until_it_stands_still(lambda: sent)
    is_open = not call.done()
    call.cancel()
    await asyncio.gather(sending, return_exceptions=True)

    assert sent > 0
    assert is_open


async def _until_it_stands_still(number: Callable[[], int]) -> None:
    """Until it was the same for a number of looks, and something at all."""
    same, last = 0, 0
    while same < 20:
        await asyncio.sleep(0.05)
        same, last = (same + 1, last) if number() == last > 0 else (0, number())


# --- Consume ---


async def test_all_partitions_are_read_and_then_followed(api: Api) -> None:
    await api.create_topic("followed", 3)
    for partition in range(3):
        await api.produce("followed", [b"old"], partition)
    call = api.listen("Records.Consume", pb.ConsumeRequest(topic="followed"))

    async def next_partitions(count: int) -> set[int]:
        return {(await call.read()).partition for _ in range(count)}

    assert await next_partitions(3) == {0, 1, 2}
    for partition in range(3):
        await api.produce("followed", [b"new"], partition)
    assert await next_partitions(3) == {0, 1, 2}
    call.cancel()


async def test_who_starts_at_the_end_sees_all_that_comes_after_the_headers(api: Api) -> None:
    await api.create_topic("latest")
    await api.produce("latest", [b"before"])
    call = api.listen("Records.Consume", pb.ConsumeRequest(topic="latest", start=pb.Position(edge=pb.EDGE_LATEST)))
    await call.initial_metadata()

    await api.produce("latest", [b"after"])

    answer = await call.read()
    assert [(record.offset, record.value) for record in answer.records] == [(1, b"after")]
    assert (answer.next_offset, answer.high_watermark) == (2, 2)
    call.cancel()


async def test_each_partition_may_start_elsewhere(api: Api) -> None:
    await api.create_topic("starts", 3)
    for partition in range(3):
        records = [
            pb.NewRecord(partition=partition, value=f"{partition}.{number}".encode(), timestamp_ms=1000 * number)
            for number in range(4)
        ]
        await api("Records.Produce", pb.ProduceRequest(topic="starts", records=records))

    read = await api.read_all(
        "starts",
        partitions=[
            pb.PartitionPosition(partition=0, position=pb.Position(offset=3)),
            pb.PartitionPosition(partition=1, position=pb.Position(timestamp_ms=1500)),
            pb.PartitionPosition(partition=2),
        ],
        start=pb.Position(offset=1),
    )

    assert sorted(values_of(read)) == [b"0.3", b"1.2", b"1.3", b"2.1", b"2.2", b"2.3"]


async def test_answers_are_as_small_as_was_asked_for(api: Api) -> None:
    await api.create_topic("small")
    await api.produce("small", [b"x" * 1000] * 100)

    by_count = [
        len(answer.records)
        async for answer in api.listen(
            "Records.Consume", pb.ConsumeRequest(topic="small", until_end=True, max_records=30)
        )
    ]
    by_size = [
        len(answer.records)
        async for answer in api.listen(
            "Records.Consume", pb.ConsumeRequest(topic="small", until_end=True, max_bytes=70_000)
        )
    ]

    assert by_count == [30, 30, 30, 10]
    assert sum(by_size) == 100
    assert max(by_size) < 70


async def test_an_end_that_was_asked_for_is_that_of_the_beginning(api: Api) -> None:
    await api.create_topic("ended")
    for _ in range(50):
        await api.produce("ended", [b"x" * 400_000] * 2)
    call = api.listen("Records.Consume", pb.ConsumeRequest(topic="ended", until_end=True, max_records=3))
    first = await call.read()

    # The node waits for the client long before the end, so it reads that after this is there.
    await api.produce("ended", [b"later"] * 10)

    rest = [record.offset for answer in await rest_of(call) for record in answer.records]
    assert [record.offset for record in first.records] + rest == list(range(100))


async def test_a_client_that_stops_reading_slows_nobody_and_loses_nothing(api: Api, broker: Broker) -> None:
    await api.create_topic("slow")
    for _ in range(40):
        await api.produce("slow", [b"x" * 100_000] * 9)
    async with connected(broker.grpc_address) as other:
        call = other.listen("Records.Consume", pb.ConsumeRequest(topic="slow", until_end=True))
        first = await call.read()

        assert values_of(await api.read_all("slow", max_records=1)) == [b"x" * 100_000] * 360

        rest = [record.offset for answer in await rest_of(call) for record in answer.records]
        assert [record.offset for record in first.records] + rest == list(range(360))


@pytest.mark.parametrize(
    ("request_", "refusal"),
    [
        (pb.ConsumeRequest(topic="nowhere"), ("NOT_FOUND", "not-found")),
        (
            pb.ConsumeRequest(topic="some", start=pb.Position(offset=5)),
            ("OUT_OF_RANGE", "offset-out-of-range"),
        ),
        (
            pb.ConsumeRequest(topic="some", start=pb.Position(offset=-1)),
            ("OUT_OF_RANGE", "offset-out-of-range"),
        ),
        (
            pb.ConsumeRequest(topic="some", start=pb.Position(timestamp_ms=-1)),
            ("INVALID_ARGUMENT", "invalid-input"),
        ),
        (
            pb.ConsumeRequest(topic="some", partitions=[pb.PartitionPosition(partition=1)]),
            ("NOT_FOUND", "not-found"),
        ),
        (
            pb.ConsumeRequest(
                topic="some", partitions=[pb.PartitionPosition(partition=number) for number in range(257)]
            ),
            ("INVALID_ARGUMENT", "invalid-input"),
        ),
    ],
    ids=["topic", "beyond the end", "negative offset", "negative time", "partition", "too many"],
)
async def test_what_cannot_be_read_says_why(
    api: Api, broker: Broker, request_: pb.ConsumeRequest, refusal: tuple[str, str]
) -> None:
    if broker.node.broker.topics.find("some") is None:
        await api.create_topic("some")

    assert await refusal_of(api.listen("Records.Consume", request_)) == refusal


async def test_a_deadline_ends_a_consumer_that_waits(api: Api) -> None:
    await api.create_topic("quiet")

    call = api.listen("Records.Consume", pb.ConsumeRequest(topic="quiet"), timeout_s=0.3)

    assert (await refusal_of(call))[0] == "DEADLINE_EXCEEDED"


# --- ListOffsets ---


async def test_offsets_are_found_by_time_and_by_edge(api: Api) -> None:
    records = [pb.NewRecord(partition=0, timestamp_ms=1000 * number) for number in range(4)]
    await api.create_topic("timed", 2)
    await api("Records.Produce", pb.ProduceRequest(topic="timed", records=records))

    async def offsets(**request: object) -> list[int | None]:
        found = await api("Records.ListOffsets", pb.ListOffsetsRequest(topic="timed", **request))
        return [each.offset if each.HasField("offset") else None for each in found.partitions]

    assert await offsets() == [4, 0]
    assert await offsets(at=pb.Position(edge=pb.EDGE_EARLIEST)) == [0, 0]
    assert await offsets(at=pb.Position(timestamp_ms=1001), partitions=[0]) == [2]
    assert await offsets(at=pb.Position(timestamp_ms=9999)) == [None, None]
    no_time = pb.ListOffsetsRequest(topic="timed", at=pb.Position(offset=3))
    assert await api.refusal("Records.ListOffsets", no_time) == ("INVALID_ARGUMENT", "invalid-input")
    elsewhere = pb.ListOffsetsRequest(topic="timed", partitions=[2])
    assert await api.refusal("Records.ListOffsets", elsewhere) == ("NOT_FOUND", "not-found")
