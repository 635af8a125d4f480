"""What a verification found, as the REST API says it, and as the command does that verifies without a node."""

from __future__ import annotations

from streamhouse.log.verify_report import Finding, Report
from streamhouse.wire.http.rest.verification import VerificationFinding, VerificationReport


def finding_line(finding: Finding) -> VerificationFinding:
    return VerificationFinding(
        severity=finding.severity.value,
        invariant=finding.invariant.value,
        subject=finding.subject,
        message=finding.message,
    )


def report_line(report: Report) -> VerificationReport:
    return VerificationReport(
        partitions=report.partitions,
        segments=report.segments,
        wal_objects=report.wal_objects,
        bytes_read=report.bytes_read,
        violations=report.violation_count,
        notes=report.note_count,
    )
