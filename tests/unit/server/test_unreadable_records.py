"""Batches that no row can be made of, or too many: every door says so, names where to go on, and serves what follows.
Kafka's clients get them as they are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import grpc
import pytest

from flume_parts.raw import UNKNOWN, RawFlume
from format_samples.hostile import inflating, lying, many_headers
from grpc_parts.calls import Api, api_of
from log_parts.batches import real
from log_parts.kafka import Kafka
from rest_parts.caller import RestCaller
from rest_parts.following import EventReader
from streamhouse.broker import records as record_door
from streamhouse.format.batch import read_header
from streamhouse.format.compression import Codec
from streamhouse.format.row_reading import RowsRead, read_rows
from streamhouse.testing import Broker
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb
from streamhouse.wire.kafka.codes import ErrorCode

BAD = [
    pytest.param(many_headers(), id="headers"),
    pytest.param(inflating(), id="inflating"),
    pytest.param(lying(), id="lying"),
]
TIME_MS = 2_000
"""Of the batch behind the bad one, which says 1,000."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(http=True, grpc=True, flume=True, group_initial_rebalance_delay=0) as broker:
        yield broker


@pytest.fixture
def rest(broker: Broker) -> RestCaller:
    return RestCaller(broker.endpoint)


@pytest.fixture
def api(broker: Broker, event_loop_runner: asyncio.Runner) -> Iterator[Api]:
    yield from api_of(broker, event_loop_runner)


@pytest.fixture
def flume(broker: Broker) -> Iterator[RawFlume]:
    with RawFlume(broker.flume_address) as flume:
        yield flume


def stored(kafka: Kafka, topic: str, bad: bytes) -> tuple[int, int]:
    """A good record, the bad batch, a good record: the offsets of the last two."""
    assert kafka.produce_values(topic, b"before") == 0
    assert kafka.produce(topic, bad).error_code == ErrorCode.NONE
    behind = 1 + read_header(bad).record_count
    answer = kafka.produce(topic, real(b"after", timestamps=(TIME_MS,)))
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, behind)
    return 1, behind


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("flushed", [False, True])
def test_rest_names_the_offset_behind_them(
    broker: Broker, rest: RestCaller, kafka: Kafka, topic: str, bad: bytes, flushed: bool
) -> None:
    _, behind = stored(kafka, topic, bad)
    if flushed:
        broker.flush()
    path = f"topics/{topic}/partitions/0/records"

    first = rest.get(f"{path}?offset=0")
    assert [each["value"] for each in first["records"]] == ["before"]
    problem = rest.refused(422, "unreadable-records", "GET", f"{path}?offset={first['next_offset']}")
    assert problem["next_offset"] == behind
    assert f"{topic}/0" in problem["detail"]
    assert str(behind) in problem["hint"]
    rest_of_it = rest.get(f"{path}?offset={problem['next_offset']}")
    assert [each["value"] for each in rest_of_it["records"]] == ["after"]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_a_search_passes_over_them_and_says_so(
    rest: RestCaller, kafka: Kafka, topic: str, bad: bytes, order: str
) -> None:
    _, behind = stored(kafka, topic, bad)

    answer = rest.get(f"topics/{topic}/messages?order={order}")

    assert {each["value"] for each in answer["records"]} == {"before", "after"}
    assert [(each["partition"], each["next_offset"]) for each in answer["unreadable"]] == [(0, behind)]


@pytest.mark.parametrize("bad", BAD)
def test_one_who_follows_is_told_and_gets_what_comes_next(broker: Broker, kafka: Kafka, topic: str, bad: bytes) -> None:
    _, behind = stored(kafka, topic, bad)

    with EventReader(broker.endpoint, topic, "from=earliest") as reader:
        events = [reader.next_event() for _ in range(3)]

    assert [event.type for event in events] == ["message", "unreadable", "message"]
    assert (events[1].data["partition"], events[1].data["next_offset"]) == (0, behind)
    assert events[1].id.split(",")[0] == f"0:{behind}"
    assert events[2].data["value"] == "after"


@pytest.mark.parametrize("bad", BAD)
async def test_grpc_names_the_offset_behind_them(api: Api, kafka: Kafka, topic: str, bad: bytes) -> None:
    _, behind = stored(kafka, topic, bad)

    async def consume(offset: int) -> list[bytes]:
        place = pb.PartitionPosition(partition=0, position=pb.Position(offset=offset))
        request = pb.ConsumeRequest(topic=topic, partitions=[place], until_end=True)
        return [record.value async for answer in api.listen("Records.Consume", request) for record in answer.records]

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await consume(1)
    told = dict(refusal.value.trailing_metadata())
    assert told["streamhouse-error"] == "unreadable-records"
    assert told["streamhouse-next-offset"] == str(behind)
    assert await consume(behind) == [b"after"]


