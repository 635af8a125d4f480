"""Seconds on the wall and on the processors, of Spark's whole family of processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one piece of work. `node_cpu_seconds` is what the node spent on it meanwhile."""

    records: int
    seconds: float
    cpu_seconds: float
    node_cpu_seconds: float = 0.0

    @property
    def per_second(self) -> float:
        return self.records / self.seconds

    @property
    def per_cpu_second(self) -> float:
        return self.records / self.cpu_seconds

    @property
    def cores_used(self) -> float:
        return self.cpu_seconds / self.seconds


class Family:
    """The JVM of a driver with its Python workers, and this process, which is the driver's Python."""

    def __init__(self, jvm_pid: int) -> None:
        self._jvm = psutil.Process(jvm_pid)

    def cpu_seconds(self) -> float:
        """Also of workers that have ended: whoever waited for them has their time."""
        total = time.process_time()
        for process in [self._jvm, *self._jvm.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])
        return total


def middle(costs: Sequence[Cost]) -> Cost:
    """The median by processor time, which the neighbours on a machine disturb less than time on the wall. Of two in the
    middle it is the slower: the better one of two runs would not be a median."""
    return sorted(costs, key=lambda cost: cost.per_cpu_second)[(len(costs) - 1) // 2]


def cost_of(work: Callable[[], int], family: Callable[[], float], node: Callable[[], float]) -> Cost:
    """`work` returns how many records it was about; the other two tell processor time."""
    node_before, cpu_before, began = node(), family(), time.perf_counter()
    records = work()
    seconds = time.perf_counter() - began
    return Cost(
        records=records, seconds=seconds, cpu_seconds=family() - cpu_before, node_cpu_seconds=node() - node_before
    )
