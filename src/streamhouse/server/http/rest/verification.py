"""`cluster verify` over REST: a node checks metadata store and object store against each other, for who has neither.

It costs what it reads. So there is one at a time, which has one object in memory, and it ends when who asked for it
hangs up."""

from __future__ import annotations

import asyncio

from streamhouse.log.verify import Verification
from streamhouse.log.verify_report import Report
from streamhouse.model.errors import Unavailable
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.tasks import begin
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.line_stream import Lines, LineStream
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.verified import finding_line, report_line
from streamhouse.wire.http.rest import verification as api

_PROGRESS_S = 0.5
_MOST_FINDINGS = 10_000
"""Of each severity: who has more has more than he can read."""
_ANSWER_EXAMPLE = (
    '{"progress":{"checked_offsets":500,"offsets":1000}}\n'
    '{"finding":{"severity":"violation","invariant":"I3","subject":"orders/0","message":"gap: …"}}\n'
    '{"report":{"partitions":6,"segments":12,"wal_objects":2,"bytes_read":0,"violations":1,"notes":0}}\n'
)


class Verifying:
    def __init__(self, rest: Rest, context: DoorContext, objects: ObjectStore) -> None:
        self._metadata = context.metadata
        self._objects = objects
        self._clock = context.broker.clock
        self._garbage_grace_ms = context.broker.settings.garbage_grace
        self._running: asyncio.Task[Report] | None = None
        self._is_ending = False
        rest.route(
            "POST",
            f"{API}/cluster/verify",
            self.verify,
            summary="Check that no log has a gap and every object is there",
            description="The answer comes in lines of JSON, each of them one of `progress`, `finding`, `report` and "
            "`problem`; the report, or a problem, is the last. A node does one at a time, and ends it when its client "
            "hangs up. At most 10,000 violations and as many notes are told, and all are counted.",
            tag="cluster",
            body=api.VerificationOrder,
            body_example=api.VerificationOrder(deep=True),
            media_type=api.JSON_LINES,
            answer_example=_ANSWER_EXAMPLE,
            errors=(Unavailable,),
        )

    async def verify(self, call: Call) -> LineStream:
        self._check_is_free()
        return LineStream(self._lines(call.body))

    def end(self) -> None:
        """A node that ends finishes none."""
        self._is_ending = True
        if self._running is not None:
            self._running.cancel()

    def _check_is_free(self) -> None:
        if self._running is not None or self._is_ending:
            raise Unavailable(
                "this node is verifying already" if self._running else "this node is ending",
                hint="try again later, or ask another node",
            )

    async def _lines(self, order: api.VerificationOrder) -> Lines:
        self._check_is_free()
        checked = 0

        def count(offsets: int) -> None:
            nonlocal checked
            checked += offsets

        grace_ms = self._garbage_grace_ms if order.garbage_grace_ms is None else order.garbage_grace_ms
        verification = Verification(
            metadata=self._metadata,
            objects=self._objects,
            oldest_upload_ms=self._clock.now_ms() - grace_ms,
            deep=order.deep,
            checked=count,
            objects_at_once=1,
            most_findings=_MOST_FINDINGS,
        )
        placements = await self._metadata.list_placements()
        self._check_is_free()  # which another one may have been faster to make sure of
        running = self._running = begin(verification.run(placements))
        offsets = sum(placement.durable_end - placement.log_start_offset for placement in placements)
        try:
            while not running.done():
                # Also without progress: it shows that somebody still listens.
                progress = api.VerificationProgress(checked_offsets=min(checked, offsets), offsets=offsets)
                yield api.VerificationLine(progress=progress)
                await asyncio.wait({running}, timeout=_PROGRESS_S)
            if running.cancelled():
                raise Unavailable("this node is ending", hint="ask another node")
            report = running.result()
        finally:
            running.cancel()
            await asyncio.wait({running})
            self._running = None
        for finding in report.findings:
            yield api.VerificationLine(finding=finding_line(finding))
        yield api.VerificationLine(report=report_line(report))
