"""DescribeAcls (29), versions 1 to 3: always SECURITY_DISABLED, as from a Kafka broker without an authorizer."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import describe_acls as messages
from streamhouse.wire.kafka.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
NO_ACLS = "everybody may do everything here, so there are no ACLs"


async def handle(_context: Context, _request: DescribeAclsRequest) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_ACLS)
