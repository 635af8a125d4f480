"""What a verification looked at and what it found."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Severity(Enum):
    """A note is worth knowing and nothing to worry about."""

    VIOLATION = "violation"
    NOTE = "note"


class Invariant(Enum):
    SEAMLESS = "I3"
    """Committed ranges are contiguous and disjoint, and their epochs never decrease."""

    AGREEMENT = "I7"
    """Every row has its object, with the right size and content; objects without rows go after a grace period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`subject` is the partition or the object that it is about."""

    severity: Severity
    invariant: Invariant
    subject: str
    message: str


@dataclass(slots=True, kw_only=True)
class Report:
    """Findings are in the order in which they were made. Of each severity no more than `most_findings` are kept, all of
    them if it is None; `violation_count` and `note_count` are of all."""

    most_findings: int | None = None
    violation_count: int = 0
    note_count: int = 0
    partitions: int = 0
    segments: int = 0
    wal_objects: int = 0
    bytes_read: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def violations(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity is Severity.VIOLATION]

    @property
    def notes(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity is Severity.NOTE]

    def violation(self, invariant: Invariant, subject: str, message: str) -> None:
        self.violation_count += 1
        if self._has_place(self.violation_count):
            self._add(Severity.VIOLATION, invariant, subject, message)

    def note(self, invariant: Invariant, subject: str, message: str) -> None:
        self.note_count += 1
        if self._has_place(self.note_count):
            self._add(Severity.NOTE, invariant, subject, message)

    def _has_place(self, count: int) -> bool:
        return self.most_findings is None or count <= self.most_findings

    def _add(self, severity: Severity, invariant: Invariant, subject: str, message: str) -> None:
        self.findings.append(Finding(severity=severity, invariant=invariant, subject=subject, message=message))
