"""`streamhouse agent …`: run an agent, see which there are, take one out of service, forget one that is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streamhouse.cli.agent_report import agent_as_json, drained_as_json, named, print_agents, print_drained
from streamhouse.cli.completing import complete_agents
from streamhouse.cli.console import announce, count_of, print_json, print_line
from streamhouse.cli.options import as_agent_id, as_duration_ms, json_option
from streamhouse.cli.settings_options import effective_settings, settings_options
from streamhouse.cli.where import database_of, database_options, place_of, place_options
from streamhouse.cluster.state import AgentState, ClusterState, name_of, read_cluster_state, waits_for
from streamhouse.model.errors import InvalidInput

if TYPE_CHECKING:
    from streamhouse.metadata.store import MetadataStore

_place_options = place_options("data_dir", "metadata")


@click.group(invoke_without_command=True, short_help="Run an agent; list, drain and forget agents.")
@settings_options()
@click.pass_context
def agent(context: click.Context, /, config_file: str | None, **given: str | bool | None) -> int:
    """Run an agent, which shares the cluster's partitions with others, until SIGTERM or SIGINT: then it hands over what
    it leads, and ends. The commands below look after the agents that there are.

    Every setting is a flag, a STREAMHOUSE_* variable and a line of a TOML file, as for `streamhouse serve`. Once
    connections are accepted, one line on stdout says where: "ready kafka=HOST:PORT http=HOST:PORT grpc=HOST:PORT
    flume=HOST:PORT".

    \b
    Examples:
      streamhouse agent --agent-id a1 --metadata postgresql://user@host/db --objects s3://bucket/prefix
      streamhouse agent --agent-id a2 --zone eu-1b --advertise a2.example.com --config streamhouse.toml
      streamhouse agent list --bootstrap a1.example.com:9092
      streamhouse agent drain a1 --bootstrap a2.example.com:9092
      streamhouse agent forget a1 --metadata postgresql://user@host/db
    """
    if context.invoked_subcommand is not None:
        if any(value is not None for value in given.values()):
            command = f"`streamhouse agent {context.invoked_subcommand}`"
            raise click.UsageError(f"the options of {command} go behind it", ctx=context)
        return 0
    effective = effective_settings(config_file, given)
    from streamhouse.app.run import run_agent

    return run_agent(effective.settings, announce, given=effective.given)


@agent.command("list", short_help="List the agents.")
@json_option
@_place_options
def list_agents(as_json: bool, bootstrap: str | None, config_file: str | None, **given: str | bool | None) -> None:
    """List the agents that are registered, with what they lead.

    A live agent takes part; a draining one gives away what it leads; a silent one has not been heard of for as long as
    the setting `liveness` says, or has let a lease run out.

    \b
    Examples:
      streamhouse agent list
      streamhouse agent list --bootstrap a1.example.com:9092 --json
      streamhouse agent list --metadata postgresql://user@host/db
    """
    from streamhouse.cli.cluster_source import with_cluster

    agents = with_cluster(place_of(bootstrap, config_file, given), lambda source: source.agents())
    if as_json:
        print_json([agent_as_json(agent) for agent in agents])
    elif agents:
        print_agents(agents)
    else:
        print_line("no agents yet; `streamhouse agent` or `streamhouse serve` runs one")


@agent.command(short_help="Make an agent give away what it leads.")
@click.argument("agent_id", metavar="ID", callback=as_agent_id, shell_complete=complete_agents)
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until it leads nothing.")
@click.option(
    "--timeout", "timeout_ms", default="2m", show_default=True, callback=as_duration_ms, help="How long to wait."
)
@json_option
@_place_options
def drain(
    agent_id: str,
    wait: bool,
    timeout_ms: int,
    as_json: bool,
    bootstrap: str | None,
    config_file: str | None,
    **given: str | bool | None,
) -> None:
    """Make an agent give away what it leads, partition by partition, while clients go on.

    It stays registered and serves on, but leads nothing until it is started again: then it takes part as before. An
    agent that is stopped by SIGTERM drains itself, so this is for looking before stopping.

    \b
    Examples:
      streamhouse agent drain a1
      streamhouse agent drain a1 --no-wait
      streamhouse agent drain a1 --timeout 10m --bootstrap a2.example.com:9092
    """
    from streamhouse.cli.agent_drain import drain_agent
    from streamhouse.cli.cluster_source import with_cluster

    wait_ms = timeout_ms if wait else None
    place = place_of(bootstrap, config_file, given)
    drained = with_cluster(place, lambda source: drain_agent(source, agent_id, wait_ms))
    if as_json:
        print_json(drained_as_json(drained))
    else:
        print_drained(drained)


@agent.command(short_help="Forget an agent that is gone for good.")
@click.argument("agent_id", metavar="ID", callback=as_agent_id)
@database_options("data_dir", "metadata")
def forget(agent_id: str, config_file: str | None, **given: str | bool | None) -> None:
    """Take an agent that is gone for good off the list, so that nobody waits for it or is warned of it.

    Refused while it is heard of, and while partitions wait for it whose acknowledged records may be on its disk only.
    An agent that runs after all comes back by itself. This is for who has the database: no node does it.

    \b
    Examples:
      streamhouse agent forget a3 --metadata postgresql://user@host/db
      streamhouse agent forget a3 --data-dir ./streamhouse-data
    """
    from streamhouse.cli.metadata_store import with_metadata

    settings = database_of(config_file, given)

    async def work(store: MetadataStore) -> None:
        state = await read_cluster_state(store, settings.liveness)
        if state.state_of(state.agent(agent_id)) is not AgentState.SILENT or _leads_something(agent_id, state):
            raise InvalidInput(
                f"agent {agent_id!r} is alive, or was until a moment ago", hint="stop it: then it takes itself off"
            )
        waiting = [name_of(placement) for placement in state.placements if waits_for(placement) == agent_id]
        if waiting:
            raise InvalidInput(
                f"{count_of(len(waiting), 'partition')} ({named(waiting)}) may have acknowledged records on the disk "
                f"of agent {agent_id!r} only",
                hint="start it again, or `streamhouse partition elect TOPIC P --unclean --metadata …` gives them up",
            )
        await store.deregister_agent(agent_id)

    with_metadata(settings, work)
    print_line(f"agent {agent_id} is forgotten")


def _leads_something(agent_id: str, state: ClusterState) -> bool:
    return bool(state.led_by(agent_id) or state.shards_of(agent_id))
