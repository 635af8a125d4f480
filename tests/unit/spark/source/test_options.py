"""Options of the data source: those of Spark's Kafka source, with its rules, and errors that say what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamhouse.model.errors import InvalidConfig
from streamhouse.spark.options import Connection, Options
from streamhouse.spark.source.options import KNOWN_OPTIONS, Assigned, SourceOptions, TopicPattern, Topics
from streamhouse.spark.source.positions import TopicPartition, json_of, offsets_of
from streamhouse.wire.http.planning import EARLIEST, LATEST

MINIMAL = {"endpoint": "http://node:8080", "subscribe": "orders"}
ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def parse(**options: str) -> SourceOptions:
    return SourceOptions.parse(MINIMAL | options)


def test_names_are_understood_in_any_case() -> None:
    options = SourceOptions.parse({"ENDPOINT": "http://node:8080", "Subscribe": "a, b,a", "INCLUDEHEADERS": "True"})
    assert options.subscription == Topics(names=("a", "b"))
    assert options.include_headers
    assert options.connection.endpoint == "http://node:8080"


def test_a_misspelt_option_is_an_error_that_knows_better() -> None:
    with pytest.raises(InvalidConfig, match=r"no option 'startingoffset' \(did you mean 'startingOffsets'\?\)"):
        parse(startingOffset="earliest")


def test_options_for_kafkas_consumers_are_passed_over() -> None:
    parse(**{"kafka.bootstrap.servers": "broker:9092", "groupIdPrefix": "x", "kafkaConsumer.pollTimeoutMs": "1"})


def test_the_endpoint_must_be_given() -> None:
    with pytest.raises(InvalidConfig, match="'endpoint' is missing"):
        SourceOptions.parse({"subscribe": "orders"})


@pytest.mark.parametrize(
    "subscriptions",
    [{"subscribe": ""}, {"subscribePattern": "o.*"}, {"assign": '{"orders":[0]}'}, {"subscribe": " , "}],
)
def test_exactly_one_way_to_name_topics_is_taken(subscriptions: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig, match=r"cannot be used together|no topics are named|names no topic"):
        parse(**subscriptions)


def test_topics_are_named_by_pattern_or_partition() -> None:
    pattern = SourceOptions.parse({"endpoint": "x", "subscribePattern": "ord.*"}).subscription
    assert isinstance(pattern, TopicPattern)
    assert pattern.pattern.fullmatch("orders")
    assigned = SourceOptions.parse({"endpoint": "x", "assign": '{"orders":[1,0,1]}'}).subscription
    assert assigned == Assigned(partitions=(ORDERS_0, ORDERS_1))


@pytest.mark.parametrize(
    "options",
    [
        {"subscribe": "", "subscribePattern": "("},
        {"subscribe": "", "assign": "orders"},
        {"subscribe": "", "assign": "[]"},
        {"subscribe": "", "assign": "{}"},
        {"subscribe": "", "assign": '{"orders":[-1]}'},
        {"subscribe": "", "assign": '{"orders":["0"]}'},
        {"startingOffsets": "first"},
        {"startingOffsets": '{"orders":[0]}'},
        {"startingOffsets": '{"orders":{"0":"5"}}'},
        {"startingOffsets": '{"orders":{"0":-3}}'},
        {"startingOffsets": '{"orders":{"zero":5}}'},
        {"startingOffsets": '{"orders":{"0":true}}'},
        {"startingOffsetsByTimestamp": '{"orders":{"0":-1}}'},
        {"startingTimestamp": "yesterday"},
        {"startingTimestamp": "-5"},
        {"startingOffsetsByTimestampStrategy": "guess"},
        {"failOnDataLoss": "maybe"},
        {"minPartitions": "0"},
        {"maxOffsetsPerTrigger": "many"},
        {"maxBytesPerTrigger": "-1"},
        {"pinRetention": "10"},
    ],
)
def test_values_that_make_no_sense_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig):
        parse(**options)


def test_offsets_are_earliest_latest_or_numbers() -> None:
    options = parse(startingOffsets='{"orders":{"0":5,"1":-2}}', endingOffsets="LATEST").for_batch()
    assert options.start is not None
    assert options.end is not None
    assert (options.start.of(ORDERS_0), options.start.of(ORDERS_1)) == (5, EARLIEST)
    assert options.end.of(ORDERS_0) == LATEST


def test_a_time_for_all_goes_before_times_for_each_and_those_before_offsets() -> None:
    every = {
        "startingOffsets": "earliest",
        "startingOffsetsByTimestamp": '{"orders":{"0":7}}',
        "startingTimestamp": "9",
    }
    start = parse(**every).start
    assert start is not None
    assert (start.by_time, start.everywhere) == (True, 9)
    del every["startingTimestamp"]
    start = parse(**every).start
    assert start is not None
    assert (start.by_time, start.of(ORDERS_0), start.of(ORDERS_1)) == (True, 7, None)


def test_a_batch_query_reads_everything_unless_told_otherwise() -> None:
    options = parse().for_batch()
    assert options.start is not None
    assert options.end is not None
    assert (options.start.everywhere, options.end.everywhere) == (EARLIEST, LATEST)


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"orders":{"0":-1}}'},
        {"endingOffsets": "earliest"},
        {"endingOffsets": '{"orders":{"0":-2}}'},
        {"commitGroup": "dashboard"},
        {"pinRetention": "10m"},
    ],
)
def test_a_batch_query_does_not_start_at_the_end_nor_end_at_the_start(options: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig):
        parse(**options).for_batch()


def test_a_stream_starts_at_the_latest_unless_told_otherwise() -> None:
    start = parse().for_stream().start
    assert start is not None
    assert start.everywhere == LATEST


@pytest.mark.parametrize("option", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(option: str) -> None:
    values = {"endingOffsets": "latest", "endingTimestamp": "5", "endingOffsetsByTimestamp": "{}"}
    with pytest.raises(InvalidConfig, match=f"{option}.*cannot be used.*availableNow"):
        parse(**{option: values[option]}).for_stream()


def test_limits_are_counts_sizes_and_times() -> None:
    options = parse(maxOffsetsPerTrigger="100", maxBytesPerTrigger="8MiB", minPartitions="4", pinRetention="10m")
    assert (options.max_offsets_per_trigger, options.max_bytes_per_trigger) == (100, 8 * 2**20)
    assert (options.min_partitions, options.pin_ms) == (4, 600_000)


def test_secrets_are_not_shown() -> None:
    options = parse(**{"s3.access_key_id": "AKIA", "s3.secret_access_key": "hush"})
    assert "hush" not in repr(options)
    assert options.connection.s3.secret_access_key == "hush"


def test_offsets_survive_the_checkpoint() -> None:
    offsets = {ORDERS_1: 7, ORDERS_0: 5, TopicPartition("a", 10): 1}
    assert json_of(offsets) == {"a": {"10": 1}, "orders": {"0": 5, "1": 7}}
    assert offsets_of(json_of(offsets)) == offsets


def test_the_connection_is_the_same_for_sources_and_sinks() -> None:
    connection = Connection.parse(Options({"Endpoint": "http://a:1,http://b:2", "s3.endpoint": "http://s3:9000"}))
    assert (connection.endpoint, connection.s3.endpoint) == ("http://a:1,http://b:2", "http://s3:9000")


def test_the_page_tells_of_every_option() -> None:
    page = (Path(__file__).parents[4] / "docs" / "spark-source.md").read_text("utf-8")
    told = re.findall(r"^\| `([\w.]+)` \|", page.partition("## Options")[2].partition("## Tasks")[0], re.MULTILINE)
    assert sorted(told) == sorted(KNOWN_OPTIONS)
