"""A topic's messages as a console shows them: newest or oldest first over all partitions, filtered. One request looks
at so many records and no more, and says where the next is to go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from streamhouse.broker.records import RecordDoor
from streamhouse.core.search.fields import Field, WrittenRow, fields_of
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput, NotFound, Unavailable
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.first_matches import FirstMatches, Found
from streamhouse.server.http.rest.leaving import while_client_waits
from streamhouse.server.http.rest.partition_scan import PartitionScan, ScanLimits
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.search import Search
from streamhouse.server.row_messages import made_of
from streamhouse.wire.http.rest.positions import ranges_text
from streamhouse.wire.http.rest.records import MessagesAnswer, MessagesQuery, Unreadable

_AT_ONCE = 16
"""Searches, each of which holds some MiB; others wait for their turn."""
_MAX_SCANNED = 20_000
_MIN_SCANNED = 200
_MAX_SCANNED_BYTES = 64 * 2**20
_MAX_UNREADABLE = 100
_MIN_UNREADABLE = 10
_MAX_ANSWER_BYTES = 4 * 2**20
_MIN_MATCH_BYTES = 256 * 1024
_FIELD_LENGTH = 500
_DESCRIPTION = (
    "By key, by a field of JSON values, by what they contain, by a condition and by time. A request looks at a bounded "
    "number of records: ask again with `next`, and everything else the same, until it is null. A time range reaches "
    "from the first record at or after `from_ms` to the first at or after `to_ms`, in each partition. A condition, "
    "`where`, compares `key`, `value`, `offset`, `timestamp`, fields of JSON as `value.customer.id` or "
    '`value["a b"][0]`, and `headers.trace`, with ==, !=, <, <=, >, >=, contains and startswith, and joins comparisons '
    "by and, or, not and parentheses. A field that is not there is null."
)
_ANSWER_EXAMPLE = {
    "records": [
        {
            "partition": 1,
            "offset": 17,
            "timestamp_ms": 1767225600000,
            "key": "customer-7",
            "key_format": "text",
            "value": {"customer": {"id": 7}, "amount": 3},
            "value_format": "json",
            "headers": [],
        }
    ],
    "scanned_records": 500,
    "next": "0:0-41,1:0-17",
    "unreadable": [],
}


def add_messages(rest: Rest, context: DoorContext) -> None:
    rest.route(
        "GET",
        f"{API}/topics/{{topic}}/messages",
        _Messages(context.records).search,
        summary="Search a topic's records",
        description=_DESCRIPTION,
        tag="records",
        query=MessagesQuery,
        answer=MessagesAnswer,
        errors=(InvalidInput, NotFound, Unavailable),
        answer_example=_ANSWER_EXAMPLE,
    )


class _Messages:
    def __init__(self, door: RecordDoor) -> None:
        self._door = door
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def search(self, call: Call) -> MessagesAnswer:
        return await while_client_waits(call.request, self._in_turn(call.path["topic"], call.query))

    async def _in_turn(self, name: str, query: MessagesQuery) -> MessagesAnswer:
        async with self._turns:
            return await self._page(name, query)

    async def _page(self, name: str, query: MessagesQuery) -> MessagesAnswer:
        fields = fields_of(query.fields or "")
        search = await Search.open(self._door, name, query)
        share = max(1, len(search.ranges))
        limits = ScanLimits(
            matches=query.limit,
            match_bytes=max(_MIN_MATCH_BYTES, _MAX_ANSWER_BYTES // share),
            scanned_records=max(_MIN_SCANNED, _MAX_SCANNED // share),
            scanned_bytes=max(_MIN_MATCH_BYTES, _MAX_SCANNED_BYTES // share),
            held_bytes=search.held_bytes,
            unreadable=max(_MIN_UNREADABLE, _MAX_UNREADABLE // share),
        )
        scans = [search.scan(partition, left, limits) for partition, left in search.ranges.items()]
        first = FirstMatches(query.limit, _MAX_ANSWER_BYTES, newest_first=search.newest_first)
        await search.run(scans, first.add)
        return await made_of(
            [record for _, record in first.records],
            lambda: _answer(query, scans, first.records, fields),
            fields=len(fields),
        )


def _answer(
    query: MessagesQuery, scans: Sequence[PartitionScan], found: Sequence[Found], fields: Sequence[Field]
) -> MessagesAnswer:
    left = {scan.partition: scan.left for scan in scans if scan.left[0] < scan.left[1]}
    return MessagesAnswer(
        records=[query.found(partition, record, _shown(fields, record)) for partition, record in found],
        scanned_records=sum(scan.scanned_records for scan in scans),
        next=ranges_text(left) if left else None,
        unreadable=[Unreadable.of(scan.partition, problem) for scan in scans for problem in scan.unreadable.values()],
    )


def _shown(fields: Sequence[Field], record: Record) -> list[str | None] | UnsetType:
    if not fields:
        return UNSET
    row = WrittenRow(record)
    return [_beginning(row.text(field)) for field in fields]


def _beginning(text: str | None) -> str | None:
    return text if text is None or len(text) <= _FIELD_LENGTH else f"{text[:_FIELD_LENGTH]}…"
