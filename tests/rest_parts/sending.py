"""Records through the Kafka port, for tests that read them elsewhere."""

from __future__ import annotations

import asyncio

from streamhouse.client.cluster import Cluster
from streamhouse.client.producer import Producer
from streamhouse.testing import Broker


def send(broker: Broker, topic: str, *, partition: int, count: int, timestamp_ms: int | None = None) -> None:
    """Values are the numbers from 0 on; all are acknowledged when this returns."""

    async def work() -> None:
        async with Cluster.connect(broker.bootstrap) as cluster, Producer(cluster) as producer:
            for number in range(count):
                await producer.send(topic, value=b"%d" % number, partition=partition, timestamp_ms=timestamp_ms)
            await producer.flush()

    asyncio.run(work())
