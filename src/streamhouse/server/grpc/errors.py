"""Ends a gRPC call with one of our errors, such that the caller can raise the same one."""

from __future__ import annotations

from typing import Any, NoReturn

import grpc

from streamhouse.model.errors import StreamHouseError, UnreadableRecords
from streamhouse.wire.grpc.error_kinds import ERROR_KIND_KEY, NEXT_OFFSET_KEY, kind_of

# All of a call's metadata must fit in 8 KiB, and what is not ASCII becomes three times as long there.
_LONGEST_MESSAGE = 500
_CODES = {code.value[0]: code for code in grpc.StatusCode}


async def abort(context: grpc.aio.ServicerContext[Any, Any], problem: StreamHouseError) -> NoReturn:
    kind = kind_of(problem)
    # A name that came from a client may hold what UTF-8 cannot say.
    message = str(problem)[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()
    metadata = [(ERROR_KIND_KEY, kind.name)]
    if isinstance(problem, UnreadableRecords) and problem.next_offset is not None:
        metadata.append((NEXT_OFFSET_KEY, str(problem.next_offset)))
    await context.abort(_CODES[kind.status], message, trailing_metadata=tuple(metadata))
