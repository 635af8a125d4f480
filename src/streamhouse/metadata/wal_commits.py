"""Which ranges of WAL objects become durable: decided on what a transaction read under its locks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from uuid import UUID

from streamhouse.metadata.checks import check_offset, check_size, check_text
from streamhouse.metadata.leadership import LedPartition, leadership_problem
from streamhouse.metadata.wal_objects import WalCommit, WalRange
from streamhouse.model.errors import InvalidInput, StaleEpoch
from streamhouse.model.names import TopicPartition

RangeKey: TypeAlias = tuple[TopicPartition, int]
"""Partition and base offset: among the ranges of one object, and of all that are stored, one has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalVerdict:
    """`answers` in the order of the commits and of their ranges; `accepted` are the objects to be stored now, with the
    ranges of them that count; `durable_ends` is where the partitions of those end now."""

    answers: list[list[Exception | None]] = field(default_factory=list)
    accepted: list[WalCommit] = field(default_factory=list)
    durable_ends: dict[TopicPartition, int] = field(default_factory=dict)


def check_wal_commits(commits: Sequence[WalCommit]) -> None:
    for commit in commits:
        check_text("object key", commit.object_key)
        check_text("agent id", commit.agent_id)
        check_size(commit.size_bytes)
        for wal_range in commit.ranges:
            _check_range(wal_range, commit)


def judge_wal_commits(
    commits: Sequence[WalCommit],
    partitions: Mapping[TopicPartition, LedPartition],
    registered: Mapping[UUID, Collection[RangeKey]],
) -> WalVerdict:
    """Each range on its own, but in order: those of one partition follow one another. `registered`: what was accepted
    of each commit that is stored already."""
    verdict = WalVerdict()
    known = {commit_id: frozenset(keys) for commit_id, keys in registered.items()}
    for commit in commits:
        stored = known.get(commit.commit_id)
        if stored is not None:
            # An earlier try whose answer was lost. It stands, whoever leads by now; and so does what it was refused.
            verdict.answers.append([_repeat_problem(wal_range, stored) for wal_range in commit.ranges])
            continue
        answers = [_judge(wal_range, commit.agent_id, partitions, verdict) for wal_range in commit.ranges]
        verdict.answers.append(answers)
        accepted = tuple(
            wal_range for wal_range, problem in zip(commit.ranges, answers, strict=True) if problem is None
        )
        if accepted:
            known[commit.commit_id] = frozenset(_key(wal_range) for wal_range in accepted)
            verdict.accepted.append(replace(commit, ranges=accepted))
    return verdict


def _judge(
    wal_range: WalRange, agent_id: str, partitions: Mapping[TopicPartition, LedPartition], verdict: WalVerdict
) -> Exception | None:
    partition = wal_range.partition
    led = partitions.get(partition)
    problem = leadership_problem(led, partition, agent_id, wal_range.epoch)
    if problem is not None:
        return problem
    assert led is not None
    durable_end = verdict.durable_ends.get(partition, led.durable_end)
    if wal_range.base_offset != durable_end:
        return StaleEpoch(
            f"{partition} is durable up to {durable_end}, so a WAL range cannot start at {wal_range.base_offset}"
        )
    verdict.durable_ends[partition] = wal_range.end_offset
    return None


def _repeat_problem(wal_range: WalRange, stored: Collection[RangeKey]) -> Exception | None:
    if _key(wal_range) in stored:
        return None
    return StaleEpoch(
        f"the range of {wal_range.partition} at {wal_range.base_offset} was refused, or its topic is gone"
    )


def _check_range(wal_range: WalRange, commit: WalCommit) -> None:
    check_offset(wal_range.base_offset)
    check_offset(wal_range.end_offset)
    check_size(wal_range.position)
    check_size(wal_range.size_bytes)
    if wal_range.base_offset >= wal_range.end_offset or wal_range.object_key != commit.object_key:
        raise InvalidInput(
            f"range [{wal_range.base_offset}, {wal_range.end_offset}) of {wal_range.partition} in "
            f"{wal_range.object_key[:100]!r} cannot be committed with object {commit.object_key[:100]!r}"
        )


def _key(wal_range: WalRange) -> RangeKey:
    return wal_range.partition, wal_range.base_offset
