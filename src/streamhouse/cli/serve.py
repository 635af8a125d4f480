"""`streamhouse serve`: runs a node until it is told to stop."""

from __future__ import annotations

import os

import click

from streamhouse.cli.console import announce
from streamhouse.cli.settings_options import effective_settings, settings_options
from streamhouse.cli.usage import refusing_as_usage

_NO_AGENT_VARIABLE = "DISABLE_EMBEDDED_AGENT"


@click.command(short_help="Run a node.")
@click.option(
    "--agents",
    default=1,
    type=click.IntRange(1, 256),
    help="Run this many agents, a process for each, on shared metadata.  [1]",
)
@settings_options()
def serve(agents: int, config_file: str | None, **given: str | bool | None) -> int:
    """Run a node until SIGTERM or SIGINT, which drain it.

    Every setting is a flag, a STREAMHOUSE_* variable and a line of a TOML file; a flag wins over a variable, a variable
    over the file. Once connections are accepted, one line on stdout says where: "ready kafka=HOST:PORT http=HOST:PORT
    grpc=HOST:PORT flume=HOST:PORT".

    The node has an agent in it, which leads partitions. With --agents N there are N, on consecutive ports and with
    directories of their own below the data dir: Python uses one core per process, so a larger machine runs an agent per
    core. With DISABLE_EMBEDDED_AGENT=1 there is none, and the node sends clients to the agents that run elsewhere.

    \b
    Examples:
      streamhouse serve
      streamhouse serve --data-dir /var/lib/streamhouse --host 0.0.0.0 --advertise broker.example.com
      streamhouse serve --objects s3://bucket/prefix --metadata postgresql://user@host/db --segment-bytes 8MiB
      streamhouse serve --agents 4 --metadata postgresql://user@host/db --objects s3://bucket/prefix
      STREAMHOUSE_SEGMENT_AGE=30s streamhouse serve --config streamhouse.toml
    """
    effective = effective_settings(config_file, given)
    settings = effective.settings
    is_agent = os.environ.get(_NO_AGENT_VARIABLE, "") in ("", "0", "false")
    if agents > 1:
        if not is_agent:
            raise click.UsageError(f"--agents {agents} and {_NO_AGENT_VARIABLE} contradict each other")
        from streamhouse.cli.agent_processes import run_agents, settings_of_agents

        with refusing_as_usage():
            settings_of_agents(settings, agents)
        return run_agents(settings, effective.given, agents, announce)
    from streamhouse.app.run import serve as serve_node

    return serve_node(settings, announce, is_agent=is_agent, given=effective.given)
