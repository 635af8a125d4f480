"""Assignments of replicas to brokers, as CreateTopics and CreatePartitions may bring them.

They are checked as Kafka checks them and then left aside: who leads a partition is found out here, and can be changed
with `streamhouse partition move`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamhouse.broker.nodes import Nodes
from streamhouse.server.kafka.refusals import InvalidReplicaAssignment


def check_assignments(assignments: Iterable[Sequence[int]], nodes: Nodes) -> None:
    """Each is the brokers of one partition."""
    registered = nodes.registered_ids
    replicas: int | None = None
    for brokers in assignments:
        if not brokers:
            raise InvalidReplicaAssignment("the assignment includes an empty list of replicas")
        for broker in brokers:
            if broker not in registered:
                raise InvalidReplicaAssignment(
                    f"the assignment includes broker {broker}, but no such broker is registered"
                )
        if len(set(brokers)) != len(brokers):
            raise InvalidReplicaAssignment("the assignment includes a broker more than once for one partition")
        if replicas is not None and len(brokers) != replicas:
            raise InvalidReplicaAssignment(
                f"the assignment gives one partition {replicas} replica(s) and another {len(brokers)}"
            )
        replicas = len(brokers)
