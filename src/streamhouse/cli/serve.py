"""`streamhouse serve`: runs a node until it is told to stop."""

from __future__ import annotations

import click

from streamhouse.cli.settings_options import effective_settings, settings_options


@click.command(short_help="Run a node.")
@settings_options()
def serve(config_file: str | None, **given: str | bool | None) -> int:
    """Run a node until SIGTERM or SIGINT, which drain it.

    Every setting is a flag, a STREAMHOUSE_* variable and a line of a TOML file; a flag wins over a variable, a variable
    over the file. Once connections are accepted, one line on stdout says so: "ready kafka=HOST:PORT".

    \b
    Examples:
      streamhouse serve
      streamhouse serve --data-dir /var/lib/streamhouse --host 0.0.0.0 --advertise broker.example.com
      streamhouse serve --objects s3://bucket/prefix --metadata postgresql://user@host/db --segment-bytes 8MiB
      STREAMHOUSE_SEGMENT_AGE=30s streamhouse serve --config streamhouse.toml
    """
    settings = effective_settings(config_file, given).settings
    from streamhouse.app import serve as serve_node

    return serve_node(settings, _announce)


def _announce(line: str) -> None:
    # Whoever started us waits for this line, most often through a pipe.
    print(line, flush=True)
