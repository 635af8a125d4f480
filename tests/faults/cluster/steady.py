"""Tests of what moves leadership, which say nothing if leases ran out by themselves meanwhile.

A machine that stands still for the two seconds of a lease takes it from whoever holds it. That is as it should be, and
other tests look at it; here the test is made again, on a topic of its own. That goes for `Moved` alone: a record that
is lost or changed is a failure whatever the machine did, so tests look at records first."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from faults.cluster.watch import metrics
from faults.cluster.workloads import new_workload
from node.cluster import Cluster

_TRIES = 4
_RAN_OUT = tuple(f'streamhouse_lease_events_total{{event="{event}"}} ' for event in ("lost", "retaken"))


class Moved(AssertionError):
    """Leadership is not where it should be."""


class Disturbed(Moved):
    """It could not be: agents that ran were taken for gone meanwhile, and others became owners of what they had."""


def assert_unmoved(is_unmoved: bool, what: str) -> None:
    if not is_unmoved:
        raise Moved(what)


def decisions(cluster: Cluster) -> int:
    """How often owners of partitions have been chosen: once for topics that were made, for an agent that came, and for
    one that went."""
    ((version,),) = cluster.storage.query("SELECT version FROM owner_decisions")
    return int(version)


def assert_unmoved_but_for(cluster: Cluster, since: int, decided: int, is_unmoved: bool, what: str) -> None:
    """`Disturbed` if more was decided than these since then."""
    if not is_unmoved and (number := decisions(cluster) - since) > decided:
        raise Disturbed(f"{what}; owners were chosen {number} times instead of {decided}")
    assert_unmoved(is_unmoved, what)


def needs_steady_leases(test: Callable[..., None]) -> Callable[..., None]:
    """`Moved` counts unless it is `Disturbed` or a lease ran out meanwhile, by what the agents say, and then too at the
    last try."""

    @functools.wraps(test)
    def run(cluster: Cluster, **fixtures: Any) -> None:
        for _ in range(_TRIES - 1):
            before = _ran_out(cluster)
            try:
                return test(cluster=cluster, **fixtures)
            except Moved as moved:
                cluster.heal()
                after = _ran_out(cluster)
                ran_out = any(before[pid] != after[pid] for pid in before.keys() & after.keys())
                if not ran_out and not isinstance(moved, Disturbed):
                    raise
            if "workload" in fixtures:
                fixtures["workload"] = new_workload(cluster)
        return test(cluster=cluster, **fixtures)

    return run


def _ran_out(cluster: Cluster) -> dict[int, list[str]]:
    """What each agent has counted since it was started."""
    return {
        agent.pid: [line for line in metrics(agent) if line.startswith(_RAN_OUT)]
        for agent in cluster.agents.values()
        if agent.answers
    }
