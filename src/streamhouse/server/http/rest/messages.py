"""A topic's messages as a console shows them: newest or oldest first over all partitions, filtered. One request looks
at so many records and no more, and says where the next is to go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import merge

from msgspec import UNSET, UnsetType

from streamhouse.broker.records import RecordDoor
from streamhouse.core.search.fields import Field, WrittenRow, fields_of
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput, NotFound, Unavailable
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.leaving import while_client_waits
from streamhouse.server.http.rest.partition_scan import PartitionScan, ScanLimits
from streamhouse.server.http.rest.reading import size_bytes
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.search import Search
from streamhouse.server.row_messages import made_of
from streamhouse.wire.http.rest.positions import ranges_text
from streamhouse.wire.http.rest.records import MessagesAnswer, MessagesQuery, Unreadable

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

    async def search(self, call: Call) -> MessagesAnswer:
        return await while_client_waits(call.request, self._page(call.path["topic"], call.query))

    async def _page(self, name: str, query: MessagesQuery) -> MessagesAnswer:
        fields = fields_of(query.fields or "")
        search = await Search.open(self._door, name, query)
        share = max(1, len(search.ranges))
        limits = ScanLimits(
            matches=query.limit,
            match_bytes=max(_MIN_MATCH_BYTES, _MAX_ANSWER_BYTES // share),
            scanned_records=max(_MIN_SCANNED, _MAX_SCANNED // share),
            scanned_bytes=max(_MIN_MATCH_BYTES, _MAX_SCANNED_BYTES // share),
            unreadable=max(_MIN_UNREADABLE, _MAX_UNREADABLE // share),
        )
        scans = [search.scan(partition, left, limits) for partition, left in search.ranges.items()]
        await search.run(scans)
        chosen = list(_chosen(scans, query.limit, newest_first=search.newest_first))
        return await made_of(
            [record for _, record in chosen],
            lambda: _answer(query, scans, chosen, fields, newest_first=search.newest_first),
            fields=len(fields),
        )


def _answer(
    query: MessagesQuery,
    scans: Sequence[PartitionScan],
    chosen: Sequence[tuple[int, Record]],
    fields: Sequence[Field],
    *,
    newest_first: bool,
) -> MessagesAnswer:
    taken = Counter(partition for partition, _ in chosen)
    left = {scan.partition: scan.left_after(taken[scan.partition], newest_first=newest_first) for scan in scans}
    left = {partition: (start, end) for partition, (start, end) in left.items() if start < end}
    return MessagesAnswer(
        records=[query.found(partition, record, _shown(fields, record)) for partition, record in chosen],
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


def _chosen(scans: Sequence[PartitionScan], limit: int, *, newest_first: bool) -> Iterator[tuple[int, Record]]:
    """By time over all partitions, and in each in the order of its offsets, whatever the times are."""
    sign = -1 if newest_first else 1
    found = ([(scan.partition, record) for record in scan.matches] for scan in scans)
    left_bytes = _MAX_ANSWER_BYTES
    for index, (partition, record) in enumerate(merge(*found, key=lambda each: sign * each[1].timestamp_ms)):
        left_bytes -= size_bytes(record)
        if index == limit or (index and left_bytes < 0):
            return
        yield partition, record
