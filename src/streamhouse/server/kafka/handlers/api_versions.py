"""ApiVersions (18), versions 0 to 4: the routing table, told to clients.

An unknown version is answered with version 0 and UNSUPPORTED_VERSION, which still lists all versions, so that a newer
client can go on (KIP-511)."""

from __future__ import annotations

from streamhouse.model.buffer import Buffer
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.frame import RequestHeader, encode_response
from streamhouse.wire.kafka.messages import api_versions as messages
from streamhouse.wire.kafka.messages.api_versions import ApiVersion, ApiVersionsResponse
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


def answer(header: RequestHeader, versions: list[ApiVersion]) -> list[Buffer]:
    if header.api is None:
        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=versions)
        version = 0
    else:
        response = ApiVersionsResponse(api_keys=versions)
        version = header.api_version
    return encode_response(header.correlation_id, API, version, messages.encode_response(response, version))
