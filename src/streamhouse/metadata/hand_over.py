"""Which hand-overs go on, and which are done: decided on what a transaction read under its locks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from streamhouse.core.placement.transfer import TransferEvent, TransferState, next_state
from streamhouse.metadata.checks import check_offset, check_text
from streamhouse.metadata.cluster import Transfer
from streamhouse.metadata.leadership import LedPartition, leadership_problem
from streamhouse.model.errors import InvalidInput, StaleEpoch
from streamhouse.model.names import TopicPartition

HISTORY_MS = 7 * 24 * 3_600_000
"""How long a transfer is kept after it began, so that there is something to look at and not ever more of it."""

TIMED_OUT = "it was not completed in time"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionVerdict:
    """`answers` in the order of the completions; `accepted` are the transfers to be completed now."""

    answers: list[Exception | None] = field(default_factory=list)
    accepted: list[Transfer] = field(default_factory=list)


def check_moves(from_agent_id: str, moves: Sequence[tuple[TopicPartition, str]], timeout_ms: int) -> None:
    check_text("agent id", from_agent_id)
    for partition, to_agent_id in moves:
        check_text("agent id", to_agent_id)
        if to_agent_id == from_agent_id:
            raise InvalidInput(f"{from_agent_id!r} cannot hand {partition} over to itself")
    if timeout_ms <= 0:
        raise InvalidInput(f"a transfer cannot be completed within {timeout_ms} ms")


def check_completions(completions: Sequence[tuple[UUID, int, int]]) -> None:
    for _, _, end_offset in completions:
        check_offset(end_offset)


def movable(transfers: Iterable[Transfer], agent_id: str, event: TransferEvent) -> list[UUID]:
    """Those that this agent's event moves on. Only `to` accepts; both sides may reject."""
    return [
        transfer.transfer_id
        for transfer in transfers
        if next_state(transfer.state, event) is not None
        and (agent_id == transfer.to_agent_id or (agent_id == transfer.from_agent_id and event is TransferEvent.REJECT))
    ]


def judge_completions(
    agent_id: str,
    completions: Sequence[tuple[UUID, int, int]],
    transfers: Mapping[UUID, Transfer],
    partitions: Mapping[TopicPartition, LedPartition],
) -> CompletionVerdict:
    """Each on its own. None is past its time here: what was is failed."""
    verdict = CompletionVerdict()
    done: set[UUID] = set()
    for transfer_id, epoch, end_offset in completions:
        transfer = transfers.get(transfer_id)
        if transfer is None or transfer.from_agent_id != agent_id:
            verdict.answers.append(StaleEpoch(f"{agent_id!r} has no transfer {transfer_id}"))
        elif transfer.state is TransferState.COMPLETED or transfer_id in done:
            # An earlier try whose answer was lost. It stands, whoever leads by now.
            verdict.answers.append(None)
        else:
            problem = _completion_problem(transfer, epoch, end_offset, partitions.get(transfer.partition))
            verdict.answers.append(problem)
            if problem is None:
                done.add(transfer_id)
                verdict.accepted.append(transfer)
    return verdict


def _completion_problem(transfer: Transfer, epoch: int, end_offset: int, led: LedPartition | None) -> StaleEpoch | None:
    if next_state(transfer.state, TransferEvent.COMPLETE) is None:
        return StaleEpoch(f"transfer {transfer.transfer_id} of {transfer.partition} is {transfer.state.value}")
    problem = leadership_problem(led, transfer.partition, transfer.from_agent_id, epoch)
    if problem is not None:
        return problem
    assert led is not None
    if led.durable_end != end_offset:
        return StaleEpoch(
            f"{transfer.partition} is durable up to {led.durable_end}, and cannot be handed over at {end_offset}"
        )
    return None
