"""The end of the cluster: it is drained, and then the stores alone must hold everything."""

from __future__ import annotations

from dataclasses import dataclass

from demo.cluster import Cluster
from demo.failure import DemoFailed
from demo.services import Stores
from demo.storage import StoredTopic, read_stored, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    agents: int
    seconds: float
    before: StoredTopic
    after: StoredTopic
    verified: str


def drain(cluster: Cluster, stores: Stores, topic: str, count: int) -> Drained:
    agents, before = len(cluster.running), read_stored(stores, topic)
    seconds = cluster.drain()
    after = read_stored(stores, topic)
    if after.records != count:
        raise DemoFailed(f"the drained cluster left {after.records:,} of {count:,} records in segments")
    return Drained(agents=agents, seconds=seconds, before=before, after=after, verified=verify(stores))
