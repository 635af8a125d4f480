"""Our own Python client, over each of its protocols."""

from __future__ import annotations

from collections.abc import Callable

from doors.record import Sample, Shown
from node.process import Node
from streamhouse.client import Client

Url = Callable[[Node], str]


def over_kafka(node: Node) -> str:
    return f"kafka://{node.bootstrap}"


def over_grpc(node: Node) -> str:
    return f"grpc://{node.grpc_address}"


def writer(url_of: Url) -> Callable[[Node, str, tuple[Sample, ...]], list[int]]:
    def write(node: Node, topic: str, samples: tuple[Sample, ...]) -> list[int]:
        with Client(url_of(node)) as client, client.producer(topic, format="bytes", key_format="bytes") as producer:
            deliveries = [
                producer.send(
                    sample.value,
                    key=sample.key,
                    headers=sample.headers,
                    partition=0,
                    timestamp=sample.timestamp_ms,
                )
                for sample in samples
            ]
        assert all(delivery.offset is not None for delivery in deliveries)
        return [delivery.offset or 0 for delivery in deliveries]

    return write


def reader(url_of: Url) -> Callable[[Node, str, int], list[Shown]]:
    def read(node: Node, topic: str, count: int) -> list[Shown]:
        with Client(url_of(node)) as client:
            records = list(client.consumer(topic, format="bytes", key_format="bytes", until_end=True))
        assert len(records) == count
        return [
            Shown(
                offset=record.offset,
                key=record.key,
                value=record.value,
                headers=record.headers,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]

    return read
