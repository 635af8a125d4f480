"""DescribeDelegationToken (41), versions 1 to 3: always refused, as by Kafka where nobody logs in."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import describe_delegation_token as messages
from streamhouse.wire.kafka.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(_context: Context, _request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
