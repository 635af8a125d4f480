"""Order events as a web shop would send them; the same seed always gives the same events."""

from __future__ import annotations

import json
import random  # noqa: TID251 - seeded, so that every run sends the same orders
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

SEED = 20_261_101
_OPENING = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)
_MEAN_GAP_SECONDS = 0.35
_CUSTOMERS = 12_000

# SKU, name and price in cents.
_PRODUCTS = (
    ("CF-1017", "Aeropress Go", 3990),
    ("CF-1034", "Ceramic Pour-Over Set", 5450),
    ("CF-1051", "Burr Grinder", 12900),
    ("CF-1068", "Espresso Beans 1 kg", 2480),
    ("CF-1085", "Filter Papers 100", 620),
    ("CF-1102", "Gooseneck Kettle", 7990),
    ("CF-1119", "Milk Frother", 2490),
    ("CF-1136", "Travel Mug 350 ml", 2150),
    ("CF-1153", "Descaler", 890),
    ("CF-1170", "Decaf Beans 500 g", 1390),
    ("CF-1187", "Kitchen Scale", 3275),
    ("CF-1204", "Cleaning Tablets", 1195),
)
_MARKETS = (("DE", "EUR"), ("FR", "EUR"), ("NL", "EUR"), ("GB", "GBP"), ("US", "USD"), ("CH", "CHF"), ("SE", "SEK"))
_CHANNELS = ("web", "web", "app", "app", "store")
_LINE_COUNTS = (1, 1, 2, 2, 3, 5)
_STATUSES = ("placed", "placed", "placed", "paid", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One record as it is sent: all orders of a customer have one key, and so one partition."""

    key: bytes
    value: bytes
    timestamp_ms: int


def make_orders(count: int, seed: int = SEED) -> list[Event]:
    chance = random.Random(seed)
    placed_at = _OPENING
    events = []
    for number in range(count):
        placed_at += timedelta(seconds=chance.expovariate(1 / _MEAN_GAP_SECONDS))
        events.append(_make_order(chance, number, placed_at))
    return events


def _make_order(chance: random.Random, number: int, placed_at: datetime) -> Event:
    # Some customers order often, most of them rarely.
    customer = f"C-{int(_CUSTOMERS * chance.random() ** 2):06d}"
    country, currency = chance.choice(_MARKETS)
    lines = [(chance.choice(_PRODUCTS), chance.choice((1, 1, 1, 2, 3))) for _ in range(chance.choice(_LINE_COUNTS))]
    subtotal = sum(price * quantity for (_, _, price), quantity in lines)
    shipping = 0 if subtotal >= 5000 else 490
    order = {
        "order_id": f"O-{number:09d}",
        "status": chance.choice(_STATUSES),
        "customer_id": customer,
        "country": country,
        "channel": chance.choice(_CHANNELS),
        "items": [
            {"sku": sku, "name": name, "quantity": quantity, "unit_price_cents": price}
            for (sku, name, price), quantity in lines
        ],
        "subtotal_cents": subtotal,
        "shipping_cents": shipping,
        "total_cents": subtotal + shipping,
        "currency": currency,
        "placed_at": placed_at.isoformat(timespec="milliseconds"),
    }
    return Event(
        key=customer.encode(),
        value=json.dumps(order, separators=(",", ":")).encode(),
        timestamp_ms=int(placed_at.timestamp() * 1000),
    )
