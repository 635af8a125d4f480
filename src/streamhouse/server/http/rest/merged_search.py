"""A search of all partitions to its end, in the order of times: a few records of each wait until they are next."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from streamhouse.format.rows import Record
from streamhouse.model.errors import UnreadableRecords
from streamhouse.server.http.rest.partition_scan import ScanLimits
from streamhouse.server.http.rest.reading import size_bytes
from streamhouse.server.http.rest.search import Search
from streamhouse.wire.http.rest.positions import Range

_HELD_RECORDS = 20_000
_HELD_BYTES = 16 * 2**20
_LEAST_RECORDS = 20
_LEAST_BYTES = 16 * 1024
_STEP_RECORDS = 2_000
_STEP_BYTES = 8 * 2**20
_UNREADABLE = 10


@dataclass(slots=True)
class _Waiting:
    left: Range
    """What was not looked at."""
    records: deque[Record] = field(default_factory=deque)

    @property
    def is_next_unknown(self) -> bool:
        return not self.records and self.left[0] < self.left[1]


class MergedSearch:
    def __init__(self, search: Search) -> None:
        self._search = search
        self._sign = -1 if search.newest_first else 1
        self._waiting: dict[int, _Waiting] = {}
        self._later = deque(search.parts)
        self.scanned_records = 0
        self.too_long = 0
        share = search.partition_count
        self._limits = ScanLimits(
            matches=max(_LEAST_RECORDS, _HELD_RECORDS // share),
            match_bytes=max(_LEAST_BYTES, _HELD_BYTES // share),
            scanned_records=_STEP_RECORDS,
            scanned_bytes=_STEP_BYTES,
            held_bytes=search.held_bytes,
            unreadable=_UNREADABLE,
        )

    @property
    def is_at_end(self) -> bool:
        return not self._later and self._is_part_at_end

    @property
    def _is_part_at_end(self) -> bool:
        return not any(each.records or each.is_next_unknown for each in self._waiting.values())

    async def look(self) -> list[tuple[int, UnreadableRecords]]:
        """Further in each partition of which the next record is not known; what was passed over."""
        if self._later and self._is_part_at_end:
            self._waiting = {partition: _Waiting(left) for partition, left in self._later.popleft().items()}
        scans = [
            self._search.scan(partition, each.left, self._limits)
            for partition, each in self._waiting.items()
            if each.is_next_unknown
        ]
        await self._search.run(scans)
        for scan in scans:
            waiting = self._waiting[scan.partition]
            waiting.left = scan.left
            waiting.records.extend(scan.matches)
            self.scanned_records += scan.scanned_records
            self.too_long += scan.too_long
        return [(scan.partition, problem) for scan in scans for problem in scan.unreadable.values()]

    def take(self, most_records: int, most_bytes: int) -> list[tuple[int, Record]]:
        """Those that are next, as far as that is known; at least one goes, however large it is."""
        if any(each.is_next_unknown for each in self._waiting.values()):
            return []
        heads = [
            (self._sign * each.records[0].timestamp_ms, partition)
            for partition, each in self._waiting.items()
            if each.records
        ]
        heapify(heads)
        taken: list[tuple[int, Record]] = []
        while heads and len(taken) < most_records:
            _, partition = heappop(heads)
            waiting = self._waiting[partition]
            most_bytes -= size_bytes(waiting.records[0])
            if taken and most_bytes < 0:
                break
            taken.append((partition, waiting.records.popleft()))
            if waiting.records:
                heappush(heads, (self._sign * waiting.records[0].timestamp_ms, partition))
            elif waiting.is_next_unknown:
                break
        return taken

    def left(self) -> list[Mapping[int, Range]]:
        """What is neither taken nor found not to be wanted, part by part."""
        left = {partition: self._left(each) for partition, each in self._waiting.items()}
        return [{partition: (start, end) for partition, (start, end) in left.items() if start < end}, *self._later]

    def _left(self, waiting: _Waiting) -> Range:
        start, end = waiting.left
        if not waiting.records:
            return start, end
        at = waiting.records[0].offset
        return (start, at + 1) if self._search.newest_first else (at, end)
