"""What the doors beside Kafka's have at hand: REST, gRPC and Flume."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from streamhouse.broker.broker import Broker
from streamhouse.broker.cluster_work import ClusterWork
from streamhouse.broker.measures import DoorMeasures
from streamhouse.broker.planning import Planner
from streamhouse.broker.records import RecordDoor
from streamhouse.client.address import Address
from streamhouse.metadata.store import MetadataStore
from streamhouse.server.metrics.node import NodeMeasures


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorContext:
    """`records` appends and reads rows, wherever their leader is. `kafka` is where this node's own Kafka port is: as a
    group's coordinator may be any node, members and offsets are asked for through it, as any client does. `pipelines`
    reads what is known of those that ran on this machine, in the fields of `wire.http.rest.cluster.PipelineAnswer`;
    it blocks, and is handed in because Spark's side is not a listener's to know. `measures` and `work` are for whoever
    shows what this node does, and what all of them do."""

    broker: Broker
    records: RecordDoor
    planner: Planner
    metadata: MetadataStore
    kafka: Address
    measures: NodeMeasures
    work: ClusterWork
    pipelines: Callable[[], Sequence[object]] = tuple

    @property
    def doors(self) -> Mapping[str, DoorMeasures]:
        """What goes through each of this node's listeners, by name."""
        return self.measures.doors

    def at(self, listener: str) -> DoorContext:
        """The same, with what goes through `records` counted as that listener's."""
        return replace(self, records=self.records.at(self.doors[listener]))
