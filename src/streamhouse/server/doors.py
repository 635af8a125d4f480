"""What the doors beside Kafka's have at hand: REST, gRPC and Flume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamhouse.broker.broker import Broker
from streamhouse.broker.planning import Planner
from streamhouse.broker.records import RecordDoor
from streamhouse.client.address import Address
from streamhouse.metadata.store import MetadataStore


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorContext:
    """`records` appends and reads rows, wherever their leader is. `kafka` is where this node's own Kafka port is: as a
    group's coordinator may be any node, members and offsets are asked for through it, as any client does. `pipelines`
    reads what is known of those that ran on this machine, in the fields of `wire.http.rest.cluster.PipelineAnswer`;
    it blocks, and is handed in because Spark's side is not a listener's to know."""

    broker: Broker
    records: RecordDoor
    planner: Planner
    metadata: MetadataStore
    kafka: Address
    pipelines: Callable[[], Sequence[object]] = tuple
