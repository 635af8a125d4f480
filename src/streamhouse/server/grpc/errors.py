"""Ends a gRPC call with one of our errors, such that the caller can raise the same one."""

from __future__ import annotations

from typing import Any, NoReturn

import grpc

from streamhouse.model.errors import StreamHouseError
from streamhouse.wire.grpc.error_kinds import ERROR_KIND_KEY, kind_of

# All of a call's metadata must fit in 8 KiB, and what is not ASCII becomes three times as long there.
_LONGEST_MESSAGE = 500
_CODES = {code.value[0]: code for code in grpc.StatusCode}


async def abort(context: grpc.aio.ServicerContext[Any, Any], problem: StreamHouseError) -> NoReturn:
    kind = kind_of(problem)
    # A name that came from a client may hold what UTF-8 cannot say.
    message = str(problem)[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()
    await context.abort(_CODES[kind.status], message, trailing_metadata=((ERROR_KIND_KEY, kind.name),))
