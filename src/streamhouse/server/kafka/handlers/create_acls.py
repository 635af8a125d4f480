"""CreateAcls (30), versions 1 to 3: always SECURITY_DISABLED, as from a Kafka broker without an authorizer."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.handlers.describe_acls import NO_ACLS
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import create_acls as messages
from streamhouse.wire.kafka.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(_context: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    refusal = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_ACLS)
    return CreateAclsResponse(results=[refusal for _ in request.creations])
