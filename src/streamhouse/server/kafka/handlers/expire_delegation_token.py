"""ExpireDelegationToken (40), versions 1 to 2: always refused, as by Kafka where nobody logs in."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import expire_delegation_token as messages
from streamhouse.wire.kafka.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(_context: Context, _request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
