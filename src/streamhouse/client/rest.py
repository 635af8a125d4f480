"""A blocking client of a node's REST API, for commands that look after a cluster through one of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from streamhouse.client.http import HttpEndpoints, decode_answer
from streamhouse.model.errors import Unavailable
from streamhouse.wire.http.planning import PREFIX
from streamhouse.wire.http.rest import cluster as api
from streamhouse.wire.http.rest import topics as of_topics
from streamhouse.wire.http.rest.problems import error_of_problem
from streamhouse.wire.http.rest.stored_segments import StoredSegment, StoredSegmentLine
from streamhouse.wire.http.rest.verification import VerificationLine, VerificationOrder

Answer = TypeVar("Answer")
API = "/api/v1"
_PAGE = 1_000


class RestClient:
    """One connection to a node's HTTP port, opened when first used and again when it broke. Not for several threads.

    Calls raise what the node raised, as kinds of the error tree. All of them are safe to repeat, and are repeated when
    a connection breaks or a node says that it cannot do it now."""

    def __init__(self, endpoint: str, *, timeout_seconds: float = 30.0) -> None:
        """`endpoint`: http://HOST:PORT, or several separated by commas, tried in order."""
        self._endpoints = HttpEndpoints(endpoint, timeout_seconds=timeout_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def agents(self) -> list[api.AgentAnswer]:
        return self._call("GET", "/agents", api.AgentsAnswer).agents

    def placements(self, topic: str | None = None) -> list[api.PlacementAnswer]:
        found: list[api.PlacementAnswer] = []
        after: str | None = ""
        while after is not None:
            query = {"limit": str(_PAGE), "topic": topic or "", "after": after}
            asked = urlencode({name: value for name, value in query.items() if value})
            page = self._call("GET", f"/placements?{asked}", api.PlacementsAnswer)
            found += page.placements
            after = page.next
        return found

    def transfers(self) -> list[api.TransferAnswer]:
        return self._call("GET", "/transfers", api.TransfersAnswer).transfers

    def drain(self, agent_id: str) -> api.DrainAnswer:
        return self._call("POST", f"/agents/{quote(agent_id, safe='')}/drain", api.DrainAnswer)

    def pin(self, topic: str, partition: int, agent_id: str) -> api.PlacementAnswer:
        body = msgspec.json.encode(api.Pin(agent_id=agent_id))
        return self._call("PUT", _pin_of(topic, partition), api.PlacementAnswer, body)

    def unpin(self, topic: str, partition: int) -> api.PlacementAnswer:
        return self._call("DELETE", _pin_of(topic, partition), api.PlacementAnswer)

    def verify(self, *, deep: bool, garbage_grace_ms: int | None = None) -> Iterator[VerificationLine]:
        """As it goes on, up to the report; a problem is raised."""
        order = msgspec.json.encode(VerificationOrder(deep=deep, garbage_grace_ms=garbage_grace_ms))
        for line in self._lines("POST", "/cluster/verify", VerificationLine, order):
            if line.problem is not None:
                raise error_of_problem(line.problem)
            yield line
            if line.report is not None:
                return
        raise _cut_off()

    def topics(self) -> dict[str, int]:
        """The partitions of each, by name."""
        found: dict[str, int] = {}
        after: str | None = ""
        while after is not None:
            page = self._call("GET", f"/topics?{urlencode({'after': after})}", of_topics.TopicsAnswer)
            found |= {topic.name: topic.partition_count for topic in page.topics}
            after = page.next
        return found

    def segments(self, topic: str, partition: int) -> list[of_topics.SegmentAnswer]:
        """Those that the topic refers to."""
        found: list[of_topics.SegmentAnswer] = []
        after: int | None = -1
        path = f"/topics/{quote(topic, safe='')}/partitions/{partition}/segments"
        while after is not None:
            page = self._call("GET", f"{path}?after={after}&limit={_PAGE}", of_topics.SegmentsAnswer)
            found += page.segments
            after = page.next
        return found

    def stored_segments(self, prefix: str) -> Iterator[StoredSegment]:
        """Those that are in the object store, by key."""
        for line in self._lines("GET", f"/segments?{urlencode({'prefix': prefix})}", StoredSegmentLine):
            if line.problem is not None:
                raise error_of_problem(line.problem)
            if line.count is not None:
                return
            if line.segment is not None:
                yield line.segment
        raise _cut_off()

    def read_segment(self, key: str) -> bytes:
        return self._endpoints.call("GET", f"{PREFIX}/objects/{quote(key)}")

    def close(self) -> None:
        self._endpoints.close()

    def _lines(self, method: str, path: str, kind: type[Answer], body: bytes | None = None) -> Iterator[Answer]:
        with closing(self._endpoints.lines(method, API + path, body)) as lines:
            for line in lines:
                yield decode_answer(line, kind)

    def _call(self, method: str, path: str, kind: type[Answer], body: bytes | None = None) -> Answer:
        return decode_answer(self._endpoints.call(method, API + path, body), kind)


def _cut_off() -> Unavailable:
    return Unavailable("the node hung up before it was done", hint="ask another node")


def _pin_of(topic: str, partition: int) -> str:
    return f"/topics/{quote(topic, safe='')}/partitions/{partition}/pin"
