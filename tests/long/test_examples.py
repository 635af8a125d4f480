"""The examples do what they say, all on the same orders: some late, one too late, one that is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.record import Record
from spark_parts.nodes import SparkNode
from spark_parts.pipelines import (
    create_topics,
    facts_of,
    finish,
    json_values,
    latest_values,
    pipeline_in,
    start_once,
)
from spark_parts.rows import consume, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = ("revenue.yaml", "enrichment.yaml", "sessions.yaml", "to_delta.yaml")
TOPICS = ("orders", "orders-dead", "revenue", "sessions", "customers", "discounted-orders")


def order(number: int, customer: str, country: str, cents: int, time: str, *, status: str = "placed") -> Record:
    value = {
        "order_id": f"O-{number}",
        "status": status,
        "customer_id": customer,
        "country": country,
        "channel": "web" if number % 2 else "app",
        "items": [{"sku": "CF-1017", "name": "Aeropress Go", "quantity": 1, "unit_price_cents": cents}],
        "total_cents": cents,
        "currency": "EUR",
        "placed_at": f"2026-11-01T{time}.000+00:00",
    }
    return Record(key=customer.encode(), value=json.dumps(value).encode())


def customer(name: str, tier: str | None) -> Record:
    value = None if tier is None else json.dumps({"customer_id": name, "name": name.lower(), "tier": tier}).encode()
    return Record(key=name.encode(), value=value)


@pytest.fixture(scope="module")
def shop(spark: SparkSession, embedded_node: SparkNode, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All examples have run, the first two already before the last orders came; returns where they wrote."""
    directory = tmp_path_factory.mktemp("shop")
    bootstrap = embedded_node.bootstrap
    create_topics(bootstrap, *TOPICS)
    variables = {"PIPELINE_CHECKPOINTS": str(directory / "checkpoints"), "LAKE": str(directory / "lake")}
    pipelines = [pipeline_in(EXAMPLES / name, embedded_node.endpoint, **variables) for name in FILES]
    produce(bootstrap, "customers", [customer("C1", "gold"), customer("C2", "gold"), customer("C2", "silver")])
    produce(bootstrap, "customers", [customer("C3", "gold"), customer("C3", None)])
    first = [
        order(1, "C1", "DE", 1000, "08:00:10"),
        order(2, "C1", "DE", 500, "08:05:00", status="paid"),
        order(3, "C2", "FR", 700, "08:01:05"),
        order(4, "C2", "FR", 900, "08:01:10", status="cancelled"),
        order(5, "C1", "DE", 250, "08:00:50"),
        order(6, "C3", "US", 4000, "09:30:00"),
        Record(key=b"C1", value=b"oops"),
    ]
    later = [
        order(7, "C1", "DE", 111, "08:00:55"),
        order(8, "C4", "US", 10, "11:00:00"),
        order(9, "C3", "US", 2000, "09:30:59"),
    ]

    produce(bootstrap, "orders", first)
    for run in [start_once(spark, pipeline) for pipeline in pipelines[:2]]:
        finish(run)
    produce(bootstrap, "customers", [customer("C1", "silver"), customer("C4", "bronze")])
    produce(bootstrap, "orders", later)
    for run in [start_once(spark, pipeline) for pipeline in pipelines]:
        finish(run)
    return directory


def test_revenue_goes_on_after_a_restart_and_counts_late_orders_until_the_watermark_has_passed(
    shop: Path, embedded_node: SparkNode
) -> None:
    revenue = latest_values(embedded_node.bootstrap, "revenue")

    assert {key: (each["orders"], each["revenue"]) for key, each in revenue.items()} == {
        "2026-11-01 08:00:00/DE/EUR": (2, 12.5),
        "2026-11-01 08:01:00/FR/EUR": (1, 7.0),
        "2026-11-01 08:05:00/DE/EUR": (1, 5.0),
        "2026-11-01 09:30:00/US/EUR": (2, 60.0),
        "2026-11-01 11:00:00/US/EUR": (1, 0.1),
    }


def test_sessions_are_written_once_when_nothing_can_be_added_to_them(shop: Path, embedded_node: SparkNode) -> None:
    sessions = json_values(embedded_node.bootstrap, "sessions")

    assert sorted((each["customer_id"], each["orders"], each["total_cents"]) for each in sessions) == [
        ("C1", 4, 1861),
        ("C2", 2, 1600),
        ("C3", 2, 6000),
    ]
    (first,) = [each for each in sessions if each["customer_id"] == "C1"]
    assert (first["started_at"], first["ended_at"]) == ("2026-11-01T08:00:10.000Z", "2026-11-01T08:35:00.000Z")
    assert first["channels"] == ["app", "web"]


def test_orders_are_joined_with_the_latest_record_of_each_customer(shop: Path, embedded_node: SparkNode) -> None:
    orders = json_values(embedded_node.bootstrap, "discounted-orders")

    assert {each["order_id"]: (each.get("tier"), each["discount_cents"]) for each in orders} == {
        "O-1": ("gold", 100),
        "O-2": ("gold", 50),
        "O-3": ("silver", 35),
        "O-4": ("silver", 45),
        "O-5": ("gold", 25),
        "O-6": (None, 0),
        "O-7": ("silver", 5),
        "O-9": (None, 0),
    }
    assert len(orders) == 8


def test_the_delta_table_has_every_order_once_with_where_it_was(shop: Path, embedded_node: SparkNode) -> None:
    from deltalake import DeltaTable

    table = DeltaTable(shop / "lake" / "orders").to_pyarrow_table().to_pylist()

    assert sorted(row["order_id"] for row in table) == [f"O-{number}" for number in range(1, 10)]
    places = {
        json.loads(row.value or b"{}").get("order_id"): row
        for row in _parsing(consume(embedded_node.bootstrap, "orders"))
    }
    for row in table:
        place = places[row["order_id"]]
        assert (row["kafka_partition"], row["kafka_offset"]) == (place.partition, place.offset)
        assert row["items"][0]["unit_price_cents"] == row["total_cents"]


def _parsing(rows: list) -> list:
    return [row for row in rows if row.value != b"oops"]


def test_what_does_not_parse_or_transform_is_a_dead_letter_of_each_pipeline(
    shop: Path, embedded_node: SparkNode
) -> None:
    letters = [(letter, facts_of(letter)) for letter in consume(embedded_node.bootstrap, "orders-dead")]

    unparsed = [(letter, facts) for letter, facts in letters if letter.value == b"oops"]
    assert sorted(facts["pipeline"] for _, facts in unparsed) == ["enrichment", "revenue", "sessions", "to-delta"]
    assert all(letter.key == b"C1" for letter, _ in unparsed)
    ((failed, facts),) = [(letter, facts) for letter, facts in letters if letter.value != b"oops"]
    assert json.loads(failed.value or b"")["order_id"] == "O-8"
    assert (facts["step"], facts["error"]) == ("discounted", "KeyError: 'bronze'")
