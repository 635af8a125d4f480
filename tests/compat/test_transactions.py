"""There are no transactions, and a client that wants them is told at once: it is not left waiting."""

from __future__ import annotations

import asyncio

import aiokafka
import aiokafka.errors
import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException

from compat.conftest import Broker
from node.wait import HUNG_SECONDS


def test_confluent_gives_up_for_good_and_at_once(broker: Broker) -> None:
    """It would retry any refusal that is not fatal until the time is up, and report that instead."""
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "tx"})

    with pytest.raises(KafkaException) as failure:
        producer.init_transactions(HUNG_SECONDS)

    error = failure.value.args[0]
    assert error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert error.fatal()
    assert not error.retriable()


def test_aiokafka_gives_up_too(broker: Broker) -> None:
    async def start() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="tx")
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(aiokafka.errors.TransactionalIdAuthorizationFailed):
        asyncio.run(asyncio.wait_for(start(), HUNG_SECONDS))
