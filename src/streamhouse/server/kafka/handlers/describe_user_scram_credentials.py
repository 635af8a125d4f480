"""DescribeUserScramCredentials (50), version 0: there are no users yet, so a name that is asked for is not found."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import describe_user_scram_credentials as messages
from streamhouse.wire.kafka.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(
    _context: Context, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[
            DescribeUserScramCredentialsResult(
                user=user.name, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message="there is no such user"
            )
            for user in request.users or ()
        ],
    )
