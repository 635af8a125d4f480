"""All that a search finds, as a file: sent while it is found, as much as one file may hold. A last line says if that
was not all, and where to go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from streamhouse.core.search.fields import Field, WrittenRow, fields_of
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput, NotFound, StreamHouseError, Unavailable
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.leaving import while_client_waits
from streamhouse.server.http.rest.merged_search import MergedSearch
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.search import Search
from streamhouse.server.http.rest.waiting import Waiting
from streamhouse.wire.http.rest.downloads import NDJSON, CsvFile, NdjsonFile
from streamhouse.wire.http.rest.positions import ranges_text
from streamhouse.wire.http.rest.problems import problem_of
from streamhouse.wire.http.rest.records import DownloadQuery, Unreadable

_MAX_DOWNLOADS = 4
_MAX_BYTES = 64 * 2**20
_MAX_SCANNED = 2_000_000
_PART_RECORDS = 1_000
_PART_BYTES = 2**20
_EXAMPLE = (
    '{"partition":0,"offset":7,"timestamp_ms":1767225600000,"key":"customer-7","key_format":"text",'
    '"value":{"amount":3},"value_format":"json","headers":[]}\n'
)


def add_download(rest: Rest, context: DoorContext, waiting: Waiting) -> None:
    rest.route(
        "GET",
        f"{API}/topics/{{topic}}/messages/download",
        _Downloads(context, waiting).download,
        summary="Download what a search finds",
        description="By the same query as a search, all pages of it as one file, sent while it is found. It ends after "
        f"`limit` records, {_MAX_BYTES // 2**20} MiB, or when {_MAX_SCANNED:,} records were looked at; if there may be "
        'more, or a problem came up, a last line says so: `{"cut": …, "next": …}`, in CSV one that begins with #. CSV '
        "has the chosen `fields` instead of value and headers; what a spreadsheet would run as a formula has an "
        "apostrophe before it.",
        tag="records",
        query=DownloadQuery,
        media_type=NDJSON,
        errors=(InvalidInput, NotFound, Unavailable),
        answer_example=_EXAMPLE,
    )


class _Downloads:
    def __init__(self, context: DoorContext, waiting: Waiting) -> None:
        self._door = context.records
        self._waiting = waiting
        self._count = 0

    async def download(self, call: Call) -> Response:
        query: DownloadQuery = call.query
        fields = fields_of(query.fields or "")
        topic = call.path["topic"]
        search = await while_client_waits(call.request, Search.open(self._door, topic, query))
        file = _file(query, fields)
        if call.request.method == "HEAD":
            return Response(media_type=file.media_type)
        opened = AsyncExitStack()
        opened.enter_context(self._place())
        running = _Running(search, query, file)
        opened.enter_context(self._waiting.place(running.stop))
        return _FileResponse(opened, running, f"{search.topic.name}.{query.format}")

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._count >= _MAX_DOWNLOADS:
            raise Unavailable(f"{_MAX_DOWNLOADS} downloads are under way", hint="try again when one is done")
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1


def _file(query: DownloadQuery, fields: tuple[Field, ...]) -> NdjsonFile | CsvFile:
    def texts(record: Record) -> list[str | None]:
        row = WrittenRow(record)
        return [row.text(field) for field in fields]

    names = [field.name for field in fields]
    return CsvFile(names, texts) if query.format == "csv" else NdjsonFile(query, names, texts)


class _Running:
    """One download, part by part."""

    def __init__(self, search: Search, query: DownloadQuery, file: NdjsonFile | CsvFile) -> None:
        self._merged = MergedSearch(search)
        self.file = file
        self._left_records = query.limit
        self._left_bytes = _MAX_BYTES
        self._is_stopped = False

    def stop(self) -> None:
        self._is_stopped = True

    async def parts(self) -> AsyncIterator[bytes]:
        yield self.file.head()
        reason: str | None = None
        try:
            while not self._merged.is_at_end and (reason := self._cut()) is None:
                for partition, problem in await self._merged.look():
                    yield self.file.note("unreadable", msgspec.to_builtins(Unreadable.of(partition, problem)))
                found = self._merged.take(min(_PART_RECORDS, self._left_records), _PART_BYTES)
                part = await asyncio.to_thread(self.file.lines, found)
                self._left_records -= len(found)
                self._left_bytes -= len(part)
                yield part
            if self._merged.too_long:
                yield self.file.note("too_long", self._merged.too_long)
            if reason is not None:
                yield self.file.cut(reason, ranges_text(self._merged.left()))
        except StreamHouseError as problem:
            yield self.file.note("problem", msgspec.to_builtins(problem_of(problem)))

    def _cut(self) -> str | None:
        if self._left_records <= 0:
            return "as many records as were asked for"
        if self._left_bytes <= 0:
            return f"{_MAX_BYTES // 2**20} MiB"
        if self._merged.scanned_records >= _MAX_SCANNED:
            return f"{self._merged.scanned_records} records were looked at"
        return "the node is ending" if self._is_stopped else None


class _FileResponse(Response):
    """Ends when the client hangs up."""

    def __init__(self, opened: AsyncExitStack, running: _Running, name: str) -> None:
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
        super().__init__(headers=headers, media_type=running.file.media_type)
        del MutableHeaders(raw=self.raw_headers)["content-length"]
        self._opened = opened
        self._running = running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._opened:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            try:
                await while_client_waits(Request(scope, receive), self._send(send))
            except ClientDisconnect:
                return

    async def _send(self, send: Send) -> None:
        async for part in self._running.parts():
            if part:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
