"""Who may change a partition, and which commits move it: decided on what a transaction read under its locks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from streamhouse.metadata.store import SegmentCommit
from streamhouse.model.errors import Fenced, InvalidInput, StaleEpoch
from streamhouse.model.names import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class LedPartition:
    """A partition and its lease, as they are now; without a live lease nobody leads it. `next_offset` is where its
    segments end, `durable_end` where its WAL objects do, if that is further; `generation` is that of the newest plan to
    replace segments."""

    log_start_offset: int
    next_offset: int
    durable_end: int
    leader_agent_id: str | None
    epoch: int | None
    lease_is_live: bool
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`answers` in the order of the commits; `accepted` are those to be written now."""

    answers: list[Exception | None]
    accepted: list[SegmentCommit]

    def final_commits(self) -> list[SegmentCommit]:
        """The last accepted of each partition: the one whose end and producer state the partition has now."""
        return list({commit.partition: commit for commit in self.accepted}.values())


def is_leader(led: LedPartition | None, agent_id: str, epoch: int) -> bool:
    """An expired lease is nobody's, also while nobody else has taken it."""
    return led is not None and led.lease_is_live and led.leader_agent_id == agent_id and led.epoch == epoch


def leadership_problem(
    led: LedPartition | None, partition: TopicPartition, agent_id: str, epoch: int
) -> StaleEpoch | None:
    """Why this agent may not change the partition at this epoch; None if it may."""
    if is_leader(led, agent_id, epoch):
        return None
    if led is None:
        return StaleEpoch(f"partition {partition} is gone")
    leader = f"{led.leader_agent_id!r} at epoch {led.epoch}" if led.lease_is_live else "nobody"
    return StaleEpoch(f"{agent_id!r} at epoch {epoch} does not lead {partition}; {leader} does")


def require_leader(led: LedPartition | None, partition: TopicPartition, agent_id: str, epoch: int) -> LedPartition:
    problem = leadership_problem(led, partition, agent_id, epoch)
    if problem is not None:
        raise problem
    assert led is not None
    return led


def require_no_leader(led: LedPartition, partition: TopicPartition) -> None:
    if led.lease_is_live:
        raise Fenced(f"{led.leader_agent_id!r} leads {partition} at epoch {led.epoch}", hint="stop that agent first")


def require_forward(led: LedPartition, partition: TopicPartition, log_start_offset: int) -> None:
    if not led.log_start_offset <= log_start_offset <= led.next_offset:
        raise InvalidInput(
            f"the log of {partition} cannot start at {log_start_offset}: "
            f"it starts at {led.log_start_offset} and is committed up to {led.next_offset}"
        )


def judge_commits(
    commits: Sequence[SegmentCommit],
    partitions: Mapping[TopicPartition, LedPartition],
    registered: Collection[UUID],
) -> Verdict:
    """Each commit on its own, but in order: several of one partition follow one another."""
    seen = set(registered)
    next_offsets = {partition: led.next_offset for partition, led in partitions.items()}
    verdict = Verdict(answers=[], accepted=[])
    for commit in commits:
        if commit.commit_id in seen:
            # An earlier try whose answer was lost. It stands, whoever leads by now.
            verdict.answers.append(None)
            continue
        problem = _commit_problem(commit, partitions.get(commit.partition), next_offsets)
        verdict.answers.append(problem)
        if problem is None:
            seen.add(commit.commit_id)
            next_offsets[commit.partition] = commit.segment.end_offset
            verdict.accepted.append(commit)
    return verdict


def _commit_problem(
    commit: SegmentCommit, led: LedPartition | None, next_offsets: Mapping[TopicPartition, int]
) -> StaleEpoch | None:
    problem = leadership_problem(led, commit.partition, commit.agent_id, commit.epoch)
    if problem is None and commit.segment.base_offset != next_offsets[commit.partition]:
        return StaleEpoch(
            f"the next offset of {commit.partition} is {next_offsets[commit.partition]}, "
            f"so a segment cannot start at {commit.segment.base_offset}"
        )
    return problem
