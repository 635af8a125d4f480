"""`streamhouse completion`: prints the script with which a shell completes our commands, options and topics."""

from __future__ import annotations

import click

from streamhouse.cli.completing import COMPLETE_VARIABLE, SHELLS


@click.command(short_help="Print a shell's completion script.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands, options, paths, and the topics, groups and agents of a
    running node.

    It asks the node of --bootstrap, STREAMHOUSE_BOOTSTRAP or 127.0.0.1:9092, and waits no longer than a second.

    \b
    Examples:
      streamhouse completion bash >> ~/.bashrc
      source <(streamhouse completion bash)
      streamhouse completion zsh > ~/.zfunc/_streamhouse
      streamhouse completion fish > ~/.config/fish/completions/streamhouse.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from streamhouse.cli.shell_completion import use_own

    use_own()
    made_for = get_completion_class(shell)
    assert made_for is not None
    root = context.find_root()
    # The parent's: bash's own looks for a bash that may not be the one that reads this.
    click.echo(ShellComplete.source(made_for(root.command, {}, "streamhouse", COMPLETE_VARIABLE)))
