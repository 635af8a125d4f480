"""The parts of a node that measure something, and whose measurements are nobody's in particular."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streamhouse.broker.measures import DoorMeasures
from streamhouse.cluster.assigner import Assigner
from streamhouse.cluster.view import ClusterView
from streamhouse.log.engine import LogEngine
from streamhouse.objects.measured import StoreMeasures
from streamhouse.runtime.measures import Histogram
from streamhouse.server.tcp import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMeasures:
    """What is made later than the doors is asked for when it is wanted: `assigner`; `listeners`, by their names; and
    `kafka_requests`, how often each API was asked."""

    doors: Mapping[str, DoorMeasures]
    objects: StoreMeasures
    loop_delay_seconds: Histogram
    engine: LogEngine
    view: ClusterView
    assigner: Callable[[], Assigner]
    listeners: Callable[[], Mapping[str, Listener]]
    kafka_requests: Callable[[], Mapping[str, int]]
