"""`streamhouse partition …`: see who leads which partition, move one, give up a dead agent's records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streamhouse.cli.console import print_json, print_line, print_note
from streamhouse.cli.escape import escape_text
from streamhouse.cli.options import as_duration_ms, json_option
from streamhouse.cli.partition_report import placement_as_json, print_placements, waiting_note
from streamhouse.cli.settings_options import effective_settings, settings_options
from streamhouse.cluster.state import (
    AgentState,
    ClusterState,
    leader_of,
    name_of,
    read_cluster_state,
    waits_for,
)
from streamhouse.model.errors import InvalidInput, NotFound, Unavailable
from streamhouse.model.units import show_duration

if TYPE_CHECKING:
    from streamhouse.metadata.cluster import Placement
    from streamhouse.metadata.store import MetadataStore

_metadata_options = settings_options("data_dir", "metadata")


@click.group(short_help="List, move and elect the leaders of partitions.")
def partition() -> None:
    """See who leads which partition, move one to another agent, give up the records of an agent that is lost.

    \b
    Examples:
      streamhouse partition list orders
      streamhouse partition move orders 3 --to a2
      streamhouse partition elect orders 3 --unclean
    """


@partition.command("list", short_help="List partitions with their leaders and offsets.")
@click.argument("topic", required=False)
@json_option
@_metadata_options
def list_partitions(topic: str | None, as_json: bool, config_file: str | None, **given: str | bool | None) -> None:
    """List the partitions, of all topics or of one: leader, epoch, offsets, and how long the leader's lease lasts if it
    is not renewed.

    The high watermark is the end of what the metadata store knows to be durable; the committed end is how far segments
    reach. With local durability, records above both are on the leader's disk until they are uploaded.

    \b
    Examples:
      streamhouse partition list
      streamhouse partition list orders --metadata postgresql://user@host/db --json
    """
    from streamhouse.cli.metadata_store import with_metadata

    settings = effective_settings(config_file, given).settings
    state = with_metadata(settings, lambda store: read_cluster_state(store, settings.liveness))
    placements = state.placements if topic is None else state.of_topic(topic)
    if as_json:
        print_json([placement_as_json(placement, state) for placement in placements])
    elif placements:
        print_placements(placements, state)
    else:
        print_line("no partitions yet; `streamhouse topic create NAME` makes some")


@partition.command(short_help="Move a partition to another agent.")
@click.argument("topic")
@click.argument("number", metavar="PARTITION", type=click.IntRange(min=0))
@click.option(
    "--to", "agent_id", metavar="ID", help="The agent that is to lead it from now on, whatever the ring says."
)
@click.option("--unpin", is_flag=True, help="Let the ring decide again.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until the agent leads it.")
@click.option(
    "--timeout", "timeout_ms", default="1m", show_default=True, callback=as_duration_ms, help="How long to wait."
)
@json_option
@_metadata_options
def move(
    topic: str,
    number: int,
    agent_id: str | None,
    unpin: bool,
    wait: bool,
    timeout_ms: int,
    as_json: bool,
    config_file: str | None,
    **given: str | bool | None,
) -> None:
    """Move a partition to another agent and keep it there while that agent is alive; --unpin undoes that.

    Its leader flushes it and hands it over, so that it is led all the time and no record waits for a lease to run out.

    \b
    Examples:
      streamhouse partition move orders 3 --to a2
      streamhouse partition move orders 3 --unpin
    """
    if (agent_id is not None) == unpin:
        raise click.UsageError("give either --to ID or --unpin")
    from streamhouse.cli.metadata_store import with_metadata

    settings = effective_settings(config_file, given).settings

    async def work(store: MetadataStore) -> Placement:
        state = await read_cluster_state(store, settings.liveness)
        placement = state.partition(topic, number)
        if agent_id is not None:
            _check_target(agent_id, placement, state)
        await store.pin_partition(placement.partition, agent_id or "")
        if agent_id is not None and wait:
            await _wait_until_led(store, placement, agent_id, timeout_ms)
        return (await read_cluster_state(store, settings.liveness)).partition(topic, number)

    placement = with_metadata(settings, work)
    leader = leader_of(placement)
    if as_json:
        print_json({"topic": topic, "partition": number, "pinned_to": agent_id, "leader": leader})
    elif agent_id is None:
        print_line(f"{name_of(placement)} is the ring's again; agents place it at their next rebalance")
    elif leader == agent_id:
        print_line(f"{name_of(placement)} is led by {agent_id}, in epoch {placement.epoch}, and pinned to it")
    else:
        print_line(f"{name_of(placement)} is pinned to {agent_id}; {leader or 'nobody'} leads it until it is moved")


@partition.command(short_help="Let others lead a partition whose agent is lost.")
@click.argument("topic")
@click.argument("number", metavar="PARTITION", type=click.IntRange(min=0))
@click.option("--unclean", is_flag=True, help="Give up records that were acknowledged and that nobody else has.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@_metadata_options
def elect(
    topic: str,
    number: int,
    unclean: bool,
    yes: bool,
    as_json: bool,
    config_file: str | None,
    **given: str | bool | None,
) -> None:
    """Let other agents lead a partition that waits for its dead agent, whose own disk may hold acknowledged records.

    With local durability, those records are nowhere else: start that agent again if you can, and nothing is lost. If
    its disk is gone, --unclean gives them up, and the partition goes on from what is in the object store.

    \b
    Examples:
      streamhouse partition elect orders 3 --unclean
      streamhouse partition elect orders 3 --unclean --yes
    """
    from streamhouse.cli.metadata_store import with_metadata

    settings = effective_settings(config_file, given).settings
    state = with_metadata(settings, lambda store: read_cluster_state(store, settings.liveness))
    placement = state.partition(topic, number)
    lost = _lost_agent(placement)
    if lost is not None:
        _ask_for_election(placement, lost, unclean=unclean, yes=yes)
        lost = with_metadata(settings, lambda store: store.elect_unclean(placement.partition))
    if as_json:
        print_json({"topic": topic, "partition": number, "given_up_of": lost or None, "from": placement.durable_end})
    elif lost:
        print_line(
            f"gave up what agent {lost} may hold of {name_of(placement)} from offset {placement.durable_end} on;"
            " the next rebalance gives it a leader"
        )
    else:
        print_line(f"{name_of(placement)} waits for no agent: there is nothing to give up, and any agent may lead it")


def _check_target(agent_id: str, placement: Placement, state: ClusterState) -> None:
    agent_state = state.state_of(state.agent(agent_id))
    if agent_state is AgentState.SILENT:
        raise InvalidInput(f"agent {agent_id!r} is not alive", hint="`streamhouse agent list` shows which are")
    if agent_state is AgentState.DRAINING:
        raise InvalidInput(f"agent {agent_id!r} is draining", hint="start it again to make it take part")
    missing = waits_for(placement)
    if missing is not None and missing != agent_id:
        raise InvalidInput(
            f"{name_of(placement)} cannot be moved: it {waiting_note(missing)}",
            hint=f"start agent {missing}, or see `streamhouse partition elect --help`",
        )


def _lost_agent(placement: Placement) -> str | None:
    leader = leader_of(placement)
    if leader is not None:
        raise InvalidInput(f"{name_of(placement)} is led by {leader}", hint="`streamhouse partition move` moves it")
    return waits_for(placement)


def _ask_for_election(placement: Placement, lost: str, *, unclean: bool, yes: bool) -> None:
    if not unclean:
        raise InvalidInput(
            f"{name_of(placement)} {waiting_note(lost)} from offset {placement.durable_end} on",
            hint="start that agent and nothing is lost; --unclean gives these records up",
        )
    if not yes:
        click.confirm(
            f"Give up the acknowledged records of {escape_text(name_of(placement))} from offset"
            f" {placement.durable_end} on that agent {escape_text(lost)} may hold?",
            abort=True,
            err=True,
        )


async def _wait_until_led(store: MetadataStore, placement: Placement, agent_id: str, timeout_ms: int) -> None:
    from streamhouse.cli.polling import becomes_true

    name = name_of(placement)
    now: Placement | None = None
    told: str | None = None

    async def is_led() -> bool:
        nonlocal now, told
        found = [each for each in await store.list_placements() if each.partition == placement.partition]
        if not found:
            raise NotFound(f"{name} was deleted meanwhile")
        now = found[0]
        leader = leader_of(now)
        telling = f"{name}: {leader or 'nobody'} leads in epoch {now.epoch}, waiting for {agent_id}"
        if leader != agent_id and telling != told:
            print_note(telling)
            told = telling
        return leader == agent_id

    if await becomes_true(is_led, timeout_ms=timeout_ms):
        return
    assert now is not None, "it was looked at"
    raise Unavailable(
        f"{leader_of(now) or 'nobody'} still leads {name} after {show_duration(timeout_ms)}"
        f"{await _last_transfer(store, placement)}",
        hint=f"it stays pinned to {agent_id} and moves when it can; --unpin undoes that",
    )


async def _last_transfer(store: MetadataStore, placement: Placement) -> str:
    for transfer in await store.list_transfers():
        if transfer.partition == placement.partition:
            reason = f": {transfer.reason}" if transfer.reason else ""
            return f"; the last transfer, to {transfer.to_agent_id}, is {transfer.state.value}{reason}"
    return "; no transfer of it was begun"
