"""A query's hold on what it has not read yet: renewed while it runs, and left to expire."""

from __future__ import annotations

import pytest

from node.wait import eventually
from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import Unavailable
from streamhouse.spark.source.positions import TopicPartition
from streamhouse.spark.source.retention_pin import RetentionPin
from streamhouse.wire.http.planning import PinRequest

HOUR_MS = 3_600_000


class PinnedNode(PlanningClient):
    """Keeps what it is asked to pin, and can be away."""

    def __init__(self) -> None:
        super().__init__("http://node:8080")
        self.requests: list[PinRequest] = []
        self.is_away = False

    def pin(self, request: PinRequest) -> None:
        self.requests.append(request)
        if self.is_away:
            raise Unavailable("the node is away")

    def offsets(self) -> list[dict[str, int]]:  # type: ignore[override]
        return [{f"{each.topic}-{each.partition}": each.offset for each in asked.offsets} for asked in self.requests]


def at(offset: int) -> dict[TopicPartition, int]:
    return {TopicPartition("orders", 0): offset}


def test_what_is_held_moves_with_the_query() -> None:
    node = PinnedNode()
    pin = RetentionPin(node, HOUR_MS)
    for offset in (5, 5, 9):
        pin.hold(at(offset))
    pin.stop()
    assert node.offsets() == [{"orders-0": 5}, {"orders-0": 9}]
    assert len({asked.pin_id for asked in node.requests}) == 1
    assert {asked.ttl_ms for asked in node.requests} == {HOUR_MS}


def test_a_pin_is_renewed_through_a_long_micro_batch() -> None:
    node = PinnedNode()
    pin = RetentionPin(node, 30)
    pin.hold(at(5))
    eventually(lambda: len(node.requests) >= 3, "the pin to be renewed twice")
    pin.stop()
    assert node.offsets()[:3] == [{"orders-0": 5}] * 3


def test_a_node_that_is_away_for_a_while_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    node = PinnedNode()
    pin = RetentionPin(node, 30)
    pin.hold(at(5))
    node.is_away = True
    eventually(lambda: "was not renewed" in caplog.text, "a warning")
    node.is_away = False
    asked = len(node.requests)
    eventually(lambda: len(node.requests) > asked + 1, "the pin to be renewed")
    pin.stop()


def test_a_pin_that_is_refused_at_first_is_an_error() -> None:
    node = PinnedNode()
    node.is_away = True
    pin = RetentionPin(node, HOUR_MS)
    with pytest.raises(Unavailable):
        pin.hold(at(5))
    pin.stop()


def test_two_queries_have_pins_of_their_own() -> None:
    node = PinnedNode()
    for _ in range(2):
        pin = RetentionPin(node, HOUR_MS)
        pin.hold(at(5))
        pin.stop()
    assert len({asked.pin_id for asked in node.requests}) == 2
