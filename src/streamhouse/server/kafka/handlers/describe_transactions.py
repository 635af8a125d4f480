"""DescribeTransactions (65), version 0: no transactional id is known."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import describe_transactions as messages
from streamhouse.wire.kafka.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(_context: Context, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
            for transactional_id in request.transactional_ids
        ]
    )
