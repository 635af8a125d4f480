"""Traces: one produce at a time, from the append through the WAL to its segment, and none without being asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from log_parts.batches import real
from log_parts.kafka import Kafka, produce_request
from node.wait import eventually
from streamhouse.log.leader import PartitionLeader
from streamhouse.testing import Broker
from streamhouse.wire.kafka.messages import produce

WAY = ["wal", "upload", "commit", "produce"]


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """A process has one provider for good."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def broker(exporter: InMemorySpanExporter) -> Iterator[Broker]:
    with Broker(durable=True, default_partitions=1, traces=True) as broker:
        broker.create_topic("orders")
        exporter.clear()
        yield broker


@pytest.fixture
def kafka(broker: Broker) -> Iterator[Kafka]:
    with Kafka(broker.bootstrap) as kafka:
        yield kafka


def send(kafka: Kafka, *values: bytes) -> None:
    kafka.call(produce, produce_request("orders", real(*values)), 9)


def finished(exporter: InMemorySpanExporter, count: int) -> list[ReadableSpan]:
    eventually(lambda: len(exporter.get_finished_spans()) >= count, f"{count} spans")
    return list(exporter.get_finished_spans())


def test_a_produce_is_traced_through_the_wal_the_upload_and_the_commit(
    broker: Broker, kafka: Kafka, exporter: InMemorySpanExporter
) -> None:
    send(kafka, b"a", b"b")
    (wal,) = finished(exporter, 1)
    assert wal.name == "wal", "it is durable, and not in a segment yet"
    broker.flush()
    spans = finished(exporter, 4)
    assert [span.name for span in spans] == WAY
    whole = spans[-1]
    assert whole.parent is None
    assert {span.parent.span_id for span in spans[:-1] if span.parent} == {whole.context.span_id}
    assert len({span.context.trace_id for span in spans}) == 1
    assert whole.attributes is not None
    assert whole.attributes["messaging.destination.name"] == "orders"
    assert whole.attributes["messaging.batch.message_count"] == 2
    assert whole.attributes["streamhouse.base_offset"] == 0


def test_one_produce_is_traced_at_a_time(broker: Broker, kafka: Kafka, exporter: InMemorySpanExporter) -> None:
    for _ in range(5):
        send(kafka, b"a")
    broker.flush()
    assert [span.name for span in finished(exporter, 4)] == WAY
    send(kafka, b"a")
    broker.flush()
    assert [span.name for span in finished(exporter, 8)] == WAY * 2


def test_what_is_refused_ends_its_trace_with_the_reason(broker: Broker, exporter: InMemorySpanExporter) -> None:
    with Kafka(broker.bootstrap) as kafka:
        send(kafka, b"x" * 2_000_000)
    wal, whole = finished(exporter, 2)
    assert (wal.name, whole.name) == ("wal", "produce")
    assert whole.status.status_code is StatusCode.ERROR
    assert "max.message.bytes" in (whole.status.description or "")


def test_an_upload_that_is_tried_again_is_one_step(
    broker: Broker, kafka: Kafka, exporter: InMemorySpanExporter
) -> None:
    send(kafka, b"a")
    broker.faults.fail_puts(2)
    broker.flush()
    assert [span.name for span in finished(exporter, 4)] == WAY


def test_a_leader_that_goes_ends_what_it_was_tracing(
    broker: Broker, kafka: Kafka, exporter: InMemorySpanExporter
) -> None:
    send(kafka, b"a")
    broker.stop()
    assert finished(exporter, 4)[-1].name == "produce"


def test_without_being_asked_for_leaders_are_plain_ones() -> None:
    with Broker(default_partitions=1) as plain:
        plain.create_topic("orders")
        (leader,) = plain.node.broker.led
        assert type(leader) is PartitionLeader
