"""ListTransactions (66), versions 0 to 2: there are no transactions."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.messages import list_transactions as messages
from streamhouse.wire.kafka.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(_context: Context, _request: ListTransactionsRequest) -> ListTransactionsResponse:
    return ListTransactionsResponse()
