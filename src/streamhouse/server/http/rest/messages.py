"""A topic's messages as a console shows them: newest or oldest first over all partitions, filtered. One request looks
at so many records and no more, and says where the next is to go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from streamhouse.broker.records import RecordDoor
from streamhouse.core.search.fields import MAX_JSON_BYTES, Field, WrittenRow, fields_of
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput, NotFound, Unavailable
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.leaving import while_client_waits
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.search import Search
from streamhouse.server.http.rest.search_page import SearchPage
from streamhouse.server.row_messages import made_of
from streamhouse.wire.http.rest.positions import ranges_text
from streamhouse.wire.http.rest.records import MessagesAnswer, MessagesQuery, Unreadable

_AT_ONCE = 16
"""Searches, each of which holds some MiB; others wait for their turn."""
_FIELD_LENGTH = 500
_DESCRIPTION = (
    "By key, by a field of JSON values, by what they contain, by a condition and by time. A request looks at a bounded "
    "number of records: ask again with `next`, and everything else the same, until it is null. Times may be out of "
    "order, so with `to_ms` a search goes on to the end of the log; newest first, what lies behind the first record at "
    "or after `to_ms` comes last. Conditions, `where`, compare `key`, `value`, `offset`, `timestamp`, `headers.trace` "
    'and fields of JSON as `value.customer.id` or `value["a b"][0]`, with ==, !=, <, <=, >, >=, contains, startswith, '
    "and join comparisons by and, or, not and parentheses. A field that is not there is null. Keys and values of more "
    f"than {MAX_JSON_BYTES // 2**20} MiB have no fields; `too_long` counts the records that were asked for one."
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
    "too_long": 0,
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
        page = SearchPage(await Search.open(self._door, name, query), query.limit)
        await page.fill()
        return await made_of(
            [record for _, record in page.found], lambda: _answer(query, page, fields), fields=len(fields)
        )


def _answer(query: MessagesQuery, page: SearchPage, fields: Sequence[Field]) -> MessagesAnswer:
    return MessagesAnswer(
        records=[query.found(partition, record, _shown(fields, record)) for partition, record in page.found],
        scanned_records=page.scanned_records,
        next=ranges_text(page.left) if page.left else None,
        unreadable=[Unreadable.of(partition, problem) for partition, problem in page.unreadable],
        too_long=page.too_long,
    )


def _shown(fields: Sequence[Field], record: Record) -> list[str | None] | UnsetType:
    if not fields:
        return UNSET
    row = WrittenRow(record)
    return [_beginning(row.text(field)) for field in fields]


def _beginning(text: str | None) -> str | None:
    return text if text is None or len(text) <= _FIELD_LENGTH else f"{text[:_FIELD_LENGTH]}…"
