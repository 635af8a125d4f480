"""Orders from a topic: a streaming table of them, revenue by country, and the large ones back into a topic."""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

ENDPOINT = os.environ.get("STREAMHOUSE_ENDPOINT", "http://127.0.0.1:8080")
SCHEMA = "order_id STRING, status STRING, country STRING, currency STRING, total_cents BIGINT, placed_at TIMESTAMP"
LARGE_CENTS = 10_000

spark = SparkSession.active()


@dp.table
def orders() -> DataFrame:
    """A streaming table: each run adds the records that are new, the first run all that there are."""
    options = {"endpoint": ENDPOINT, "subscribe": "orders", "startingOffsets": "earliest"}
    records = spark.readStream.format("streamhouse").options(**options).load()
    parsed = records.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("parsed"))
    return parsed.select("parsed.*").where("order_id IS NOT NULL")


@dp.materialized_view
def revenue_by_country() -> DataFrame:
    """Computed anew in each run."""
    sold = spark.read.table("orders").where("status <> 'cancelled'")
    totals = (F.sum("total_cents").alias("total_cents"), F.count("*").alias("orders"))
    return sold.groupBy("country", "currency").agg(*totals)


dp.create_sink("large_orders", "streamhouse", {"endpoint": ENDPOINT, "topic": "large-orders"})


@dp.append_flow(target="large_orders")
def to_topic() -> DataFrame:
    """Exactly once: the sink knows a batch by its query and its number."""
    large = spark.readStream.table("orders").where(F.col("total_cents") >= LARGE_CENTS)
    return large.select(F.col("order_id").alias("key"), F.to_json(F.struct("*")).alias("value"))
