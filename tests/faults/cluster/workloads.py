"""Workloads on a cluster that other tests have used before."""

from __future__ import annotations

from faults.workload import Workload
from node.cluster import Cluster

PARTITIONS = 4


def new_workload(cluster: Cluster) -> Workload:
    """On a topic of its own that is led by whom the ring chose, with clients that know all agents. It is one that the
    ring has not given to a single agent."""
    while True:
        workload = Workload(cluster.bootstrap, cluster.new_topic(), partitions=PARTITIONS)
        workload.create_topic()
        cluster.wait_led(workload.topic)
        if len({lease.agent for lease in cluster.leases(workload.topic)}) > 1:
            return workload
