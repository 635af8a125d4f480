"""One agent's part in handing partitions over: begins transfers of what another should lead, answers those that come to
it, and carries out those that were accepted. What fails is tried again later and later."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from streamhouse.core.placement.attempts import Attempts, Failing
from streamhouse.core.placement.transfer import TransferState
from streamhouse.metadata.cluster import ALL_TRANSFERS, Transfer, TransferStore
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.runtime.clock import Clock

_log = logging.getLogger(__name__)
TRANSFER_TIMEOUT_MS = 10_000
_UNFINISHED_MS = 1_000
_LONGEST_REASON = 500


class PartitionHost(Protocol):
    """What leads partitions here."""

    @property
    def held(self) -> Collection[TopicPartition]: ...

    @property
    def taken_up(self) -> Collection[TopicPartition]:
        """Those too whose leading has only to begin."""

    async def lead(self, wanted: Mapping[TopicPartition, Topic], handed_over: Mapping[TopicPartition, int]) -> None: ...

    async def hand_over(self, transfers: Sequence[Transfer], looked_up_at_ms: int) -> Mapping[TopicPartition, str]:
        """Within the time that each had left when it was looked up. Why, for those that are still led here."""

    async def let_go(self, partitions: Collection[TopicPartition]) -> None:
        """Give up what cannot be made durable here, as it is."""


class HandOvers:
    def __init__(
        self, agent_id: str, store: TransferStore, host: PartitionHost, clock: Clock, nudge: Callable[[str], None]
    ) -> None:
        self._agent_id = agent_id
        self._store = store
        self._host = host
        self._clock = clock
        self._nudge = nudge
        self._attempts: Attempts[TopicPartition] = Attempts()
        self._begun: dict[TopicPartition, Transfer] = {}
        self._accepted: set[TopicPartition] = set()
        self._is_any_due = False
        self.to_hand_over = 0
        """Partitions that this agent leads and another one should."""
        self.results: Counter[str] = Counter(done=0, failed=0)
        """How those of this agent's partitions ended."""

    @property
    def stuck(self) -> Mapping[TopicPartition, Failing]:
        """Those that fail again and again."""
        return self._attempts.stuck

    async def begin(self, wanted: Sequence[tuple[TopicPartition, str]]) -> None:
        """Let each of these be handed over to that agent, unless it is not yet time to try again."""
        now_ms = self._clock.monotonic_ms()
        self.to_hand_over = len(wanted)
        self._attempts.keep(dict(wanted))
        due = [(partition, to) for partition, to in wanted if self._attempts.may_try(partition, now_ms)]
        self._is_any_due = bool(due)
        if not due:
            return
        answers = await self._store.begin_transfers(self._agent_id, due, TRANSFER_TIMEOUT_MS)
        begun = [transfer for transfer in answers if transfer is not None]
        self._begun.update((transfer.partition, transfer) for transfer in begun)
        self._nudge_all(transfer.to_agent_id for transfer in begun)

    async def move(self, *, takes_part: bool) -> None:
        """Answer those that come to us, with yes if this agent `takes_part`; carry out those that were accepted."""
        looked_up_at_ms = self._clock.monotonic_ms()
        under_way = await self._store.list_transfers(self._agent_id, ALL_TRANSFERS)
        self._note_overdue({transfer.transfer_id for transfer in under_way})
        incoming = [
            transfer
            for transfer in under_way
            if transfer.to_agent_id == self._agent_id and transfer.state is TransferState.PENDING
        ]
        incoming_ids = [transfer.transfer_id for transfer in incoming]
        if incoming and takes_part:
            self._accepted.update(transfer.partition for transfer in incoming)
            await self._store.accept_transfers(self._agent_id, incoming_ids)
        elif incoming:
            await self._store.reject_transfers(self._agent_id, incoming_ids, "this agent is draining")
        accepted = [
            transfer
            for transfer in under_way
            if transfer.from_agent_id == self._agent_id and transfer.state is TransferState.ACCEPTED
        ]
        if accepted:
            await self._carry_out(accepted, looked_up_at_ms)

    async def _carry_out(self, accepted: Sequence[Transfer], looked_up_at_ms: int) -> None:
        refusals = await self._host.hand_over(accepted, looked_up_at_ms)
        self._nudge_all(transfer.to_agent_id for transfer in accepted if transfer.partition not in refusals)
        withdrawn: dict[str, list[UUID]] = defaultdict(list)
        for transfer in accepted:
            self._begun.pop(transfer.partition, None)
            reason = refusals.get(transfer.partition)
            if reason is None:
                self.results["done"] += 1
            else:
                self._note_failure(transfer, reason)
                withdrawn[reason[:_LONGEST_REASON]].append(transfer.transfer_id)
        for reason, transfer_ids in withdrawn.items():
            await self._store.reject_transfers(self._agent_id, transfer_ids, reason)

    def _note_overdue(self, under_way: Collection[UUID]) -> None:
        """Those that came to their end without us: who should have them refused, or said nothing."""
        ended = [transfer for transfer in self._begun.values() if transfer.transfer_id not in under_way]
        held = self._host.held if ended else ()
        for transfer in ended:
            del self._begun[transfer.partition]
            if transfer.partition in held:
                self._note_failure(transfer, f"{transfer.to_agent_id} did not accept it in time")

    def _note_failure(self, transfer: Transfer, reason: str) -> None:
        self.results["failed"] += 1
        self._attempts.failed(transfer.partition, transfer.to_agent_id, reason, self._clock.monotonic_ms())
        _log.warning(
            "%s/%d was not handed over to %s: %s",
            transfer.topic,
            transfer.partition.partition,
            transfer.to_agent_id,
            reason,
        )

    # --- what was accepted ---

    def take_up(self, partitions: Iterable[TopicPartition]) -> Collection[TopicPartition]:
        """Those of them that this process has said it takes. Each is told once: whatever comes of it, a second
        leadership is not to begin under the epoch that a transfer brought."""
        accepted = self._accepted.intersection(partitions)
        self._accepted -= accepted
        return accepted

    # --- when to look again ---

    def next_look_ms(self) -> float | None:
        """How long until there is something to do here, if nothing changes."""
        if self._is_any_due:
            return _UNFINISHED_MS
        return self._attempts.next_try_ms(self._clock.monotonic_ms())

    def _nudge_all(self, agent_ids: Iterable[str]) -> None:
        for agent_id in dict.fromkeys(agent_ids):
            self._nudge(agent_id)
