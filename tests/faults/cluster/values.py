"""One partition by hand: values at offsets, asked of whoever leads it."""

from __future__ import annotations

from typing import Any

from node.cluster import Agent, Cluster
from node.raw import Closed, RawConnection, build_batch, read_values
from node.wait import eventually

NOT_LEADER = 6
REQUEST_TIMED_OUT = 7


def produce(cluster: Cluster, topic: str, *values: bytes, partition: int = 0, **batch: Any) -> int:
    """Through its leader, asked again while leadership moves; the base offset that was acknowledged.

    What was not acknowledged may become durable nevertheless, so the batch has a producer, and is stored once."""

    def accepted() -> tuple[int] | None:
        try:
            with RawConnection(cluster.leader_of(topic, partition).address) as raw:
                if "producer_id" not in batch:
                    batch.update(_first_of_a_producer(raw))
                answer = raw.produce(topic, build_batch(*values, **batch), partition=partition)
        except (OSError, Closed):
            return None
        refusals = (NOT_LEADER, REQUEST_TIMED_OUT)
        assert answer.error_code in (0, *refusals), f"produce answered with {answer.error_code}"
        return (answer.base_offset,) if answer.error_code == 0 else None

    return eventually(accepted, f"an acknowledgement of {topic}/{partition}", pause=0.05)[0]


def _first_of_a_producer(raw: RawConnection) -> dict[str, int]:
    identity = raw.init_producer_id()
    assert identity.error_code == 0, f"init producer id answered with {identity.error_code}"
    return {"producer_id": identity.producer_id, "producer_epoch": identity.producer_epoch, "sequence": 0}


def read(agent: Agent, topic: str, *, partition: int = 0) -> dict[int, bytes | None] | None:
    """All that this agent serves as the leader; None if it is not."""
    values: dict[int, bytes | None] = {}
    with RawConnection(agent.address) as raw:
        end = raw.list_offset(topic, -1, partition)
        if end.error_code == NOT_LEADER:
            return None
        assert end.error_code == 0, f"list offsets answered with {end.error_code}"
        while len(values) < end.offset:
            answer = raw.fetch(topic, len(values), partition=partition)
            if answer.error_code == NOT_LEADER:
                return None
            assert answer.error_code == 0, f"fetch answered with {answer.error_code}"
            values.update(read_values(answer.records))
    return values


def read_from_leader(cluster: Cluster, topic: str, *, partition: int = 0) -> dict[int, bytes | None]:
    def values() -> tuple[dict[int, bytes | None]] | None:
        found = read(cluster.leader_of(topic, partition), topic, partition=partition)
        return None if found is None else (found,)

    return eventually(values, f"the values of {topic}/{partition}", pause=0.05)[0]


def node_id_of(cluster: Cluster, agent: Agent) -> int:
    """As Kafka's Metadata has it."""
    asked = next(agent for agent in cluster.agents.values() if agent.answers)
    with RawConnection(asked.address) as raw:
        brokers = raw.metadata().brokers
    return next(broker.node_id for broker in brokers if (broker.host, broker.port) == agent.address)
