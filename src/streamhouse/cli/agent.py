"""`streamhouse agent …`: run an agent, see which there are, take one out of service, forget one that is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streamhouse.cli.console import announce, count_of, print_json, print_line, print_note, print_table, progress_bar
from streamhouse.cli.options import as_duration_ms, json_option
from streamhouse.cli.record_format import show_timestamp
from streamhouse.cli.settings_options import effective_settings, settings_options
from streamhouse.cli.time_span import show_span
from streamhouse.cluster.state import AgentState, ClusterState, name_of, read_cluster_state, waits_for
from streamhouse.model.errors import InvalidInput, Unavailable
from streamhouse.model.units import show_duration

if TYPE_CHECKING:
    from streamhouse.metadata.cluster import AgentRow
    from streamhouse.metadata.store import MetadataStore

_NAMED_PARTITIONS = 5

_metadata_options = settings_options("data_dir", "metadata")


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
      streamhouse agent list --metadata postgresql://user@host/db
      streamhouse agent drain a1 --metadata postgresql://user@host/db
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
@_metadata_options
def list_agents(as_json: bool, config_file: str | None, **given: str | bool | None) -> None:
    """List the agents that are registered, with what they lead.

    A live agent takes part; a draining one gives away what it leads; a silent one has not been heard of for as long as
    the setting `liveness` says, or has let a lease run out.

    \b
    Examples:
      streamhouse agent list
      streamhouse agent list --metadata postgresql://user@host/db --json
    """
    from streamhouse.cli.metadata_store import with_metadata

    settings = effective_settings(config_file, given).settings
    state = with_metadata(settings, lambda store: read_cluster_state(store, settings.liveness))
    if as_json:
        print_json([_agent_as_json(row, state) for row in state.agents])
    elif state.agents:
        _print_agents(state)
    else:
        print_line("no agents yet; `streamhouse agent` or `streamhouse serve` runs one")


@agent.command(short_help="Make an agent give away what it leads.")
@click.argument("agent_id", metavar="ID")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until it leads nothing.")
@click.option(
    "--timeout", "timeout_ms", default="2m", show_default=True, callback=as_duration_ms, help="How long to wait."
)
@json_option
@_metadata_options
def drain(
    agent_id: str,
    wait: bool,
    timeout_ms: int,
    as_json: bool,
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
      streamhouse agent drain a1 --timeout 10m --metadata postgresql://user@host/db
    """
    from streamhouse.cli.metadata_store import with_metadata

    settings = effective_settings(config_file, given).settings

    async def work(store: MetadataStore) -> tuple[ClusterState, ClusterState]:
        before = await read_cluster_state(store, settings.liveness)
        before.agent(agent_id)
        _warn_before_drain(agent_id, before)
        await store.drain_agent(agent_id)
        if wait:
            await _wait_until_drained(store, agent_id, before, timeout_ms)
        return before, await read_cluster_state(store, settings.liveness)

    before, after = with_metadata(settings, work)
    if as_json:
        print_json(
            {
                "agent_id": agent_id,
                "partitions_before": len(before.led_by(agent_id)),
                "partitions_left": len(after.led_by(agent_id)),
                "partitions_waiting": len(_waiting_for(agent_id, after)),
            }
        )
    else:
        _print_drained(agent_id, before, after)


@agent.command(short_help="Forget an agent that is gone for good.")
@click.argument("agent_id", metavar="ID")
@_metadata_options
def forget(agent_id: str, config_file: str | None, **given: str | bool | None) -> None:
    """Take an agent that is gone for good off the list, so that nobody waits for it or is warned of it.

    Refused while it is heard of, and while partitions wait for it whose acknowledged records may be on its disk only.
    An agent that runs after all comes back by itself.

    \b
    Examples:
      streamhouse agent forget a3
      streamhouse agent forget a3 --metadata postgresql://user@host/db
    """
    from streamhouse.cli.metadata_store import with_metadata

    settings = effective_settings(config_file, given).settings

    async def work(store: MetadataStore) -> None:
        state = await read_cluster_state(store, settings.liveness)
        if state.state_of(state.agent(agent_id)) is not AgentState.SILENT or _leaderships(agent_id, state):
            raise InvalidInput(
                f"agent {agent_id!r} is alive, or was until a moment ago", hint="stop it: then it takes itself off"
            )
        waiting = _waiting_for(agent_id, state)
        if waiting:
            raise InvalidInput(
                f"{count_of(len(waiting), 'partition')} ({_named(waiting)}) may have acknowledged records on the disk "
                f"of agent {agent_id!r} only",
                hint="start it again, or give them up with `streamhouse partition elect TOPIC P --unclean`",
            )
        await store.deregister_agent(agent_id)

    with_metadata(settings, work)
    print_line(f"agent {agent_id} is forgotten")


