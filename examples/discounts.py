"""A function of enrichment.yaml, called for each row. A row for which it fails goes to the dead letters, alone."""

from __future__ import annotations

from typing import Any

from streamhouse.spark.pipelines.functions import each_row

_PERCENT = {"gold": 10, "silver": 5, None: 0}


@each_row("order_id STRING, customer_id STRING, tier STRING, total_cents BIGINT, discount_cents BIGINT")
def apply_discount(order: dict[str, Any]) -> dict[str, Any]:
    """A tier that nobody knows is a KeyError."""
    return {
        "order_id": order["order_id"],
        "customer_id": order["customer_id"],
        "tier": order["tier"],
        "total_cents": order["total_cents"],
        "discount_cents": order["total_cents"] * _PERCENT[order["tier"]] // 100,
    }
