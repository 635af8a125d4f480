"""A pipeline's file: what is read from it, and every mistake with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamhouse.model.errors import NotFound
from streamhouse.spark.pipelines.model import (
    ConsoleSink,
    Guarantee,
    OutputMode,
    PostgresSink,
    PythonStep,
    RecordFormat,
    SqlStep,
    TopicSink,
    TopicSource,
    Trigger,
)
from streamhouse.spark.pipelines.parsing import parse_pipeline, read_pipeline
from streamhouse.spark.pipelines.problems import InvalidPipeline

FILE = "shop/orders.yaml"

WHOLE = """\
name: orders
checkpoint: checkpoints/orders
trigger: 10s
dead_letter: dead
sources:
  - name: orders
    topic: orders
    schema: order_id STRING, placed_at TIMESTAMP
    watermark: {column: placed_at, delay: 10m}
  - name: customers
    table: customers
    schema: customer_id STRING
steps:
  - name: big
    sql: |
      SELECT *
      FROM orders
  - name: scored
    python: scoring:score
    from: big
sinks:
  - name: out
    from: scored
    topic: scored
    key: order_id
    mode: update
    guarantee: exactly-once
  - name: table
    from: scored
    postgres: shop.orders
    dsn: ${DSN}
    key: [order_id, part]
  - name: look
    from: big
    console: true
