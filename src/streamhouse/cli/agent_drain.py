"""A drain of one agent, and the wait until it leads nothing."""

from __future__ import annotations

from collections.abc import Sequence

from streamhouse.cli.agent_report import Drained, leaderships, named
from streamhouse.cli.cluster_source import ClusterSource
from streamhouse.cli.console import count_of, print_note, progress_bar
from streamhouse.cli.polling import becomes_true
from streamhouse.model.errors import NotFound, Unavailable
from streamhouse.model.units import show_duration
from streamhouse.wire.http.rest.cluster import AgentAnswer


async def drain_agent(source: ClusterSource, agent_id: str, wait_ms: int | None) -> Drained:
    """None: without waiting for it."""
    agents = await source.agents()
    before = _agent(agents, agent_id)
    if leaderships(before) and not any(each.state == "live" for each in agents if each is not before):
        print_note("no other agent is alive: what it leads has nowhere to go until one is started")
    await source.drain(agent_id)
    if wait_ms is not None:
        await _wait_until_drained(source, before, wait_ms)
    after = _agent(await source.agents(), agent_id)
    waiting = [
        f"{placement.topic}/{placement.partition}"
        for placement in await source.placements()
        if placement.waits_for == agent_id
    ]
    return Drained(before=before, after=after, waiting=waiting)


async def _wait_until_drained(source: ClusterSource, before: AgentAnswer, wait_ms: int) -> None:
    agent_id = before.agent_id
    left = leaderships(before)
    with progress_bar(f"draining {agent_id}", left) as bar:

        async def is_drained() -> bool:
            nonlocal left
            now_left = leaderships(_agent(await source.agents(), agent_id))
            bar.advance(left - now_left)
            left = now_left
            return left == 0

        if await becomes_true(is_drained, timeout_ms=wait_ms):
            return
    names = [f"{each.topic}/{each.partition}" for each in await source.placements() if each.leader == agent_id]
    what = (
        f"{count_of(len(names), 'partition')} ({named(names)})"
        if names
        else f"{count_of(left, 'shard')} of group coordinators"
    )
    raise Unavailable(
        f"agent {agent_id!r} still leads {what} after {show_duration(wait_ms)}",
        hint="it goes on draining; `streamhouse partition list` shows what is where",
    )


def _agent(agents: Sequence[AgentAnswer], agent_id: str) -> AgentAnswer:
    for agent in agents:
        if agent.agent_id == agent_id:
            return agent
    raise NotFound(f"there is no agent {agent_id!r}", hint="`streamhouse agent list` shows those that there are")
