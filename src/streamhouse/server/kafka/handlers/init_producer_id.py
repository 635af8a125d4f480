"""InitProducerId (22), versions 0 to 5: a new id for an idempotent producer. Transactional ids are refused.

The refusal is TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which every client takes for final."""

from __future__ import annotations

from streamhouse.model.errors import MetadataUnavailable, StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import init_producer_id as messages
from streamhouse.wire.kafka.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, producer_epoch=-1)
    try:
        producer_id = await context.broker.producer_ids.take()
    except StreamHouseError as problem:
        return InitProducerIdResponse(error_code=_code(problem), producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _code(problem: StreamHouseError) -> ErrorCode:
    """Ids are in the metadata store. While it is away the client is to ask again, and to look for no coordinator."""
    if isinstance(problem, MetadataUnavailable):
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return code_of(problem)
