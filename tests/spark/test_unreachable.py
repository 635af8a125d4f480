"""A node that is not there, or is there and never says anything: told within seconds, in every way of using one."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from node.wait import HUNG_SECONDS
from services.ports import free_port
from streamhouse.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WELL_BELOW_A_MINUTE_S = 40

Begin = Callable[["SparkSession", dict[str, str], str], object]


@contextmanager
def refusing() -> Iterator[str]:
    yield f"http://127.0.0.1:{free_port()}"


@contextmanager
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=256) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def read_batch(spark: SparkSession, options: dict[str, str], checkpoint: str) -> None:
    spark.read.format("streamhouse").options(**options, subscribe="orders").load().collect()


def write_batch(spark: SparkSession, options: dict[str, str], checkpoint: str) -> None:
    frame = spark.range(1).selectExpr("'x' AS value")
    frame.write.format("streamhouse").mode("append").options(**options, topic="orders").save()


def read_stream(spark: SparkSession, options: dict[str, str], checkpoint: str) -> None:
    stream = spark.readStream.format("streamhouse").options(**options, subscribe="orders").load()
    stream.writeStream.format("noop").option("checkpointLocation", checkpoint).start().awaitTermination(HUNG_SECONDS)


def write_stream(spark: SparkSession, options: dict[str, str], checkpoint: str) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("'x' AS value")
    writing = stream.writeStream.format("streamhouse").options(**options, topic="orders", checkpointLocation=checkpoint)
    writing.start().awaitTermination(HUNG_SECONDS)


@pytest.mark.parametrize("peer", [refusing, silent])
@pytest.mark.parametrize("way", [read_batch, write_batch, read_stream, write_stream])
def test_that_nobody_answers_is_told_within_seconds(
    spark: SparkSession, way: Begin, peer: Callable[[], AbstractContextManager[str]], tmp_path: Path
) -> None:
    from pyspark.errors import PySparkException

    with peer() as endpoint:
        begun = monotonic()
        with pytest.raises(PySparkException, match="does not answer"):
            way(spark, {"endpoint": endpoint}, f"{tmp_path}/checkpoint")
        assert monotonic() - begun < WELL_BELOW_A_MINUTE_S


def test_a_silent_address_before_a_node_costs_workers_seconds_too(spark: SparkSession) -> None:
    """What is in no segment yet is asked of the node by them."""
    with Broker(http=True, durable=True, default_partitions=1) as broker, silent() as nobody:
        broker.produce("orders", "in the tail")
        begun = monotonic()
        orders = spark.read.format("streamhouse").options(endpoint=f"{nobody},{broker.endpoint}", subscribe="orders")
        rows = orders.load().selectExpr("cast(value AS string)").collect()

    assert [row.value for row in rows] == ["in the tail"]
    assert monotonic() - begun < WELL_BELOW_A_MINUTE_S