@pytest.mark.parametrize("bad", BAD)
def test_flume_refuses_them_and_serves_what_is_behind(flume: RawFlume, kafka: Kafka, topic: str, bad: bytes) -> None:
    _, behind = stored(kafka, topic, bad)

    assert flume.fetch(topic, 0, 0)[1] == [(0, b"before")]
    assert flume.fetch(topic, 0, 1) == (UNKNOWN, [])
    assert flume.fetch(topic, 0, behind)[1] == [(behind, b"after")]


@pytest.mark.parametrize("bad", BAD)
def test_a_member_of_a_group_can_get_past_them(rest: RestCaller, kafka: Kafka, topic: str, bad: bytes) -> None:
    _, behind = stored(kafka, topic, bad)
    joined = rest.post(f"groups/of-{topic}/members", {"topics": [topic], "reset": "earliest"}, status=201)
    member = f"groups/of-{topic}/members/{joined['member_id']}"
    wait = {"max_wait_ms": 20_000}

    assert [each["value"] for each in rest.post(f"{member}/poll", wait)["records"]] == ["before"]
    problem = rest.refused(422, "unreadable-records", "POST", f"{member}/poll", wait)
    assert problem["next_offset"] == behind
    assert f"{topic}/0" in problem["detail"]
    rest.post(f"{member}/seek", {"offsets": [{"topic": topic, "partition": 0, "offset": problem["next_offset"]}]})
    assert [each["value"] for each in rest.post(f"{member}/poll", wait)["records"]] == ["after"]


@pytest.mark.parametrize("partition", [0, 1])
def test_a_member_gets_what_its_other_partitions_have(
    rest: RestCaller, kafka: Kafka, topic: str, partition: int
) -> None:
    kafka.produce(topic, lying(), partition=partition)
    kafka.produce_values(topic, b"first", b"second", partition=1 - partition)
    joined = rest.post(f"groups/other-{topic}/members", {"topics": [topic], "reset": "earliest"}, status=201)
    poll = f"groups/other-{topic}/members/{joined['member_id']}/poll"
    seen: list[str] = []
    refusals = 0
    while len(seen) < 2 or not refusals:
        answer = rest.call("POST", poll, {"max_wait_ms": 20_000, "limit": 1})
        refusals += answer.status == 422
        seen += [each["value"] for each in answer.json.get("records", [])]
        assert refusals < 100, "it only ever hears of the other partition"
    assert seen == ["first", "second"]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("flushed", [False, True])
def test_a_time_is_found_in_front_of_them_and_behind(
    broker: Broker, kafka: Kafka, topic: str, bad: bytes, flushed: bool
) -> None:
    kafka.produce(topic, bad)
    behind = kafka.produce(topic, real(b"after", timestamps=(TIME_MS,))).base_offset
    if flushed:
        broker.flush()

    assert kafka.offset_of(topic, 1_000).offset == 0
    assert kafka.offset_of(topic, TIME_MS).offset == behind


async def test_as_many_headers_as_are_allowed_come_through(
    broker: Broker, rest: RestCaller, api: Api, kafka: Kafka, topic: str
) -> None:
    count = 100_000
    assert kafka.produce(topic, many_headers(count)).error_code == ErrorCode.NONE

    (record,) = (await asyncio.to_thread(rest.get, f"topics/{topic}/partitions/0/records"))["records"]
    assert len(record["headers"]) == count
    with EventReader(broker.endpoint, topic, "from=earliest") as reader:
        assert len(reader.next_event().data["headers"]) == count
    answers = api.listen("Records.Consume", pb.ConsumeRequest(topic=topic, until_end=True))
    assert [len(each.headers) async for answer in answers for each in answer.records] == [count]


def test_rows_are_not_made_on_the_loop(
    broker: Broker, rest: RestCaller, kafka: Kafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def noted(*arguments: object, **options: object) -> RowsRead:
        threads.append(threading.current_thread().name)
        return read_rows(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(record_door, "read_rows", noted)
    kafka.produce_values(topic, b"value")
    assert len(rest.get(f"topics/{topic}/partitions/0/records")["records"]) == 1
    assert [name.split("_")[0] for name in threads] == ["log"]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("claimed", [10**6, 2_000_000_000])
def test_a_count_that_cannot_be_is_refused_at_the_door(kafka: Kafka, topic: str, codec: int, claimed: int) -> None:
    assert kafka.produce(topic, lying(claimed, codec=Codec(codec))).error_code == ErrorCode.INVALID_RECORD
