"""Arrow batches of exactly the schema of Spark's Kafka source."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql.pandas.types import to_arrow_schema

from streamhouse.format.batch import stamp_append_time
from streamhouse.format.column_stream import ColumnsPart, iter_columns
from streamhouse.format.records import Record, encode_records
from streamhouse.spark.source import rows as rows_module
from streamhouse.spark.source.rows import RowBatches, row_type

NOON_MS = 1_793_534_400_123


def part(*records: Record, stamped: bool = False) -> ColumnsPart:
    run = encode_records(records, base_offset=records[0].offset)
    run = stamp_append_time(run, NOON_MS) if stamped else run
    (only,) = iter_columns([run], start_offset=0, end_offset=2**60, target_rows=2**60, target_bytes=2**60)
    return only


def test_the_schema_is_that_of_sparks_kafka_source() -> None:
    assert row_type(include_headers=True).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert "headers" not in row_type(include_headers=False).names


def test_rows_have_what_records_have() -> None:
    record = Record(7, NOON_MS, b"key", b"value", (("a", b"b"), ("c", None)))
    (batch,) = RowBatches(include_headers=True).of("orders", 3, part(record))
    batch.validate(full=True)
    assert batch.schema.equals(to_arrow_schema(row_type(include_headers=True), timezone="UTC"))
    assert batch.to_pylist() == [
        {
            "key": b"key",
            "value": b"value",
            "topic": "orders",
            "partition": 3,
            "offset": 7,
            "timestamp": datetime(2026, 11, 1, 12, 0, 0, 123_000, tzinfo=UTC),
            "timestampType": 0,
            "headers": [{"key": "a", "value": b"b"}, {"key": "c", "value": None}],
        }
    ]


def test_nulls_are_told_from_what_is_empty_and_no_headers_are_null() -> None:
    records = (Record(0, 1, None, None), Record(1, 1, b"", b""), Record(2, 1, b"k", b"v", (("", b""),)))
    (batch,) = RowBatches(include_headers=True).of("orders", 0, part(*records))
    batch.validate(full=True)
    assert batch.column("key").to_pylist() == [None, b"", b"k"]
    assert batch.column("value").to_pylist() == [None, b"", b"v"]
    assert batch.column("headers").to_pylist() == [None, None, [{"key": "", "value": b""}]]


def test_the_kind_of_timestamp_is_kafkas_number() -> None:
    (batch,) = RowBatches(include_headers=False).of("orders", 0, part(Record(0, 1, None, b"v"), stamped=True))
    assert batch.column("timestampType").to_pylist() == [1]
    assert batch.column("timestamp").to_pylist() == [datetime(2026, 11, 1, 12, 0, 0, 123_000, tzinfo=UTC)]


def test_batches_of_different_lengths_and_topics_share_nothing_but_memory() -> None:
    batches = RowBatches(include_headers=False)
    for topic, count in (("a", 3), ("b", 5), ("a", 4), ("a", 1)):
        records = [Record(number, 1, None, b"v") for number in range(count)]
        (batch,) = batches.of(topic, 1, part(*records))
        batch.validate(full=True)
        assert batch.column("topic").to_pylist() == [topic] * count


def test_very_many_rows_are_more_than_one_batch() -> None:
    limit = rows_module.MAX_BATCH_ROWS
    records = [Record(number, 1, None, None, (("h", b"x"),)) for number in range(limit + 5)]
    first, second = RowBatches(include_headers=True).of("orders", 0, part(*records))
    second.validate(full=True)
    assert (first.num_rows, second.num_rows) == (limit, 5)
    assert second.column("offset").to_pylist() == list(range(limit, limit + 5))
    assert second.column("headers").to_pylist() == [[{"key": "h", "value": b"x"}]] * 5
