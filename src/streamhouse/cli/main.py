"""The `streamhouse` command: finds the noun's module, runs it, turns every failure into one line and an exit code."""

from __future__ import annotations

import importlib
import logging
import os
import re
import sys
import traceback

import click

from streamhouse import __version__
from streamhouse.cli.completing import COMPLETE_VARIABLE, answer_shell
from streamhouse.cli.console import print_error
from streamhouse.model.errors import StreamHouseError

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 128 + 2
EXIT_BROKEN_PIPE = 128 + 13

# Click's words for it; some of its versions add a suggestion to them, which knows nothing of what is loaded lazily.
_UNKNOWN_COMMAND = re.compile(r"No such command '(.*)'\.", re.DOTALL)
# What Click puts between the values that a missing argument may have.
_LINE_BREAK = "\n\t"

# A command's module is imported only when it runs or is listed: `--help` must not wait for a broker's imports.
_COMMANDS = {
    "serve": "streamhouse.cli.serve",
    "agent": "streamhouse.cli.agent",
    "config": "streamhouse.cli.config",
    "topic": "streamhouse.cli.topic",
    "group": "streamhouse.cli.group",
    "partition": "streamhouse.cli.partition",
    "cluster": "streamhouse.cli.cluster",
    "produce": "streamhouse.cli.produce",
    "consume": "streamhouse.cli.consume",
    "flume": "streamhouse.cli.flume",
    "segment": "streamhouse.cli.segment",
    "wal": "streamhouse.cli.wal",
    "pipeline": "streamhouse.cli.pipeline",
    "maintain": "streamhouse.cli.maintain",
    "bench": "streamhouse.cli.bench",
    "completion": "streamhouse.cli.completion",
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(importlib.import_module(_COMMANDS[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Every command has --help with examples. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.",
)
@click.version_option(__version__, message="streamhouse %(version)s")
@click.option("--debug", is_flag=True, envvar="STREAMHOUSE_DEBUG", help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Kafka on the wire, object storage underneath.

    \b
    Examples:
      streamhouse serve                             start a node on 127.0.0.1:9092
      streamhouse topic create orders               make a topic
      streamhouse produce orders --message hello    write a record
      streamhouse consume orders --from-beginning   read it back
    """


def main() -> None:
    """The console script."""
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        os._exit(answer_shell(cli, instruction))
    exit_code = run(sys.argv[1:])
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # All is done and said. To take the interpreter down could still end in an abort, by the object store's threads.
    os._exit(exit_code)


def run(arguments: list[str]) -> int:
    debug = "--debug" in arguments or bool(os.environ.get("STREAMHOUSE_DEBUG"))
    try:
        # Not `cli.main`, which takes interruptions and closed pipes for itself.
        with cli.make_context("streamhouse", list(arguments)) as context:
            result = cli.invoke(context)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.ClickException as problem:
        return _usage_failure(problem)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except click.Abort:
        # The prompt left the cursor behind its question.
        print(file=sys.stderr)
        print_error("aborted")
        return EXIT_FAILURE
    except BrokenPipeError:
        # Whoever read our output has left; without this the interpreter would complain while it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except StreamHouseError as problem:
        if debug:
            traceback.print_exc()
        print_error(str(problem))
        return EXIT_FAILURE
    except Exception as problem:
        if debug:
            traceback.print_exc()
        print_error(f"unexpected {type(problem).__name__}: {problem} (this is a bug; --debug shows where)")
        return EXIT_FAILURE


def _usage_failure(problem: click.ClickException) -> int:
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        print(problem.format_message())
        return EXIT_USAGE
    unknown = _UNKNOWN_COMMAND.fullmatch(problem.message)
    said = f"there is no command {unknown[1]!r}" if unknown else problem.format_message().replace(_LINE_BREAK, " ")
    hints = _usage_hints(problem)
    print_error(f"{said} ({'; '.join(hints)})" if hints else said)
    return EXIT_USAGE if isinstance(problem, click.UsageError) else EXIT_FAILURE


def _usage_hints(problem: click.ClickException) -> list[str]:
    if not isinstance(problem, click.UsageError) or problem.ctx is None:
        return []
    path, hints = problem.ctx.command_path, []
    if (unknown := _UNKNOWN_COMMAND.fullmatch(problem.message)) and isinstance(problem.ctx.command, click.Group):
        from streamhouse.cli.suggestion import nearest

        meant = nearest(unknown[1], problem.ctx.command.list_commands(problem.ctx))
        if meant is not None:
            hints.append(f"did you mean `{path} {meant}`?")
    return [*hints, f"see `{path} --help`"]


if __name__ == "__main__":
    main()
