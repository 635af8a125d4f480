"""A small pipeline on real Spark and a real node: records go through SQL to a topic once, also if its run is killed.

tests/long/test_pipelines.py has all sinks and sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.record import Record
from spark_parts.driver import Hold
from spark_parts.nodes import SparkNode
from spark_parts.pipelines import (
    PipelineCommand,
    create_topics,
    facts_of,
    finish,
    json_records,
    json_values,
    pipeline_of,
    start_once,
)
from spark_parts.rows import consume, produce
from streamhouse.spark.pipelines.registry import DIED, ENDED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAID = """
    name: paid
    endpoint: ${ENDPOINT}
    checkpoint: checkpoint
    dead_letter: bad-orders
    sources:
      - {name: orders, topic: orders, schema: "id BIGINT NOT NULL, cents BIGINT"}
    steps:
      - name: paid
        sql: SELECT id, cents / 100 AS euros FROM orders WHERE cents > 0
    sinks:
      - {name: paid, from: paid, topic: paid-orders, key: id, guarantee: exactly-once}
"""
_POISON = Record(key=b"k", value=b"{not json", headers=(("trace", b"7"),))
# The batch has taken effect, and Spark does not know it yet: it will come again.
_ADOPTED = Hold(name="adopted", module="streamhouse.client.planning", function="PlanningClient.adopt", is_after=True)


def test_rows_that_sql_makes_of_records_go_to_a_topic_and_what_does_not_parse_to_the_dead_letters(
    spark: SparkSession, embedded_node: SparkNode, tmp_path: Path
) -> None:
    bootstrap = embedded_node.bootstrap
    _produce_orders(embedded_node)

    finish(start_once(spark, pipeline_of(_PAID, tmp_path, ENDPOINT=embedded_node.endpoint)))

    _check_paid(bootstrap)
    (letter,) = consume(bootstrap, "bad-orders")
    assert (letter.key, letter.value, letter.headers[0]) == (_POISON.key, _POISON.value, ("trace", b"7"))
    facts = facts_of(letter)
    assert (facts["pipeline"], facts["step"], facts["topic"]) == ("paid", "orders", "orders")
    assert facts["error"] == "the value is not JSON of the declared schema"


@pytest.mark.long_form
def test_a_run_on_postgres_and_s3_that_was_killed_is_finished_by_the_next(
    service_node: SparkNode, tmp_path: Path
) -> None:
    bootstrap = service_node.bootstrap
    _produce_orders(service_node)
    service_node.wait_in_segments("orders", 21)
    command = PipelineCommand(_PAID, tmp_path, ENDPOINT=service_node.endpoint)

    with command.start("--once", holds=[_ADOPTED]) as driver:
        driver.wait_at(_ADOPTED.name)
        driver.kill9()
    assert command.registry.find("paid").state == DIED
    with command.start("--once", "--json") as driver:
        output = driver.finish()

    _check_paid(bootstrap)
    assert [letter.value for letter in consume(bootstrap, "bad-orders")] == [_POISON.value]
    ended = command.registry.find("paid")
    assert (ended.state, ended.dead_letters) == (ENDED, 1)
    told = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert {batch["query"]: batch["lag"] for batch in told} == {"paid": {"orders": 0}, "dead_letter": {"orders": 0}}


def _produce_orders(node: SparkNode) -> None:
    create_topics(node.bootstrap, "orders", "paid-orders", "bad-orders")
    orders = json_records({"id": number, "cents": 50 * number} for number in range(20))
    produce(node.bootstrap, "orders", [*orders[:10], _POISON, *orders[10:]])


def _check_paid(bootstrap: str) -> None:
    paid = sorted((row["id"], row["euros"]) for row in json_values(bootstrap, "paid-orders"))
    assert paid == [(number, number / 2) for number in range(1, 20)], "nothing lost, nothing twice"
