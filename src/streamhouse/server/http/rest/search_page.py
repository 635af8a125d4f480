"""What one answer of a search holds, and what is left for the next: so many records and bytes are looked at for it, and
no more."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from streamhouse.model.errors import UnreadableRecords
from streamhouse.server.http.rest.first_matches import FirstMatches, Found
from streamhouse.server.http.rest.partition_scan import PartitionScan, ScanLimits
from streamhouse.server.http.rest.reading import size_bytes
from streamhouse.server.http.rest.search import Search
from streamhouse.wire.http.rest.positions import Range

_MAX_SCANNED = 20_000
_MIN_SCANNED = 200
_MAX_SCANNED_BYTES = 64 * 2**20
_MAX_UNREADABLE = 100
_MIN_UNREADABLE = 10
_MAX_ANSWER_BYTES = 4 * 2**20
_MIN_MATCH_BYTES = 256 * 1024


class SearchPage:
    def __init__(self, search: Search, most_records: int) -> None:
        self.found: list[Found] = []
        self.unreadable: list[tuple[int, UnreadableRecords]] = []
        self.scanned_records = 0
        self.too_long = 0
        self._search = search
        self._most_records = most_records
        self._left: Mapping[int, Range] = {}
        self._later = deque(search.parts)
        self._left_bytes = _MAX_ANSWER_BYTES
        self._scanned_bytes = 0

    async def fill(self) -> None:
        """The parts of a search go one after the other; one that is short leaves room for the next."""
        while self._later:
            await self._look(self._later.popleft())
            if self._left or self._is_full:
                return

    @property
    def left(self) -> Sequence[Mapping[int, Range]]:
        return [part for part in (self._left, *self._later) if part]

    @property
    def _is_full(self) -> bool:
        return (
            len(self.found) >= self._most_records
            or self._left_bytes <= 0
            or self.scanned_records >= _MAX_SCANNED
            or self._scanned_bytes >= _MAX_SCANNED_BYTES
        )

    async def _look(self, part: Mapping[int, Range]) -> None:
        limits = self._limits()
        scans = [self._search.scan(partition, left, limits) for partition, left in part.items()]
        first = FirstMatches(limits.matches, self._left_bytes, newest_first=self._search.newest_first)
        await self._search.run(scans, first.add)
        self.found += first.records
        self._left_bytes -= sum(size_bytes(record) for _, record in first.records)
        self._left = {scan.partition: scan.left for scan in scans if scan.left[0] < scan.left[1]}
        self._count(scans)

    def _count(self, scans: Sequence[PartitionScan]) -> None:
        self.scanned_records += sum(scan.scanned_records for scan in scans)
        self._scanned_bytes += sum(scan.scanned_bytes for scan in scans)
        self.too_long += sum(scan.too_long for scan in scans)
        self.unreadable += [(scan.partition, problem) for scan in scans for problem in scan.unreadable.values()]

    def _limits(self) -> ScanLimits:
        share = self._search.partition_count
        return ScanLimits(
            matches=self._most_records - len(self.found),
            match_bytes=max(_MIN_MATCH_BYTES, self._left_bytes // share),
            scanned_records=max(_MIN_SCANNED, (_MAX_SCANNED - self.scanned_records) // share),
            scanned_bytes=max(_MIN_MATCH_BYTES, (_MAX_SCANNED_BYTES - self._scanned_bytes) // share),
            held_bytes=self._search.held_bytes,
            unreadable=max(_MIN_UNREADABLE, _MAX_UNREADABLE // share),
        )
