"""DeleteAcls (31), versions 1 to 3: always SECURITY_DISABLED, as from a Kafka broker without an authorizer."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.handlers.describe_acls import NO_ACLS
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import delete_acls as messages
from streamhouse.wire.kafka.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(_context: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    refusal = DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_ACLS)
    return DeleteAclsResponse(filter_results=[refusal for _ in request.filters])
