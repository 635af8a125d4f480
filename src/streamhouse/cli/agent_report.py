"""What the `agent` commands show: the agents, and what a drain has left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamhouse.cli.console import count_of, print_line, print_note, print_table
from streamhouse.cli.record_format import show_timestamp
from streamhouse.cli.time_span import show_span

if TYPE_CHECKING:
    from streamhouse.wire.http.rest.cluster import AgentAnswer

_NAMED_PARTITIONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """An agent before and after it was told to give away what it leads; `waiting`: the partitions that it alone could
    lead."""

    before: AgentAnswer
    after: AgentAnswer
    waiting: Sequence[str]


def leaderships(agent: AgentAnswer) -> int:
    return agent.partitions_led + agent.shards_coordinated


def named(names: Sequence[str]) -> str:
    """The first few."""
    return ", ".join(names[:_NAMED_PARTITIONS]) + (", …" if len(names) > _NAMED_PARTITIONS else "")


def print_agents(agents: Sequence[AgentAnswer]) -> None:
    print_table(
        (
            "agent",
            "node",
            "zone",
            "group",
            "kafka address",
            "internal address",
            "partitions",
            "up since",
            "heartbeat",
            "state",
        ),
        [
            (
                agent.agent_id,
                agent.node_id,
                agent.zone or None,
                agent.agent_group,
                agent.kafka_address or None,
                agent.address or None,
                agent.partitions_led,
                show_timestamp(agent.started_at_ms),
                f"{show_span(agent.silent_ms)} ago",
                agent.state,
            )
            for agent in agents
        ],
    )


def agent_as_json(agent: AgentAnswer) -> dict[str, object]:
    return {
        "agent_id": agent.agent_id,
        "node_id": agent.node_id,
        "zone": agent.zone,
        "agent_group": agent.agent_group,
        "kafka_address": agent.kafka_address,
        "address": agent.address,
        "partitions": agent.partitions_led,
        "coordinator_shards": agent.shards_coordinated,
        "started_at_ms": agent.started_at_ms,
        "silent_ms": agent.silent_ms,
        "state": agent.state,
    }


def drained_as_json(drained: Drained) -> dict[str, object]:
    return {
        "agent_id": drained.after.agent_id,
        "partitions_before": drained.before.partitions_led,
        "partitions_left": drained.after.partitions_led,
        "partitions_waiting": len(drained.waiting),
    }


def print_drained(drained: Drained) -> None:
    agent_id, led, left = drained.after.agent_id, drained.before.partitions_led, drained.after.partitions_led
    if leaderships(drained.after):
        print_line(f"agent {agent_id} is draining; it leads {count_of(left, 'partition')} of {led} still")
    else:
        print_line(
            f"agent {agent_id} leads nothing any more, of {count_of(led, 'partition')} before; it can be stopped"
        )
    if drained.waiting:
        print_note(
            f"{count_of(len(drained.waiting), 'partition')} without a leader: agent {agent_id} alone can lead them,"
            " whose disk may hold acknowledged records; start it, or see `streamhouse partition elect --help`"
        )
