"""`streamhouse partition …`: see who leads which partition, move one, give up a dead agent's records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from streamhouse.cli.completing import complete_agents, complete_topics
from streamhouse.cli.console import print_json, print_line
from streamhouse.cli.escape import escape_text
from streamhouse.cli.options import as_agent_id, as_duration_ms, as_topic_name, json_option
from streamhouse.cli.partition_report import placement_as_json, print_placements
from streamhouse.cli.where import database_of, database_options, place_of, place_options
from streamhouse.cluster.orders import waiting_note
from streamhouse.cluster.state import leader_of, name_of, read_cluster_state, waits_for
from streamhouse.model.errors import InvalidInput

if TYPE_CHECKING:
    from streamhouse.metadata.cluster import Placement
    from streamhouse.wire.http.rest.cluster import AgentAnswer, PlacementAnswer

_place_options = place_options("data_dir", "metadata")


@click.group(short_help="List, move and elect the leaders of partitions.")
def partition() -> None:
    """See who leads which partition, move one to another agent, give up the records of an agent that is lost.

    \b
    Examples:
      streamhouse partition list orders
      streamhouse partition move orders 3 --to a2
      streamhouse partition elect orders 3 --unclean --metadata postgresql://user@host/db
    """


@partition.command("list", short_help="List partitions with their leaders and offsets.")
@click.argument("topic", required=False, callback=as_topic_name, shell_complete=complete_topics)
@json_option
@_place_options
def list_partitions(
    topic: str | None, as_json: bool, bootstrap: str | None, config_file: str | None, **given: str | bool | None
) -> None:
    """List the partitions, of all topics or of one: leader, epoch, offsets, and how long the leader's lease lasts if it
    is not renewed.

    The high watermark is the end of what the metadata store knows to be durable; the committed end is how far segments
    reach. With local durability, records above both are on the leader's disk until they are uploaded.

    \b
    Examples:
      streamhouse partition list
      streamhouse partition list orders --bootstrap a1.example.com:9092 --json
      streamhouse partition list --metadata postgresql://user@host/db
    """
    from streamhouse.cli.cluster_source import ClusterSource, placements_of, with_cluster

    async def work(source: ClusterSource) -> tuple[Sequence[PlacementAnswer], Sequence[AgentAnswer]]:
        placements = await (source.placements() if topic is None else placements_of(source, topic))
        return placements, await source.agents()

    placements, agents = with_cluster(place_of(bootstrap, config_file, given), work)
    live = {agent.agent_id for agent in agents if agent.state == "live"}
    if as_json:
        print_json([placement_as_json(placement, live) for placement in placements])
    elif placements:
        print_placements(placements, live)
    else:
        print_line("no partitions yet; `streamhouse topic create NAME` makes some")


@partition.command(short_help="Move a partition to another agent.")
@click.argument("topic", callback=as_topic_name, shell_complete=complete_topics)
@click.argument("number", metavar="PARTITION", type=click.IntRange(min=0))
@click.option(
    "--to",
    "agent_id",
    metavar="ID",
    callback=as_agent_id,
    shell_complete=complete_agents,
    help="The agent that is to lead it from now on, whoever owns it.",
)
@click.option("--unpin", is_flag=True, help="Give it back to its owner.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until the agent leads it.")
@click.option(
    "--timeout", "timeout_ms", default="1m", show_default=True, callback=as_duration_ms, help="How long to wait."
)
@json_option
@_place_options
def move(
    topic: str,
    number: int,
    agent_id: str | None,
    unpin: bool,
    wait: bool,
    timeout_ms: int,
    as_json: bool,
    bootstrap: str | None,
    config_file: str | None,
    **given: str | bool | None,
) -> None:
    """Move a partition to another agent and keep it there while that agent is alive; --unpin undoes that.

    Its leader flushes it and hands it over, so that it is led all the time and no record waits for a lease to run out.

    \b
    Examples:
      streamhouse partition move orders 3 --to a2
      streamhouse partition move orders 3 --to a2 --bootstrap a1.example.com:9092
      streamhouse partition move orders 3 --unpin
    """
    if (agent_id is not None) == unpin:
        raise click.UsageError("give either --to ID or --unpin")
    from streamhouse.cli.cluster_source import with_cluster
    from streamhouse.cli.partition_move import move_partition

    wait_ms = timeout_ms if wait else None
    place = place_of(bootstrap, config_file, given)
    placement = with_cluster(place, lambda source: move_partition(source, topic, number, agent_id, wait_ms))
    if as_json:
        print_json({"topic": topic, "partition": number, "pinned_to": agent_id, "leader": placement.leader})
    elif agent_id is None:
        print_line(f"{topic}/{number} is its owner's again; agents place it at their next rebalance")
    elif placement.leader == agent_id:
        print_line(f"{topic}/{number} is led by {agent_id}, in epoch {placement.epoch}, and pinned to it")
    else:
        print_line(
            f"{topic}/{number} is pinned to {agent_id}; {placement.leader or 'nobody'} leads it until it is moved"
        )


@partition.command(short_help="Let others lead a partition whose agent is lost.")
@click.argument("topic", callback=as_topic_name, shell_complete=complete_topics)
@click.argument("number", metavar="PARTITION", type=click.IntRange(min=0))
@click.option("--unclean", is_flag=True, help="Give up records that were acknowledged and that nobody else has.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@database_options("data_dir", "metadata")
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
    its disk is gone, --unclean gives them up, and the partition goes on from what is in the object store. This is for
    who has the database: no node does it.

    \b
    Examples:
      streamhouse partition elect orders 3 --unclean --metadata postgresql://user@host/db
      streamhouse partition elect orders 3 --unclean --yes --data-dir ./streamhouse-data
    """
    from streamhouse.cli.metadata_store import with_metadata

    settings = database_of(config_file, given)
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
