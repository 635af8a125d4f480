"""Which agents count as alive, from their heartbeats and from the leases that they let run out.

All times are differences by the database's clock, so every agent that reads the same rows gives the same answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

_RELEASED_MS = 10 * 365 * 24 * 3_600_000
"""A released lease is stored as expired at time 0, decades ago; one that ran out did so since there are agents."""


class AgentAddress(Protocol):
    @property
    def agent_id(self) -> str: ...
    @property
    def kafka_address(self) -> str: ...


class RegisteredAgent(Protocol):
    """`silent_ms`: how long ago its last heartbeat was. `is_found_dead`: there was none since another took over a lease
    that it had let run out."""

    @property
    def info(self) -> AgentAddress: ...
    @property
    def node_id(self) -> int: ...
    @property
    def silent_ms(self) -> int: ...
    @property
    def is_draining(self) -> bool: ...
    @property
    def is_found_dead(self) -> bool: ...


class LastLease(Protocol):
    """The lease of a partition or a shard: `agent_id` holds or last held it, `lease_left_ms` until it runs out."""

    @property
    def agent_id(self) -> str: ...
    @property
    def lease_left_ms(self) -> int: ...


AgentT = TypeVar("AgentT", bound=RegisteredAgent)


def ran_out(lease_left_ms: int) -> bool:
    """Whether the lease's holder neither renewed nor released it."""
    return -_RELEASED_MS < lease_left_ms <= 0


def is_somewhere(agent: RegisteredAgent) -> bool:
    """Whether there is a place to send clients to: a row that somebody made by hand says none."""
    return agent.node_id > 0 and agent.info.kafka_address != ""


def is_heard_of(agent: RegisteredAgent, *, liveness_ms: int) -> bool:
    """Whether its heartbeats come, and clients can be sent to it."""
    return is_somewhere(agent) and agent.silent_ms < liveness_ms and not agent.is_found_dead


def live_agents(agents: Iterable[AgentT], leases: Iterable[LastLease], *, liveness_ms: int) -> list[AgentT]:
    """Those that may lead, in the order given: heard of within `liveness_ms`, not draining, and not suspect.

    An agent that lets a lease run out has shown that it is gone, sooner than its heartbeat would; a later heartbeat
    clears it. Whoever takes over such a lease leaves a note of it, so that this holds also when no lease tells of it
    any more."""
    expired_ago_ms: dict[str, int] = {}
    for lease in leases:
        if ran_out(lease.lease_left_ms):
            ago_ms = -lease.lease_left_ms
            expired_ago_ms[lease.agent_id] = min(ago_ms, expired_ago_ms.get(lease.agent_id, ago_ms))
    return [
        agent
        for agent in agents
        if is_heard_of(agent, liveness_ms=liveness_ms)
        and not agent.is_draining
        and not _is_suspect(agent, expired_ago_ms.get(agent.info.agent_id))
    ]


def _is_suspect(agent: RegisteredAgent, expired_ago_ms: int | None) -> bool:
    return expired_ago_ms is not None and agent.silent_ms > expired_ago_ms


def next_expiry_ms(leases: Iterable[LastLease], *, me: str) -> int | None:
    """How long until the first live lease of another agent runs out, if it is not renewed; None if there is none."""
    return min(
        (lease.lease_left_ms for lease in leases if lease.lease_left_ms > 0 and lease.agent_id != me), default=None
    )
