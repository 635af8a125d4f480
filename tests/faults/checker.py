"""Judges what clients saw: sends with their outcomes and polls with what they returned, each violation by its name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

Partition = tuple[str, int]
Content = Hashable
"""All of a record that must come back: whatever a test folds into it is compared byte for byte."""


class Outcome(Enum):
    """What the producer was told. UNKNOWN is a time-out or a lost connection: the write may be there or not."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One record, in the order in which its producer sent it. Contents are unique within a history."""

    producer: str
    partition: Partition
    content: Content
    outcome: Outcome
    offset: int | None = None

    def __post_init__(self) -> None:
        if self.outcome is not Outcome.ACKNOWLEDGED and self.offset is not None:
            raise ValueError("only an acknowledgement tells an offset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seek:
    """The consumer chose a position (assign, seek): what it returns next starts there."""

    consumer: str
    partition: Partition
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """What one poll returned of one partition, in order."""

    consumer: str
    partition: Partition
    records: tuple[tuple[int, Content], ...]


class Violation(Enum):
    LOST_WRITE = "lost write: acknowledged, readers went past its offset, nobody got it"
    UNSEEN_WRITE = "unseen write: acknowledged, and no reader ever came to it"
    DUPLICATE = "duplicate: one record at two offsets"
    INCONSISTENT_OFFSET = "inconsistent offset: one offset, two records"
    SKIPPED_POLL = "skipped poll: a reader jumped over a record that is there"
    NON_MONOTONIC_POLL = "non-monotonic poll: a reader went back without asking for it"
    NON_MONOTONIC_SEND = "non-monotonic send: a producer's later record got an earlier offset"
    ABORTED_READ = "aborted read: a record that was refused is visible"
    PHANTOM_READ = "phantom read: a record that nobody sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    violation: Violation
    partition: Partition
    detail: str

    def __str__(self) -> str:
        topic, number = self.partition
        return f"{self.violation.value} [{topic}/{number}] {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Sends in each producer's order, reads (seeks and polls) in each consumer's order."""

    sends: Sequence[Send]
    reads: Sequence[Seek | Poll]

    @property
    def polls(self) -> Iterator[Poll]:
        return (read for read in self.reads if isinstance(read, Poll))


def check(history: History) -> list[Finding]:
    """Every violation in the history; an empty list means that the log kept its promises."""
    return [
        *_unread_writes(history),
        *_duplicates(history),
        *_inconsistent_offsets(history),
        *_unearned_reads(history),
        *_disordered_sends(history),
        *_disordered_polls(history),
    ]


def _acknowledged(sends: Iterable[Send]) -> Iterator[tuple[Send, int]]:
    for send in sends:
        if send.outcome is Outcome.ACKNOWLEDGED and send.offset is not None:
            yield send, send.offset


def _unread_writes(history: History) -> Iterator[Finding]:
    seen: dict[Partition, set[Content]] = defaultdict(set)
    furthest: dict[Partition, int] = {}
    for poll in history.polls:
        for offset, content in poll.records:
            seen[poll.partition].add(content)
            furthest[poll.partition] = max(offset, furthest.get(poll.partition, -1))
    for send in history.sends:
        if send.outcome is not Outcome.ACKNOWLEDGED or send.content in seen[send.partition]:
            continue
        # An acknowledgement without an offset (acks=0 and 1 may give none) is lost as soon as anything was read.
        passed = (send.offset if send.offset is not None else 0) <= furthest.get(send.partition, -1)
        violation = Violation.LOST_WRITE if passed else Violation.UNSEEN_WRITE
        yield Finding(
            violation=violation,
            partition=send.partition,
            detail=f"{send.content!r} from {send.producer} at offset {send.offset}",
        )


def _duplicates(history: History) -> Iterator[Finding]:
    places: dict[Content, set[tuple[Partition, int]]] = defaultdict(set)
    for poll in history.polls:
        for offset, content in poll.records:
            places[content].add((poll.partition, offset))
    for content, found in places.items():
        if len(found) > 1:
            first, *others = sorted(found)
            detail = f"{content!r} at {first} and {', '.join(str(other) for other in others)}"
            yield Finding(violation=Violation.DUPLICATE, partition=first[0], detail=detail)


def _inconsistent_offsets(history: History) -> Iterator[Finding]:
    """An offset means one value forever, for whoever wrote it and for everybody who reads it."""
    contents: dict[tuple[Partition, int], dict[Content, str]] = defaultdict(dict)
    for send, offset in _acknowledged(history.sends):
        contents[send.partition, offset].setdefault(send.content, f"acknowledged to {send.producer}")
    for poll in history.polls:
        for offset, content in poll.records:
            contents[poll.partition, offset].setdefault(content, f"read by {poll.consumer}")
    for (partition, offset), versions in contents.items():
        if len(versions) > 1:
            detail = f"offset {offset}: " + ", ".join(f"{content!r} {who}" for content, who in versions.items())
            yield Finding(violation=Violation.INCONSISTENT_OFFSET, partition=partition, detail=detail)


def _unearned_reads(history: History) -> Iterator[Finding]:
    outcomes = {send.content: send.outcome for send in history.sends}
    reported: set[Content] = set()
    for poll in history.polls:
        for offset, content in poll.records:
            outcome = outcomes.get(content)
            if content in reported or outcome in (Outcome.ACKNOWLEDGED, Outcome.UNKNOWN):
                continue
            reported.add(content)
            yield Finding(
                violation=Violation.PHANTOM_READ if outcome is None else Violation.ABORTED_READ,
                partition=poll.partition,
                detail=f"{content!r} at offset {offset}, read by {poll.consumer}",
            )


def _disordered_sends(history: History) -> Iterator[Finding]:
    order: dict[tuple[str, Partition], list[tuple[int, Content]]] = defaultdict(list)
    for send, offset in _acknowledged(history.sends):
        order[send.producer, send.partition].append((offset, send.content))
    for (producer, partition), sent in order.items():
        for (before, first), (after, second) in pairwise(sent):
            if after <= before:
                detail = f"{producer} sent {first!r}, then {second!r}; they are at {before} and {after}"
                yield Finding(violation=Violation.NON_MONOTONIC_SEND, partition=partition, detail=detail)


def _disordered_polls(history: History) -> Iterator[Finding]:
    existing: dict[Partition, set[int]] = defaultdict(set)
    for send, offset in _acknowledged(history.sends):
        existing[send.partition].add(offset)
    for poll in history.polls:
        existing[poll.partition].update(offset for offset, _ in poll.records)
    expected: dict[tuple[str, Partition], int] = {}
    for read in history.reads:
        reader = (read.consumer, read.partition)
        if isinstance(read, Seek):
            expected[reader] = read.offset
            continue
        for offset, content in read.records:
            position = expected.get(reader, offset)
            if offset < position:
                detail = f"{read.consumer} was at {position} and got {content!r} at {offset}"
                yield Finding(violation=Violation.NON_MONOTONIC_POLL, partition=read.partition, detail=detail)
            # A gap alone is no fault (retention, control records): skipping what somebody knows to be there is.
            skipped = [gap for gap in range(position, offset) if gap in existing[read.partition]]
            if skipped:
                detail = f"{read.consumer} went from {position} to {offset} over {len(skipped)} records"
                yield Finding(violation=Violation.SKIPPED_POLL, partition=read.partition, detail=detail)
            expected[reader] = offset + 1