def _named(names: list[str]) -> str:
    return ", ".join(names[:_NAMED_PARTITIONS]) + (", …" if len(names) > _NAMED_PARTITIONS else "")


async def _wait_until_drained(store: MetadataStore, agent_id: str, before: ClusterState, timeout_ms: int) -> None:
    from streamhouse.cli.polling import becomes_true

    total = _leaderships(agent_id, before)
    left = total
    state = before
    with progress_bar(f"draining {agent_id}", total) as bar:

        async def is_drained() -> bool:
            nonlocal left, state
            state = await read_cluster_state(store, before.liveness_ms)
            now_left = _leaderships(agent_id, state)
            bar.advance(left - now_left)
            left = now_left
            return left == 0

        if await becomes_true(is_drained, timeout_ms=timeout_ms):
            return
    names = [name_of(placement) for placement in state.led_by(agent_id)]
    what = (
        f"{count_of(len(names), 'partition')} ({_named(names)})"
        if names
        else f"{count_of(left, 'shard')} of group coordinators"
    )
    raise Unavailable(
        f"agent {agent_id!r} still leads {what} after {show_duration(timeout_ms)}",
        hint="it goes on draining; `streamhouse partition list` shows what is where",
    )


def _warn_before_drain(agent_id: str, state: ClusterState) -> None:
    others = [row.info.agent_id for row in state.agents if row.info.agent_id != agent_id]
    if _leaderships(agent_id, state) and not any(state.is_live(other) for other in others):
        print_note("no other agent is alive: what it leads has nowhere to go until one is started")


def _waiting_for(agent_id: str, state: ClusterState) -> list[str]:
    return [name_of(placement) for placement in state.placements if waits_for(placement) == agent_id]


def _leaderships(agent_id: str, state: ClusterState) -> int:
    return len(state.led_by(agent_id)) + len(state.shards_of(agent_id))


def _print_drained(agent_id: str, before: ClusterState, after: ClusterState) -> None:
    led, left = len(before.led_by(agent_id)), len(after.led_by(agent_id))
    if _leaderships(agent_id, after):
        print_line(f"agent {agent_id} is draining; it leads {count_of(left, 'partition')} of {led} still")
    else:
        print_line(
            f"agent {agent_id} leads nothing any more, of {count_of(led, 'partition')} before; it can be stopped"
        )
    waiting = _waiting_for(agent_id, after)
    if waiting:
        print_note(
            f"{count_of(len(waiting), 'partition')} without a leader: agent {agent_id} alone can lead them, whose disk"
            " may hold acknowledged records; start it, or see `streamhouse partition elect --help`"
        )


def _print_agents(state: ClusterState) -> None:
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
                row.info.agent_id,
                row.node_id,
                row.info.zone or None,
                row.info.agent_group,
                row.info.kafka_address or None,
                row.info.address or None,
                len(state.led_by(row.info.agent_id)),
                show_timestamp(row.started_at_ms),
                f"{show_span(row.silent_ms)} ago",
                state.state_of(row).value,
            )
            for row in state.agents
        ],
    )


def _agent_as_json(row: AgentRow, state: ClusterState) -> dict[str, object]:
    return {
        "agent_id": row.info.agent_id,
        "node_id": row.node_id,
        "zone": row.info.zone,
        "agent_group": row.info.agent_group,
        "kafka_address": row.info.kafka_address,
        "address": row.info.address,
        "partitions": len(state.led_by(row.info.agent_id)),
        "coordinator_shards": len(state.shards_of(row.info.agent_id)),
        "started_at_ms": row.started_at_ms,
        "silent_ms": row.silent_ms,
        "state": state.state_of(row).value,
    }
