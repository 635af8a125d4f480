"""The first of what a search finds, by time over all partitions, however many there are: as much as one answer holds.
What is found and does not go into it is let go, and left to be looked at again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import merge

from streamhouse.format.rows import Record
from streamhouse.server.http.rest.partition_scan import PartitionScan
from streamhouse.server.http.rest.reading import size_bytes

Found = tuple[int, Record]
"""A record and its partition."""


class FirstMatches:
    def __init__(self, most_records: int, most_bytes: int, *, newest_first: bool) -> None:
        self.records: list[Found] = []
        """In the order of times, and of one partition in that of its offsets, whatever the times are."""
        self._most_records = most_records
        self._most_bytes = most_bytes
        self._newest_first = newest_first
        self._scans: dict[int, PartitionScan] = {}

    def add(self, scan: PartitionScan) -> None:
        """One that has ended."""
        if not scan.matches:
            return
        before = {partition for partition, _ in self.records}
        found = [(scan.partition, record) for record in scan.matches]
        self._scans[scan.partition] = scan
        self.records = list(self._first(merge(self.records, found, key=self._place)))
        counts = Counter(partition for partition, _ in self.records)
        for partition in before | {scan.partition}:
            self._scans[partition].keep(counts[partition], newest_first=self._newest_first)

    def _place(self, found: Found) -> tuple[int, int]:
        partition, record = found
        return -record.timestamp_ms if self._newest_first else record.timestamp_ms, partition

    def _first(self, merged: Iterable[Found]) -> Iterator[Found]:
        """At least one, however large it is."""
        left_bytes = self._most_bytes
        for index, (partition, record) in enumerate(merged):
            left_bytes -= size_bytes(record)
            if index == self._most_records or (index and left_bytes < 0):
                return
            yield partition, record
