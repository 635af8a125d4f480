"""A verification of a cluster: by one of its nodes, or here, with access to both stores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from streamhouse.cli.console import Progress, progress_bar
from streamhouse.cli.metadata_store import opened_metadata
from streamhouse.cli.object_store import opened_objects
from streamhouse.client.rest import RestClient
from streamhouse.log.verify import Verification
from streamhouse.model.settings import Settings
from streamhouse.runtime.clock import SystemClock
from streamhouse.server.http.rest.verified import finding_line, report_line
from streamhouse.wire.http.rest.verification import VerificationFinding, VerificationReport

_WHAT = "checking offsets"


class Verified(NamedTuple):
    report: VerificationReport
    findings: Sequence[VerificationFinding]


async def verify_here(settings: Settings, deep: bool) -> Verified:
    async with opened_metadata(settings) as metadata, opened_objects(settings) as objects:
        placements = await metadata.list_placements()
        offsets = sum(placement.durable_end - placement.log_start_offset for placement in placements)
        with progress_bar(_WHAT, offsets) as bar:
            verification = Verification(
                metadata=metadata,
                objects=objects,
                oldest_upload_ms=SystemClock().now_ms() - settings.garbage_grace,
                deep=deep,
                checked=bar.advance,
            )
            report = await verification.run(placements)
    return Verified(report_line(report), [finding_line(finding) for finding in report.findings])


def verify_through(endpoint: str, deep: bool, garbage_grace_ms: int | None) -> Verified:
    """None: the node's own grace."""
    findings: list[VerificationFinding] = []
    report: VerificationReport | None = None
    bar: Progress | None = None
    shown = 0
    with RestClient(endpoint) as client, ExitStack() as shows:
        for line in client.verify(deep=deep, garbage_grace_ms=garbage_grace_ms):
            if line.progress is not None:
                bar = bar or shows.enter_context(progress_bar(_WHAT, line.progress.offsets))
                bar.advance(line.progress.checked_offsets - shown)
                shown = line.progress.checked_offsets
            if line.finding is not None:
                findings.append(line.finding)
            report = line.report or report
    assert report is not None, "it is the last line, or there is an error"
    return Verified(report, findings)