"""


def problems_of(text: str, **variables: str) -> list[str]:
    with pytest.raises(InvalidPipeline) as caught:
        parse_pipeline(text, FILE, variables)
    return caught.value.lines()


def changed(old: str, new: str) -> str:
    assert old in WHOLE
    return WHOLE.replace(old, new)


def test_a_whole_file_becomes_a_model() -> None:
    pipeline = parse_pipeline(WHOLE, FILE, {"DSN": "postgresql://shop"})

    assert pipeline.name == "orders"
    assert pipeline.endpoint == "http://127.0.0.1:8080"
    assert pipeline.trigger == Trigger(interval_ms=10_000)
    orders, customers = pipeline.sources
    assert isinstance(orders, TopicSource)
    assert orders.watermark is not None
    assert (orders.watermark.column, orders.watermark.delay_ms) == ("placed_at", 600_000)
    assert (orders.format, orders.is_stream, orders.is_table) == (RecordFormat.JSON, True, False)
    assert isinstance(customers, TopicSource)
    assert (customers.is_stream, customers.is_table) == (False, True)
    big, scored = pipeline.steps
    assert isinstance(big, SqlStep)
    assert big.sql_line == 16, "a block's text begins below its key"
    assert isinstance(scored, PythonStep)
    assert (scored.function, scored.inputs) == ("scoring:score", ("big",))
    out, table, look = pipeline.sinks
    assert isinstance(out, TopicSink)
    assert (out.topic, out.key, out.mode, out.guarantee) == (
        "scored",
        "order_id",
        OutputMode.UPDATE,
        Guarantee.EXACTLY_ONCE,
    )
    assert isinstance(table, PostgresSink)
    assert (table.dsn, table.key) == ("postgresql://shop", ("order_id", "part"))
    assert "postgresql://" not in repr(table), "its password would be in every log that shows a pipeline"
    assert isinstance(look, ConsoleSink)
    assert look.guarantee is Guarantee.AT_LEAST_ONCE


def test_paths_are_relative_to_the_file_and_urls_are_left_alone() -> None:
    here = Path.cwd() / "shop"

    assert parse_pipeline(WHOLE, FILE, {"DSN": "x"}).checkpoint == str(here / "checkpoints" / "orders")

    elsewhere = changed("checkpoint: checkpoints/orders", "checkpoint: s3://bucket/checkpoints")
    assert parse_pipeline(elsewhere, FILE, {"DSN": "x"}).checkpoint == "s3://bucket/checkpoints"


def test_a_variable_counts_before_its_default() -> None:
    text = changed("trigger: 10s", "trigger: ${EVERY:-1m}")

    assert parse_pipeline(text, FILE, {"DSN": "x"}).trigger == Trigger(interval_ms=60_000)
    assert parse_pipeline(text, FILE, {"DSN": "x", "EVERY": "2s"}).trigger == Trigger(interval_ms=2_000)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("once", Trigger(interval_ms=None, is_single=True)), ("available-now", Trigger(interval_ms=None))],
)
def test_a_trigger_can_be_an_end(written: str, meant: Trigger) -> None:
    assert parse_pipeline(changed("10s", written), FILE, {"DSN": "x"}).trigger == meant


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("trigger: 10s", "triger: 10s", "3: a pipeline has no 'triger'; did you mean 'trigger'?"),
        ("trigger: 10s", "trigger: soon", "3: 'trigger': 'soon' is not a trigger (write a duration"),
        ("name: orders\ncheck", "name: ../orders\ncheck", "1: '../orders' is not a name"),
        ("checkpoint: checkpoints/orders\n", "", "1: a pipeline needs 'checkpoint'"),
        ("trigger: 10s", "name: again", "3: 'name' is given twice in a pipeline"),
        ("dead_letter: dead", "dead_letter:", "4: 'dead_letter' is empty"),
        ("dead_letter: dead\n", "", "1: records of 'orders' that do not parse need a place; write `dead_letter"),
        ("dead_letter: dead", "dead_letter: orders", "4: source 'orders' reads the dead letters"),
        ("    topic: orders\n", "", "6: a source needs one of 'topic', 'table' and 'files'"),
        ("topic: orders\n", "topic: or ders\n", "7: 'topic': 'or ders' is not a topic name"),
        ("    schema: order_id STRING, placed_at TIMESTAMP\n", "", "6: a source needs 'schema'"),
        ("delay: 10m", "delay: 10", "9: 'delay': '10' is not a duration"),
        ("column: placed_at, ", "", "9: 'watermark' of a source needs 'column'"),
        ("column: placed_at", "colum: placed_at", "9: 'watermark' of a source has no 'colum'; did you mean 'column'?"),
        ("table: customers\n", "table: customers\n    format: avro\n", "12: 'format' cannot be 'avro'; there are"),
        ("table: customers\n", "table: customers\n    start: latest\n", "12: a table is made of all records"),
        ("name: customers", "name: Orders", "10: a source or step 'orders' is already on line 6"),
        ("python: scoring:score", "python: scoring.score", "19: 'python': 'scoring.score' is not module:function"),
        ("    from: big\nsinks", "    from: bigg\nsinks", "18: step 'scored' takes rows from 'bigg', which is no"),
        ("    from: big\nsinks", "    from: scored\nsinks", "18: step 'scored' takes rows from 'scored'"),
        ("    from: big\nsinks", "sinks", "19: a Python step needs 'from'"),
        ("python: scoring:score", "pyton: scoring:score", "18: a step needs either 'sql' or 'python'"),
        ("topic: scored", "topik: scored", "22: a sink needs one of 'topic', 'parquet', 'delta'"),
        ("mode: update", "mode: updat", "26: 'mode' cannot be 'updat'; did you mean 'update'?"),
        ("guarantee: exactly-once", "guarantee: at-most-once", "27: 'guarantee' cannot be 'at-most-once'"),
        ("console: true", "console: true\n    guarantee: exactly-once", "36: a console sink cannot promise"),
        ("    topic: scored\n    key: order_id\n", "    parquet: p\n", "25: a parquet sink cannot take mode 'update'"),
        ("    topic: scored\n    key: order_id\n", "    delta: d\n", "25: a delta sink cannot take mode 'update'"),
        ("    key: [order_id, part]\n", "", "30: an upsert needs 'key'"),
        ("dsn: ${DSN}", "dsn: ${NO_DSN}", "31: the environment variable NO_DSN is not set"),
        ("name: look", "name: out", "33: a sink 'out' is already on line 22"),
        ("name: look", "name: dead_letter", "33: 'dead_letter' is the name of the dead letters"),
        ("name: look\n    from: big", "name: look\n    from: bog", "33: sink 'look' takes rows from 'bog'"),
        ("sources:\n", "sources: none\nothers:\n", "5: 'sources' must be a list"),
        ("  - name: look", "  - look\n  - name: look", "33: a sink must be a mapping"),
        ("trigger: 10s", "trigger: [10s", "4: this is not YAML: "),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line(old: str, new: str, expected: str) -> None:
    lines = problems_of(changed(old, new), DSN="x")

    assert any(line.startswith(f"{FILE}:{expected}") for line in lines), lines


def test_all_mistakes_are_told_at_once_in_the_order_of_the_lines() -> None:
    text = (
        changed("trigger: 10s", "trigger: soon")
        .replace("mode: update", "mode: upsert")
        .replace("delay: 10m", "delay: x")
    )

    lines = problems_of(text, DSN="x")

    assert [line.split(":")[1] for line in lines] == ["3", "9", "26"]


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just text"])
def test_a_file_that_is_no_mapping_is_told_so(text: str) -> None:
    assert problems_of(text) == [f"{FILE}:1: a pipeline is a mapping that begins with `name:`"]


def test_a_file_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound, match=r"no pipeline file 'nowhere\.yaml'"):
        read_pipeline("nowhere.yaml", {})


def test_the_endpoint_can_be_given_from_outside() -> None:
    text = changed("trigger: 10s", "trigger: 10s\nendpoint: http://inside:1")

    assert parse_pipeline(text, FILE, {"DSN": "x"}).endpoint == "http://inside:1"
    assert parse_pipeline(text, FILE, {"DSN": "x"}, endpoint="http://outside:2").endpoint == "http://outside:2"
