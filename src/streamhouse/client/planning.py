"""A blocking client of the planning API, for Spark's drivers and executors."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self
from uuid import UUID

import msgspec

from streamhouse.client.http import HttpEndpoints, decode_answer
from streamhouse.wire.http import planning as api
from streamhouse.wire.http.planning import PREFIX


class PlanningClient:
    """One connection to a node's HTTP port, opened when first used and again when it broke. Not for several threads.

    Calls raise what the node raised, as kinds of the error tree; Unavailable if there is no answer after retries. All
    of them are safe to repeat, and are repeated when a connection breaks or a node says that it cannot do it now."""

    def __init__(self, endpoint: str, *, timeout_seconds: float = 60.0, reach_seconds: float | None = None) -> None:
        """`endpoint`: http://HOST:PORT, or several separated by commas, tried in order. A single try may take the
        time-out, and after it no other is begun. `reach_seconds`: the patience until a node has answered once."""
        self._endpoints = HttpEndpoints(endpoint, timeout_seconds=timeout_seconds, reach_seconds=reach_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def cluster(self) -> api.ClusterAnswer:
        return decode_answer(self._endpoints.call("GET", f"{PREFIX}/cluster"), api.ClusterAnswer)

    def topics(self) -> list[api.TopicAnswer]:
        return decode_answer(self._endpoints.call("GET", f"{PREFIX}/topics"), list[api.TopicAnswer])

    def offsets(self, questions: Sequence[api.OffsetQuestion]) -> list[int | None]:
        answer = self._post("/offsets", api.OffsetsRequest(questions=list(questions)))
        return decode_answer(answer, api.OffsetsAnswer).offsets

    def ranges(
        self, questions: Sequence[api.RangeQuestion], *, piece_bytes: int, presign: bool = False
    ) -> list[api.RangeAnswer]:
        request = api.RangesRequest(questions=list(questions), piece_bytes=piece_bytes, presign=presign)
        return decode_answer(self._post("/ranges", request), api.RangesAnswer).ranges

    def tail(self, topic: str, partition: int, start: int, max_bytes: int, *, topic_id: UUID | None = None) -> bytes:
        request = api.TailRequest(topic=topic, partition=partition, start=start, max_bytes=max_bytes, topic_id=topic_id)
        return self._post("/tail", request)

    def segments(self, topic: str, partition: int, *, to_replace: bool = False) -> api.SegmentsAnswer:
        request = api.SegmentsRequest(topic=topic, partition=partition, to_replace=to_replace)
        answer = self._post("/segments", request)
        return decode_answer(answer, api.SegmentsAnswer)

    def replace(self, request: api.ReplaceRequest) -> None:
        self._post("/replace", request)

    def stage(self, keys: Sequence[str]) -> list[str]:
        return decode_answer(self._post("/stage", api.StageRequest(keys=list(keys))), api.StageAnswer).urls

    def adopt(self, request: api.AdoptRequest) -> api.AdoptAnswer:
        return decode_answer(self._post("/adopt", request), api.AdoptAnswer)

    def abandon(self, keys: Sequence[str]) -> None:
        self._post("/abandon", api.AbandonRequest(keys=list(keys)))

    def pin(self, request: api.PinRequest) -> None:
        self._post("/pin", request)

    def close(self) -> None:
        self._endpoints.close()

    def _post(self, path: str, message: msgspec.Struct) -> bytes:
        return self._endpoints.call("POST", f"{PREFIX}{path}", msgspec.json.encode(message))
