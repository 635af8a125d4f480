"""DeleteTopics (20), versions 1 to 6: by name, or by id since version 6."""

from __future__ import annotations

from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.partitions import NO_ID, TopicLookup
from streamhouse.wire.kafka.messages import delete_topics as messages
from streamhouse.wire.kafka.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    asked = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    lookup = TopicLookup(context.broker)
    return DeleteTopicsResponse(responses=[await _delete(context, lookup, state) for state in asked])


async def _delete(context: Context, lookup: TopicLookup, state: DeleteTopicState) -> DeletableTopicResult:
    try:
        topic = await lookup.get(state.name or "", state.topic_id)
        await context.broker.topics.delete(topic)
    except StreamHouseError as problem:
        return DeletableTopicResult(
            name=state.name if state.topic_id == NO_ID else None,
            topic_id=state.topic_id,
            error_code=code_of(problem),
            error_message=str(problem),
        )
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
