"""Pipelines on real Spark and a real node: sinks, poison, state, and a driver that is killed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pyarrow as pa
import pytest

from compat.record import Record
from node.wait import eventually
from spark_parts.driver import START_SECONDS, Hold
from spark_parts.nodes import SparkNode
from spark_parts.pipelines import (
    PipelineCommand,
    create_topics,
    facts_of,
    finish,
    json_records,
    json_values,
    latest_values,
    pipeline_of,
    start_once,
)
from spark_parts.rows import consume, produce
from spark_parts.session import MASTER
from streamhouse.cli.main import run as run_command
from streamhouse.spark.pipelines.problems import InvalidPipeline
from streamhouse.spark.pipelines.registry import DIED, ENDED, RUNNING, STATE_VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IS_LONG = bool(os.environ.get("SWEEP"))

_FUNCTIONS = '''
"""Beside the pipeline's file: executors can only have it if it is sent to them."""
from streamhouse.spark.pipelines.functions import each_batch

@each_batch("id BIGINT, user STRING, amount BIGINT")
def check(events):
    if (events["amount"] < 0).any():
        raise ValueError("nobody pays less than nothing")
    return events[["id", "user", "amount"]]
'''

_EVERYTHING = """
    name: everything
    endpoint: ${ENDPOINT}
    checkpoint: checkpoint
    dead_letter: ${DEAD}
    sources:
      - name: events
        topic: ${EVENTS}
        schema: id BIGINT NOT NULL, user STRING, amount BIGINT
    steps:
      - name: checked
        python: pipeline_functions:check
        from: events
      - name: totals
        sql: |
          SELECT user, count(*) AS events, sum(amount) AS amount, sum(amount) / (count(*) - count(*)) AS nothing
          FROM checked
          GROUP BY user
    sinks:
      - {name: totals, from: totals, topic: "${TOTALS}", key: user, mode: update}
      - {name: table, from: totals, postgres: totals, dsn: "${DSN}", key: user, mode: update}
      - {name: files, from: checked, parquet: files}
      - {name: look, from: checked, console: true, max_rows: 100}
"""


def test_rows_reach_every_sink_once_and_poison_is_set_aside(
    spark: SparkSession, embedded_node: SparkNode, postgres_dsn: str, tmp_path: Path
) -> None:
    node = embedded_node
    events, totals, dead = "events", "totals", "dead"
    create_topics(node.bootstrap, events, totals, dead)
    (tmp_path / "pipeline_functions.py").write_text(_FUNCTIONS)
    pipeline = pipeline_of(
        _EVERYTHING, tmp_path, ENDPOINT=node.endpoint, EVENTS=events, TOTALS=totals, DEAD=dead, DSN=postgres_dsn
    )
    shown: list[dict[str, object]] = []
    good = [{"id": number, "user": f"u{number % 3}", "amount": number} for number in range(30)]
    poison = [
        Record(key=b"k", value=b"{not json", headers=(("trace", b"7"),), timestamp_ms=1_700_000_000_000),
        Record(key=None, value=b'{"id": "seven"}'),
        Record(key=None, value=b'{"user": "u1", "amount": 1}'),
        Record(key=None, value=None),
        *json_records([{"id": 31, "user": "u1", "amount": -1}, {"id": 32, "user": "nul\0", "amount": 0}]),
    ]

    produce(node.bootstrap, events, [*json_records(good), *poison])
    finish(start_once(spark, pipeline, shown))

    expected = {f"u{user}": {"user": f"u{user}", "events": 10, "amount": sum(range(user, 30, 3))} for user in range(3)}
    assert latest_values(node.bootstrap, totals) == {**expected, "nul\0": {"user": "nul\0", "events": 1, "amount": 0}}
    assert _table(postgres_dsn) == {user: (each["events"], each["amount"]) for user, each in expected.items()}
    ids = sorted([*range(30), 32])
    assert sorted(row["id"] for row in spark.read.parquet(str(tmp_path / "files")).collect()) == ids
    assert sorted(row["id"] for row in shown) == ids  # type: ignore[type-var]
    letters = consume(node.bootstrap, dead)
    assert Counter(facts_of(letter)["error"] for letter in letters) == {
        "the value is not JSON of the declared schema": 2,
        "the value has no 'id'": 1,
        "the record has no value": 1,
        "ValueError: nobody pays less than nothing": 1,
        'CharacterNotInRepertoireError: invalid byte sequence for encoding "UTF8": 0x00': 1,
    }
    _check_letters(node, events, letters)


def _check_letters(node: SparkNode, events: str, letters: list[Any]) -> None:
    originals = {(row.partition, row.offset): row for row in consume(node.bootstrap, events)}
    steps = Counter()
    for letter in letters:
        facts = facts_of(letter)
        steps[facts["step"]] += 1
        assert facts["pipeline"] == "everything"
        if facts["step"] == "table":
            assert json.loads(letter.value)["user"] == "nul\0", "a row of a sink has no record that it is"
            continue
        original = originals[int(facts["partition"]), int(facts["offset"])]
        assert facts["topic"] == events
        assert (letter.key, letter.value) == (original.key, original.value)
        assert letter.headers[: len(original.headers)] == original.headers
        assert datetime.fromisoformat(facts["timestamp"]) == datetime.fromtimestamp(original.timestamp_ms / 1000, UTC)
    assert steps == {"events": 4, "checked": 1, "table": 1}


def _table(dsn: str) -> dict[str, tuple[int, int]]:
    async def read() -> list[Any]:
        connection = await asyncpg.connect(dsn)
        try:
            return list(await connection.fetch('SELECT "user", events, amount FROM totals'))
        finally:
            await connection.close()

    return {row["user"]: (row["events"], row["amount"]) for row in asyncio.run(read())}


_OF_FILES = """
    name: files
    endpoint: ${ENDPOINT}
    checkpoint: checkpoint
    dead_letter: bad-lines
    sources:
      - {name: lines, files: lines, format: json, stream: true, schema: "id BIGINT, country STRING"}
      - {name: countries, files: countries.csv, format: csv, schema: "code STRING, name STRING"}
    steps:
      - name: named
        sql: SELECT id, name FROM lines JOIN countries ON code = country
    sinks:
      - {name: look, from: named, console: true}
"""


def test_files_are_streams_or_reference_data_and_a_query_that_fails_is_started_again(
    spark: SparkSession, embedded_node: SparkNode, tmp_path: Path
) -> None:
    from streamhouse.spark.pipelines.run import PipelineRun

    create_topics(embedded_node.bootstrap, "bad-lines")
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "1.json").write_text(
        '{"id": 1, "country": "DE"}\n{"id": "one"}\n{"id": 2, "country": "FR"}\n'
    )
    (tmp_path / "countries.csv").write_text("code,name\nDE,Germany\nFR,France\n")
    shown: list[dict[str, object]] = []
    notes: list[str] = []

    def show(sink: str, batch: int, rows: list[dict[str, object]], count: int) -> None:
        if not notes:
            raise OSError("the terminal went away")
        shown.extend(rows)

    pipeline = pipeline_of(_OF_FILES, tmp_path, ENDPOINT=embedded_node.endpoint)
    run = PipelineRun(spark, pipeline, once=True, show_rows=show, note=notes.append)
    run.start()
    finish(run)

    assert sorted(shown, key=str) == [{"id": 1, "name": "Germany"}, {"id": 2, "name": "France"}]
    assert notes == ["look: OSError: the terminal went away; trying again"]
    (letter,) = consume(embedded_node.bootstrap, "bad-lines")
    assert letter.value == b'{"id": "one"}'
    assert facts_of(letter)["file"].endswith("/lines/1.json")


_OF_A_TABLE = """
    name: prices
    endpoint: ${ENDPOINT}
    checkpoint: checkpoint
    dead_letter: bad-prices
    sources:
      - {name: prices, table: prices, stream: true, schema: "sku STRING, cents BIGINT"}
    sinks:
      - {name: latest, from: prices, topic: latest-prices, key: sku, mode: update}
"""


def test_a_table_can_be_a_stream_of_its_changes(spark: SparkSession, embedded_node: SparkNode, tmp_path: Path) -> None:
    bootstrap = embedded_node.bootstrap
    create_topics(bootstrap, "prices", "latest-prices", "bad-prices")
    changes = [("a", 1), ("b", 2), ("a", 3)]
    produce(bootstrap, "prices", json_records([{"sku": sku, "cents": cents} for sku, cents in changes], key="sku"))
    produce(bootstrap, "prices", [Record(key=b"gone", value=b"{}"), Record(key=b"gone", value=None)])

    finish(start_once(spark, pipeline_of(_OF_A_TABLE, tmp_path, ENDPOINT=embedded_node.endpoint)))

    assert sorted((each["sku"], each["cents"]) for each in json_values(bootstrap, "latest-prices")) == [
        ("a", 3),
        ("b", 2),
    ]
    assert consume(bootstrap, "bad-prices") == [], "a deletion is not a bad record"


_TO_LAKES = """
    name: copies
    endpoint: ${ENDPOINT}
    checkpoint: checkpoint
    trigger: 100ms
    sources:
      - {name: events, topic: "${EVENTS}", format: raw, max_records: 40}
    steps:
      - name: copies
        sql: SELECT key, value FROM events
      - name: texts
        sql: SELECT CAST(value AS STRING) AS text, partition, offset, timestamp FROM events
    sinks:
      - {name: topic, from: copies, topic: "${COPIES}", format: raw, guarantee: exactly-once}
      - {name: delta, from: texts, delta: delta, guarantee: exactly-once}
      - name: iceberg
        from: texts
        iceberg: shop.texts
        guarantee: exactly-once
        catalog: {type: sql, uri: "sqlite:///${DIRECTORY}/catalog.db", warehouse: "file://${DIRECTORY}/warehouse"}
"""

# Where a batch has taken effect and Spark does not know it yet: it will come again.
_HOLDS = [
    Hold(name="topic", module="streamhouse.client.planning", function="PlanningClient.adopt", is_after=True, skip=1),
    *(
        Hold(
            name=name,
            module=f"streamhouse.spark.pipelines.sinks.{name}",
            function=f"{name.capitalize()}Writer._commit",
            is_after=True,
            skip=1,
        )
        for name in ("delta", "iceberg")
    ),
]


def test_a_killed_run_is_known_to_have_died_and_the_next_loses_and_doubles_nothing(
    embedded_node: SparkNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node = embedded_node
    events, copies = "originals", "copies"
    create_topics(node.bootstrap, events, copies)
    command = PipelineCommand(
        _TO_LAKES,
        tmp_path,
        master="local-cluster[2,1,1024]" if IS_LONG else MASTER,
        ENDPOINT=node.endpoint,
        EVENTS=events,
        COPIES=copies,
        DIRECTORY=str(tmp_path),
    )
    monkeypatch.setenv(STATE_VARIABLE, str(command.state))
    registry = command.registry
    values = [f"value-{number}".encode() for number in range(130)]

    produce(node.bootstrap, events, [Record(key=value[-1:], value=value) for value in values[:120]])
    with command.start(holds=_HOLDS) as driver:
        for hold in _HOLDS:
            driver.wait_at(hold.name)
        assert registry.find("copies").state == RUNNING
        assert run_command(["pipeline", "run", str(command.file)]) == 1, "it runs already"
        assert "runs already" in capsys.readouterr().err
        driver.kill9()
    assert registry.find("copies").state == DIED

    with command.start("--json") as driver:
        produce(node.bootstrap, events, [Record(key=value[-1:], value=value) for value in values[120:]])
        eventually(
            lambda: all(len(each) >= 130 for each in _copies(node, copies, tmp_path)),
            "all rows in all sinks",
            timeout=START_SECONDS,
            pause=0.2,
        )
        assert run_command(["pipeline", "list"]) == 0
        assert run_command(["pipeline", "status", "copies", "--json"]) == 0
        listed, status = capsys.readouterr().out.split("{", 1)
        assert "copies" in listed
        assert json.loads("{" + status)["state"] == RUNNING
        assert run_command(["pipeline", "stop", "copies"]) == 0
        output = driver.finish()

    expected = Counter(value.decode() for value in values)
    for name, rows in zip(("topic", "delta", "iceberg"), _copies(node, copies, tmp_path), strict=True):
        doubled, lost = Counter(rows) - expected, expected - Counter(rows)
        assert not doubled, f"{name} has rows twice"
        assert not lost, f"{name} has lost rows"
    ended = registry.find("copies")
    assert ended.state == ENDED
    assert {query.query: query.guarantee for query in ended.queries} == dict.fromkeys(
        ("topic", "delta", "iceberg"), "exactly-once"
    )
    assert all(query.lag == {events: 0} for query in ended.queries), ended
    batches = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert {batch["query"] for batch in batches} == {"topic", "delta", "iceberg"}
    assert all(batch["pipeline"] == "copies" and batch["batch_ms"] > 0 for batch in batches)


def _copies(node: SparkNode, topic: str, directory: Path) -> tuple[list[str], list[str], list[str]]:
    from deltalake import DeltaTable
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("default", type="sql", uri=f"sqlite:///{directory}/catalog.db")
    delta = pa.table(DeltaTable(directory / "delta").to_pyarrow_table())
    return (
        [(row.value or b"").decode() for row in consume(node.bootstrap, topic)],
        delta.column("text").to_pylist(),
        catalog.load_table("shop.texts").scan().to_arrow().column("text").to_pylist(),
    )


_OF_TWO_QUERIES = """
    name: slow
    endpoint: ${ENDPOINT}
    checkpoint: checkpoint
    dead_letter: late-letters
    sources:
      - {name: events, topic: late-events, schema: "id BIGINT NOT NULL"}
    sinks:
      - {name: out, from: events, topic: late-copies}
"""

# Spark gives the process ten seconds, and the first two take longer. PYTHONPATH would have it compile all of
# PySpark, which on a busy machine is late enough.
_SLOW_PYTHON = """\
#!/bin/sh
case "$*" in
*python_streaming_source_runner*)
    touch "{directory}/starts/$$" "{directory}/starting/$$"
    if [ "$(ls "{directory}/starting" | wc -l)" -gt 1 ]; then
        touch "{directory}/met/$$"
    fi
    sleep 4
    rm "{directory}/starting/$$"
    if [ "$(ls "{directory}/starts" | wc -l)" -le 2 ]; then
        sleep 8
    fi
    ;;
esac
unset PYTHONPATH
exec "{python}" "$@"
"""


def test_queries_whose_processes_start_too_slowly_begin_again_one_after_the_other(
    embedded_node: SparkNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topics(embedded_node.bootstrap, "late-events", "late-copies", "late-letters")
    produce(embedded_node.bootstrap, "late-events", [*json_records([{"id": 1}]), Record(key=None, value=b"{not json")])
    for name in ("starts", "starting", "met"):
        (tmp_path / name).mkdir()
    python = tmp_path / "python"
    python.write_text(_SLOW_PYTHON.format(directory=tmp_path, python=sys.executable))
    python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))

    with PipelineCommand(_OF_TWO_QUERIES, tmp_path, ENDPOINT=embedded_node.endpoint).start("--once") as driver:
        output = driver.finish()

    assert not list((tmp_path / "met").iterdir()), "two started at the same time"
    for query in ("out", "dead_letter"):
        assert f"{query}: Python worker failed to connect back.; trying again" in output
    assert json_values(embedded_node.bootstrap, "late-copies") == [{"id": 1}]
    assert [letter.value for letter in consume(embedded_node.bootstrap, "late-letters")] == [b"{not json"]


_WRONG = """\
name: wrong
endpoint: {endpoint}
checkpoint: checkpoint
dead_letter: no-such-topic
sources:
  - name: orders
    topic: {topic}
    schema: |
      id BIGINT,
      at TIMESTAMP,
      total BIGIN
  - name: payments
    topic: {topic}
    schema: id BIGINT, at TIMESTAMP, amount BIGINT
  - name: late
    topic: {topic}
    schema: id BIGINT, at STRING
    watermark:
      column: at
      delay: 1m
  - name: reference
    files: nowhere/*.csv
    format: csv
    schema: id BIGINT
steps:
  - name: of_failed
    sql: SELECT * FROM orders
  - name: misspelt
    sql: |
      SELECT id,
        amuont
      FROM payments
  - name: unknown
    sql: SELECT * FROM paymants
  - name: eager
    sql: SELECT * FROM counted
  - name: command
    sql: DROP TABLE payments
  - name: counted
    sql: SELECT at, count(*) AS n FROM payments GROUP BY at
  - name: imported
    python: no_such_module:f
    from: payments
  - name: absent
    python: json:f
    from: payments
sinks:
  - name: too_early
    from: counted
    topic: {topic}
    key: nobody
  - name: never_final
    from: counted
    console: true
  - name: not_a_stream
    from: reference
    console: true
  - name: keyless
    from: payments
    postgres: payments
    dsn: postgresql://nobody
    key: idd
"""

_MISTAKES = {
    4: "there is no topic 'no-such-topic'; make it with `streamhouse topic create no-such-topic`",
    11: "this schema is not Spark DDL",
    19: "The event time",
    22: "there are no files",
    31: "`amuont` cannot be resolved. Did you mean one of the following? [`amount`",
    34: "there is no source or step 'paymants'; did you mean 'payments'?",
    36: "'counted' comes later, on line 39; move it before 'eager'",
    38: "Syntax error at or near 'DROP'",
    42: "cannot import 'no_such_module'",
    45: "module 'json' has no function 'f'",
    51: "`nobody` cannot be resolved",
    52: "sink 'never_final': Invalid streaming output mode: append",
    55: "'reference' has no streaming source",
    62: "there is no column 'idd'",
}


def test_every_mistake_that_only_spark_and_the_node_can_find_is_told_with_its_line(
    spark: SparkSession, embedded_node: SparkNode, tmp_path: Path
) -> None:
    from streamhouse.spark.pipelines.checking import check_pipeline
    from streamhouse.spark.pipelines.run import pipeline_session

    create_topics(embedded_node.bootstrap, "payments")
    text = _WRONG.format(endpoint=embedded_node.endpoint, topic="payments")
    pipeline = pipeline_of(text, tmp_path)

    with pytest.raises(InvalidPipeline) as caught:
        check_pipeline(pipeline_session(spark, pipeline), pipeline)

    found = {problem.line: problem.message for problem in caught.value.problems}
    assert found.keys() == _MISTAKES.keys(), "\n".join(caught.value.lines())
    for line, message in _MISTAKES.items():
        assert message in found[line]
    assert "no_such_module" not in sys.modules
