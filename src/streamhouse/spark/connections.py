"""Connections that outlive a task: Spark's workers are used again, and what they have opened stays open."""

from __future__ import annotations

from functools import cache

from streamhouse.client.planning import PlanningClient
from streamhouse.wire.http.planning import ClusterAnswer

_REACH_SECONDS = 5.0


def first_client(endpoint: str) -> PlanningClient:
    """For a driver that begins something: that nobody answers is told in seconds. Once a node has answered, it is
    waited for as ever."""
    return PlanningClient(endpoint, reach_seconds=_REACH_SECONDS)


@cache
def planning_client(endpoint: str) -> PlanningClient:
    """This process's only one, for the thread on which Spark calls us."""
    return PlanningClient(endpoint)


@cache
def cluster_of(endpoint: str) -> ClusterAnswer:
    """Where a cluster's objects are does not change while it runs."""
    return planning_client(endpoint).cluster()
