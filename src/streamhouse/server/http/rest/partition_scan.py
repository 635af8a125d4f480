"""One partition's part of a search: records that match, from one end of a range of offsets towards the other, as far as
so many records and bytes go."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from streamhouse.broker.records import EARLIEST, RecordDoor
from streamhouse.format.rows import Record
from streamhouse.model.errors import OffsetOutOfRange, UnreadableRecords
from streamhouse.model.topic import Topic
from streamhouse.server.http.rest.filters import RecordFilter
from streamhouse.server.http.rest.reading import size_bytes
from streamhouse.wire.http.rest.positions import Range

_PAGE_RECORDS = 1_000
_FIRST_STEP = 200
_MOST_AT_ONCE = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanLimits:
    """Of one partition, for one request; what is looked at may go beyond by a page."""

    matches: int
    match_bytes: int
    scanned_records: int
    scanned_bytes: int
    held_bytes: int
    """Of records that are looked at together."""
    unreadable: int
    """Batches that are passed over: each takes a read of its own."""


class _Page(NamedTuple):
    records: list[Record]
    next_offset: int
    passed_over: UnreadableRecords | None = None


@dataclass(slots=True)
class PartitionScan:
    """`matches` in the order of the search; `left` is what was not looked at; `unreadable` what was passed over because
    it cannot be given as rows, by the offset behind it."""

    door: RecordDoor
    topic: Topic
    partition: int
    left: Range
    filter: RecordFilter
    limits: ScanLimits
    matches: list[Record] = field(default_factory=list)
    scanned_records: int = 0
    scanned_bytes: int = 0
    too_long: int = 0
    unreadable: dict[int, UnreadableRecords] = field(default_factory=dict)
    _match_bytes: int = 0
    _step: int = _FIRST_STEP

    async def run(self, *, newest_first: bool) -> None:
        start, end = self.left
        while start < end and not self._has_enough():
            start, end = await (self._back(start, end) if newest_first else self._forth(start, end))
        self.left = (min(start, end), end)
        self._keep_within_limits(newest_first=newest_first)

    async def _forth(self, start: int, end: int) -> Range:
        """Look at a page; what is left."""
        page = await self._read(start, end)
        await self._look_at([record for record in page.records if record.offset < end])
        self._note(page)
        return (page.next_offset if page.next_offset > start else end), end

    async def _back(self, start: int, end: int) -> Range:
        """Records can only be read forwards: in steps back, which grow where compaction left few, and shrink where
        records are long."""
        begin = max(start, end - self._step)
        pages = await self._between(begin, end)
        if pages is None:
            return start, end
        records = [record for page in pages for record in page.records if record.offset < end]
        await self._look_at(records[::-1])
        for page in pages:
            self._note(page)
        if len(records) >= _FIRST_STEP:
            self._step = _FIRST_STEP
        elif sum(map(size_bytes, records)) < self.limits.held_bytes // 2:
            self._step *= 2
        return start, begin

    def left_after(self, count: int, *, newest_first: bool) -> Range:
        """What is still to be looked at by who took only so many of the matches."""
        if count == len(self.matches):
            return self.left
        first_not_taken = self.matches[count].offset
        start, end = self.left
        return (start, first_not_taken + 1) if newest_first else (first_not_taken, end)

    def keep(self, count: int, *, newest_first: bool) -> None:
        """Let go of the other matches, which are left to be looked at again, and so is what was passed over there."""
        if count < len(self.matches):
            self.left = start, end = self.left_after(count, newest_first=newest_first)
            del self.matches[count:]
            for behind in [behind for behind in self.unreadable if start < behind <= end]:
                del self.unreadable[behind]

    def _has_enough(self) -> bool:
        limits = self.limits
        return (
            len(self.matches) >= limits.matches
            or self._match_bytes >= limits.match_bytes
            or self.scanned_records >= limits.scanned_records
            or self.scanned_bytes >= limits.scanned_bytes
            or len(self.unreadable) >= limits.unreadable
        )

    async def _look_at(self, records: list[Record]) -> None:
        self.scanned_records += len(records)
        self.scanned_bytes += sum(map(size_bytes, records))
        self.too_long += self.filter.count_too_long(records)
        found = await self.filter.of(records)
        self.matches += found
        self._match_bytes += sum(map(size_bytes, found))

    def _keep_within_limits(self, *, newest_first: bool) -> None:
        """A page in which all match is more than was asked for, of each of many partitions."""
        sizes = accumulate(map(size_bytes, self.matches))
        count = sum(1 for size in sizes if size <= self.limits.match_bytes)
        self.keep(min(max(count, 1), self.limits.matches), newest_first=newest_first)

    def _note(self, page: _Page) -> None:
        if page.passed_over is not None:
            self.unreadable[page.next_offset] = page.passed_over

    async def _between(self, start: int, end: int) -> list[_Page] | None:
        """None if they are too many or too long, as those of few offsets are not: the next step is shorter."""
        pages: list[_Page] = []
        count = passed_over = held_bytes = 0
        at = start
        while at < end:
            page = await self._read(at, end)
            pages.append(page)
            count += len(page.records)
            held_bytes += sum(map(size_bytes, page.records))
            passed_over += page.passed_over is not None
            at = page.next_offset if page.next_offset > at else end
            if at < end and (
                count > _MOST_AT_ONCE or held_bytes > self.limits.held_bytes or passed_over >= self.limits.unreadable
            ):
                self._step = max(1, min((end - start) // 2, at - start))
                return None
        return pages

    async def _read(self, offset: int, end: int) -> _Page:
        """From where the log begins if it begins later by now; nothing if it has become shorter."""
        try:
            return await self._page(offset, end)
        except OffsetOutOfRange:
            log = await self.door.offset_at(self.topic, self.partition, EARLIEST)
        if offset < log.log_start_offset < end:
            return await self._page(log.log_start_offset, end)
        return _Page([], offset)

    async def _page(self, offset: int, end: int) -> _Page:
        most = min(_PAGE_RECORDS, end - offset)
        try:
            page = await self.door.read(self.topic, self.partition, offset, max_records=most)
        except UnreadableRecords as problem:
            if problem.next_offset is None:
                raise
            return _Page([], problem.next_offset, problem)
        return _Page(page.records, page.next_offset)
