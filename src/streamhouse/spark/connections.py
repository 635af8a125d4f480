"""Connections that outlive a task: Spark's workers are used again, and what they have opened stays open."""

from __future__ import annotations

import gc
from functools import cache
from itertools import count

from streamhouse.client.planning import PlanningClient
from streamhouse.wire.http.planning import ClusterAnswer

# By then everything is imported that a task needs.
_CALLS_TO_FREEZE = 3
_calls = count(1)


@cache
def planning_client(endpoint: str) -> PlanningClient:
    """This process's only one, for the thread on which Spark calls us."""
    return PlanningClient(endpoint)


@cache
def cluster_of(endpoint: str) -> ClusterAnswer:
    """Where a cluster's objects are does not change while it runs."""
    return planning_client(endpoint).cluster()


def settle_memory() -> None:
    """Spark collects garbage between tasks. What a worker has imported never becomes garbage: taking it out of the
    collector's sight saves tens of milliseconds a task."""
    if next(_calls) <= _CALLS_TO_FREEZE:
        gc.collect()
        gc.freeze()
