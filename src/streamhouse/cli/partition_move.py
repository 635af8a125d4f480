"""A move of one partition to another agent, and the wait until that one leads it."""

from __future__ import annotations

from streamhouse.cli.cluster_source import ClusterSource, placement_at
from streamhouse.cli.console import print_note
from streamhouse.cli.polling import becomes_true
from streamhouse.model.errors import NotFound, Unavailable
from streamhouse.model.units import show_duration
from streamhouse.wire.http.rest.cluster import PlacementAnswer


async def move_partition(
    source: ClusterSource, topic: str, partition: int, agent_id: str | None, wait_ms: int | None
) -> PlacementAnswer:
    """Where it is then. No agent: it is its owner's again. No time: without waiting for it."""
    await placement_at(source, topic, partition)  # says more than the order does of a name that there is none of
    await source.move(topic, partition, agent_id)
    if agent_id is not None and wait_ms is not None:
        await _wait_until_led(source, topic, partition, agent_id, wait_ms)
    return await placement_at(source, topic, partition)


async def _wait_until_led(source: ClusterSource, topic: str, partition: int, agent_id: str, wait_ms: int) -> None:
    name = f"{topic}/{partition}"
    leader: str | None = None
    told: str | None = None

    async def is_led() -> bool:
        nonlocal leader, told
        try:
            now = await placement_at(source, topic, partition)
        except NotFound:
            raise NotFound(f"{name} was deleted meanwhile") from None
        leader = now.leader
        telling = f"{name}: {leader or 'nobody'} leads in epoch {now.epoch}, waiting for {agent_id}"
        if leader != agent_id and telling != told:
            print_note(telling)
            told = telling
        return leader == agent_id

    if await becomes_true(is_led, timeout_ms=wait_ms):
        return
    raise Unavailable(
        f"{leader or 'nobody'} still leads {name} after {show_duration(wait_ms)}"
        f"{await _last_transfer(source, topic, partition)}",
        hint=f"it stays pinned to {agent_id} and moves when it can; --unpin undoes that",
    )


async def _last_transfer(source: ClusterSource, topic: str, partition: int) -> str:
    for transfer in await source.transfers():
        if (transfer.topic, transfer.partition) == (topic, partition):
            reason = f": {transfer.reason}" if transfer.reason else ""
            return f"; the last transfer, to {transfer.to_agent_id}, is {transfer.state}{reason}"
    return "; no transfer of it was begun"
