"""What a cluster of agents asks of the metadata store: who is there, who leads what, and who takes over from whom."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol
from uuid import UUID

from streamhouse.core.placement.assignment import Candidate
from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.core.placement.transfer import TransferState
from streamhouse.model.names import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInfo:
    """What an agent says of itself. `address` is for other nodes (internal gRPC), `kafka_address` for clients;
    `durability` is that of topics which say none themselves, where it leads them ("" if it did not say)."""

    agent_id: str
    address: str
    kafka_address: str
    zone: str
    agent_group: str
    durability: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """A registered agent. `silent_ms`: how long ago its last heartbeat was, by the database's clock. `is_found_dead`:
    another agent took over a lease that it had let run out in silence, and there was no heartbeat since.
    `store_access`: what it says of its way to the object store."""

    info: AgentInfo
    node_id: int
    started_at_ms: int
    silent_ms: int
    is_draining: bool
    is_found_dead: bool = False
    store_access: StoreAccess = StoreAccess.USUAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where one partition is. `agent_id` holds or last held the lease ("" if nobody ever did).

    `lease_left_ms`: time until the lease runs out by the database's clock; 0 or less when it is nobody's: one that ran
    out did so that long ago, one that was released has expired since 1970.
    `wal_agent_id`: the agent whose own disk may hold acknowledged records of it, "" if none; no other may lead it.
    `owner`: the agent that was chosen to lead it, "" if none was yet; `former_owner`: the one that was chosen before,
    if it may get it again.
    `pinned_to`: the agent that an operator moved it to, which stands over the owner; "" if none."""

    topic: str
    partition: TopicPartition
    agent_id: str
    epoch: int
    lease_left_ms: int
    wal_agent_id: str
    pinned_to: str
    log_start_offset: int
    committed_end: int
    durable_end: int
    owner: str = ""
    former_owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerDecision:
    """The last choice of owners: how many there were by then, and among which agents it chose."""

    version: int
    agents: frozenset[Candidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardPlacement:
    """Where one shard of group coordinators is, as a `Placement` says it. `claimed_by`: the agent that asks whoever
    holds it for it, "" if none does, or none any more."""

    shard: int
    agent_id: str
    epoch: int
    lease_left_ms: int
    claimed_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One hand-over of one partition (`core.placement.transfer` has its states). `left_ms`: how long it may still take,
    as of the moment at which it was looked up; nothing if it is over."""

    transfer_id: UUID
    topic: str
    partition: TopicPartition
    from_agent_id: str
    to_agent_id: str
    state: TransferState
    reason: str
    created_at_ms: int
    left_ms: int = field(default=0, compare=False)


ALL_TRANSFERS = 2**31 - 1
"""For who must hear of every one that is under way, of which there is one of a partition at most."""


class Change(Enum):
    """What somebody, in any process, has changed."""

    AGENTS = "agents"
    TOPICS = "topics"
    LEASES = "leases"
    TRANSFERS = "transfers"
    CONFIGS = "configs"


class AgentStore(Protocol):
    async def register_agent(self, info: AgentInfo, node_id: int) -> AgentRow:
        """Insert or replace, alive from now, not draining. Node id 0 asks for one: the id that this agent had before,
        else a new one that no agent ever had. AlreadyExists if another agent has the node id that was asked for."""

    async def heartbeat_agent(self, agent_id: str) -> bool:
        """Alive now; False if it is not registered (any more)."""

    async def list_agents(self) -> list[AgentRow]:
        """All registered ones, dead or alive, by agent id."""

    async def drain_agent(self, agent_id: str) -> None:
        """It is to lead nothing any more, until it registers again; NotFound if it is not registered."""

    async def say_store_access(self, agent_id: str, access: StoreAccess) -> None:
        """Until it says otherwise or registers again; NotFound if it is not registered."""

    async def say_durability(self, agent_id: str, durability: str) -> None:
        """The same for the durability of its info."""

    async def deregister_agent(self, agent_id: str) -> None:
        """Remove it; its node id stays its own. Nothing happens if it is not there."""


class PlacementStore(Protocol):
    async def list_placements(self) -> list[Placement]:
        """Every partition of every topic, by topic and number."""

    async def list_shard_placements(self) -> list[ShardPlacement]:
        """Every coordinator shard, by number."""

    async def load_owner_decision(self) -> OwnerDecision:
        """Version 0, among nobody, if none was made yet."""

    async def decide_owners(
        self, version: int, agents: Collection[Candidate], owners: Mapping[TopicPartition, str]
    ) -> bool:
        """Note these owners, chosen among these agents, as the decision that follows `version`; partitions that are
        gone are passed over. False, and nothing is changed, if that is not the last one (any more): somebody else has
        decided, or an earlier try has, whose answer was lost."""

    async def pin_partition(self, partition: TopicPartition, agent_id: str) -> None:
        """An operator's choice, which stands over the owner while that agent is alive; "" takes it back. NotFound if
        the partition is gone."""

    async def elect_unclean(self, partition: TopicPartition) -> str:
        """Give up what `wal_agent_id` may hold, so that others may lead; returns that agent's id, "" if there was none.
        NotFound if the partition is gone; Fenced, and nothing changes, while a lease of it is live."""


class TransferStore(Protocol):
    async def begin_transfers(
        self, from_agent_id: str, moves: Sequence[tuple[TopicPartition, str]], timeout_ms: int
    ) -> list[Transfer | None]:
        """Pending ones, in the order asked; None where `from` does not hold a live lease, the partition is gone, or one
        is under way already. A transfer that is not completed within `timeout_ms` fails."""

    async def list_transfers(self, agent_id: str | None = None, limit: int = 1000) -> list[Transfer]:
        """Those under way, from or to the agent, oldest first; None: all there are, finished ones too, newest first.
        What is past its time is stored as failed before anything is returned."""

    async def list_unresolved_transfers(self, within_ms: int) -> list[Transfer]:
        """Those under way, and those that failed since their partition was last handed over, newest first; none that
        began longer ago than that. However many others there are, these are all."""

    async def accept_transfers(self, agent_id: str, transfer_ids: Sequence[UUID]) -> None:
        """By `to`; those that are not pending, or not to it, are passed over."""

    async def reject_transfers(self, agent_id: str, transfer_ids: Sequence[UUID], reason: str) -> None:
        """By `to`, or withdrawn by `from`; those that are finished, or not its own, are passed over."""

    async def complete_transfers(
        self, agent_id: str, completions: Sequence[tuple[UUID, int, int]], ttl_ms: int
    ) -> list[Exception | None]:
        """By `from`: (transfer id, epoch of its lease, end offset), all in one transaction, each judged on its own.

        The lease goes to `to`, at once, with the next epoch and a full time to live, and no agent's own disk is needed
        any more (`wal_agent_id` becomes ""). None when done, now or by an earlier try; else StaleEpoch: the lease is
        not `from`'s at that epoch or not live, the transfer is not accepted or past its time, or the partition's
        durable end is not the end offset given."""


class ChangeFeed(Protocol):
    def subscribe(self, changed: Callable[[Change], None]) -> Callable[[], None]:
        """Call back, on the event loop, soon after a change that anybody made was committed; the returned function ends
        it. A hint and no promise: changes may be reported twice, and after the connection was lost all are reported.
        Heartbeats and renewals are no changes."""


class ClusterStore(AgentStore, PlacementStore, TransferStore, ChangeFeed, Protocol):
    """All that an agent needs to find its place."""
