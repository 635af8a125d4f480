"""Segments replaced and offsets pinned over HTTP: done at the leader, once, and refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import msgspec
import pytest

from log_parts.batches import real
from log_parts.kafka import Kafka
from planning_parts.compaction import prepare
from planning_parts.reading import plan, read_plan
from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import InvalidInput, NotFound, StaleEpoch
from streamhouse.testing import Broker
from streamhouse.wire.http import planning as api

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """On a directory, in which the test writes what a job would write."""
    with Broker(durable=True, http=True, default_partitions=1) as broker:
        yield broker


@pytest.fixture
def compactable(client: PlanningClient, kafka: Kafka, broker: Broker, topic: str) -> str:
    """A topic with three segments of four records."""
    for start in (0, 4, 8):
        values = [f"{offset}".encode() for offset in range(start, start + 4)]
        assert kafka.produce(topic, real(*values)).error_code == 0
        broker.flush()
    return topic


def offsets_read(client: PlanningClient, topic: str) -> list[int]:
    records = read_plan(client, topic, plan(client, topic))
    assert all(record.value == f"{record.offset}".encode() for record in records)
    return [record.offset for record in records]


def test_segments_are_replaced_and_read_as_planned(client: PlanningClient, compactable: str) -> None:
    old = client.segments(compactable, 0).segments

    request = prepare(client, compactable, old[:2], {1, 7})
    for _ in range(2):
        client.replace(request)

    answer = client.segments(compactable, 0)
    assert [segment.object_key for segment in answer.segments] == [request.added[0].object_key, old[2].object_key]
    assert (answer.log_start_offset, answer.committed_end) == (0, 12)
    assert answer.segments[0].created_at_ms > 0
    assert offsets_read(client, compactable) == [1, 7, 8, 9, 10, 11]


def test_what_cannot_be_replaced_is_refused_with_the_reason(client: PlanningClient, compactable: str) -> None:
    old = client.segments(compactable, 0).segments
    good = prepare(client, compactable, old[:2], {1, 7})
    (added,) = good.added
    change = msgspec.structs.replace
    for wrong, refusal, match in (
        (change(good, topic="nowhere"), NotFound, "nowhere"),
        (change(good, partition=7), NotFound, "partition 7"),
        (change(good, removed=[old[0].object_key, "segments/x"]), StaleEpoch, "no longer there"),
        (change(good, removed=[]), InvalidInput, "segments to remove"),
        (change(good, added=[]), InvalidInput, "segments to add"),
        (change(good, added=[change(added, record_count=3)]), InvalidInput, "2 records and not 3"),
        (change(good, added=[change(added, checksum=2**32)]), InvalidInput, "checksum"),
        (change(good, added=[change(added, epoch=-1)]), InvalidInput, "epoch"),
    ):
        with pytest.raises(refusal, match=match):
            client.replace(wrong)

    assert client.segments(compactable, 0).segments == old
    client.replace(good)
    with pytest.raises(StaleEpoch, match="no longer there"):
        client.replace(change(good, commit_id=uuid4()))


def test_a_pin_keeps_retention_from_the_log_until_it_is_removed(
    client: PlanningClient, broker: Broker, compactable: str
) -> None:
    topics, maintenance = broker.node.broker.topics, broker.node.engine.maintenance
    topic = topics.get(compactable)
    leader = topics.leader(topic, 0)
    pin = api.PinRequest(
        pin_id="query",
        ttl_ms=HOUR_MS,
        offsets=[api.PartitionOffset(topic=compactable, partition=0, offset=5)],
    )

    def start_after_retention() -> int:
        leader.configure(replace(leader.config, retention_ms=0))
        broker._run(maintenance.apply_retention(leader))
        return client.segments(compactable, 0).log_start_offset

    client.pin(pin)
    assert start_after_retention() == 4
    client.pin(msgspec.structs.replace(pin, ttl_ms=0, offsets=[]))
    assert start_after_retention() == 12


def test_a_pin_that_makes_no_sense_is_refused(client: PlanningClient, compactable: str) -> None:
    one = api.PartitionOffset(topic=compactable, partition=0, offset=5)
    change = msgspec.structs.replace
    for offsets, ttl_ms, refusal in (
        ([change(one, topic="nowhere")], HOUR_MS, NotFound),
        ([change(one, partition=2)], HOUR_MS, NotFound),
        ([change(one, partition=-1)], HOUR_MS, NotFound),
        ([one, one], HOUR_MS, InvalidInput),
        ([change(one, offset=-5)], HOUR_MS, InvalidInput),
        ([one], 8 * 24 * HOUR_MS, InvalidInput),
        ([one], 0, InvalidInput),
    ):
        with pytest.raises(refusal):
            client.pin(api.PinRequest(pin_id="query", ttl_ms=ttl_ms, offsets=offsets))
