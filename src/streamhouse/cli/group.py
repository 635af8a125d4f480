"""`streamhouse group …`: list consumer groups, see how far they are, move them, delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streamhouse.cli.completing import complete_groups, complete_topics
from streamhouse.cli.console import print_json, print_line, print_table
from streamhouse.cli.group_report import (
    group_as_json,
    move_as_json,
    print_description,
    print_moves,
)
from streamhouse.cli.options import as_group_id, as_topic_names, bootstrap_option, json_option, run_async
from streamhouse.cli.start_offset import parse_start_offset
from streamhouse.core.groups.offset_reset import ResetKind, ResetTarget
from streamhouse.model.errors import InvalidInput

if TYPE_CHECKING:
    from streamhouse.client.group_progress import Move, Progress
    from streamhouse.client.groups_admin import GroupDescription, GroupSummary

_STATES = ("Empty", "Assigning", "Reconciling", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
_KINDS = ("classic", "consumer")


@click.group(short_help="List, describe, reset and delete consumer groups.")
def group() -> None:
    """List, describe, reset and delete consumer groups.

    \b
    Examples:
      streamhouse group list
      streamhouse group describe billing
      streamhouse group reset billing --topic orders --to-earliest --dry-run
    """


@group.command("list", short_help="List the groups.")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(_STATES, case_sensitive=False), help="Only in this state."
)
@click.option(
    "--type", "kinds", multiple=True, type=click.Choice(_KINDS, case_sensitive=False), help="Only of this protocol."
)
@json_option
@bootstrap_option
def list_groups(states: tuple[str, ...], kinds: tuple[str, ...], as_json: bool, bootstrap: str) -> None:
    """List the groups. --state and --type may be repeated.

    \b
    Examples:
      streamhouse group list
      streamhouse group list --state stable --type consumer
    """
    from streamhouse.client.cluster import Cluster
    from streamhouse.client.groups_admin import GroupsAdmin

    async def work() -> list[GroupSummary]:
        async with Cluster.connect(bootstrap) as cluster:
            return await GroupsAdmin(cluster).list_groups(states=states, kinds=kinds)

    groups = run_async(work())
    if as_json:
        print_json([{"group": g.group_id, "state": g.state, "type": g.kind} for g in groups])
    elif groups:
        print_table(("group", "state", "type"), [(g.group_id, g.state or None, g.kind or None) for g in groups])
    elif states or kinds:
        print_line("no such groups; `streamhouse group list` shows all")
    else:
        print_line("no groups yet; a consumer with a group.id makes one")


@group.command(short_help="Show a group's state, members and lag.")
@click.argument("name", metavar="GROUP", callback=as_group_id, shell_complete=complete_groups)
@json_option
@bootstrap_option
def describe(name: str, as_json: bool, bootstrap: str) -> None:
    """Show a group's state, its members with what they are assigned, and how far it is in each partition.

    \b
    Examples:
      streamhouse group describe billing
      streamhouse group describe billing --json
    """
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster
    from streamhouse.client.group_progress import describe_progress
    from streamhouse.client.groups_admin import GroupsAdmin

    async def work() -> tuple[GroupDescription, list[Progress]]:
        async with Cluster.connect(bootstrap) as cluster:
            return await describe_progress(GroupsAdmin(cluster), Admin(cluster), name)

    description, progress = run_async(work())
    if as_json:
        print_json(group_as_json(description, progress))
    else:
        print_description(description, progress)


@group.command(short_help="Move a group to other offsets.")
@click.argument("name", metavar="GROUP", callback=as_group_id, shell_complete=complete_groups)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    callback=as_topic_names,
    shell_complete=complete_topics,
    help="Topic to move in; may be repeated.",
)
@click.option("--all-topics", is_flag=True, help="Every topic that the group has committed offsets of.")
@click.option("--to-earliest", is_flag=True, help="To the first record held.")
@click.option("--to-latest", is_flag=True, help="To the end: only new records.")
@click.option("--to-offset", type=click.IntRange(min=0), metavar="N", help="To this offset, in each partition.")
@click.option(
    "--to-time", metavar="TIME", help="To the first record at or after 2026-01-31T12:00:00Z, or @MILLISECONDS."
)
@click.option("--shift-by", type=int, metavar="N", help="Forward by N, or back if N is negative.")
@click.option("--dry-run", is_flag=True, help="Show what would change and change nothing.")
@json_option
@bootstrap_option
def reset(
    name: str,
    topics: tuple[str, ...],
    all_topics: bool,
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_time: str | None,
    shift_by: int | None,
    dry_run: bool,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Move a group to other offsets, in every partition of the topics. Its consumers must be stopped.

    Offsets stay within what the log holds. A group that does not exist yet can be given a place to start.

    \b
    Examples:
      streamhouse group reset billing --topic orders --to-earliest --dry-run
      streamhouse group reset billing --all-topics --to-time 2026-01-31T12:00:00Z
      streamhouse group reset billing --topic orders --shift-by -100
    """
    if bool(topics) == all_topics:
        raise click.UsageError("give either --topic (may be repeated) or --all-topics")
    target = _parse_target(to_earliest, to_latest, to_offset, to_time, shift_by)
    from streamhouse.cli.topic_lookup import find_topic
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster
    from streamhouse.client.group_progress import reset_group
    from streamhouse.client.groups_admin import GroupsAdmin

    async def work() -> list[Move]:
        async with Cluster.connect(bootstrap) as cluster:
            for topic in topics:
                await find_topic(cluster, topic)
            return await reset_group(GroupsAdmin(cluster), Admin(cluster), name, topics, target, dry_run=dry_run)

    moves = run_async(work())
    if as_json:
        print_json({"group": name, "dry_run": dry_run, "partitions": [move_as_json(move) for move in moves]})
    else:
        print_moves(name, moves, dry_run=dry_run)


@group.command(short_help="Delete a group and its offsets.")
@click.argument("name", metavar="GROUP", callback=as_group_id, shell_complete=complete_groups)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@bootstrap_option
def delete(name: str, yes: bool, as_json: bool, bootstrap: str) -> None:
    """Delete a group and its committed offsets. Its consumers must be stopped.

    \b
    Examples:
      streamhouse group delete billing
      streamhouse group delete billing --yes
    """
    if not yes:
        from streamhouse.cli.escape import escape_text

        click.confirm(f"Delete group {escape_text(name)} and its offsets?", abort=True, err=True)
    from streamhouse.client.cluster import Cluster
    from streamhouse.client.groups_admin import GroupsAdmin

    async def work() -> None:
        async with Cluster.connect(bootstrap) as cluster:
            await GroupsAdmin(cluster).delete_groups([name])

    run_async(work())
    if as_json:
        print_json({"deleted": name})
    else:
        print_line(f"deleted {name}")


def _parse_target(
    to_earliest: bool, to_latest: bool, to_offset: int | None, to_time: str | None, shift_by: int | None
) -> ResetTarget:
    targets: list[ResetTarget] = []
    if to_earliest:
        targets.append(ResetTarget(ResetKind.EARLIEST))
    if to_latest:
        targets.append(ResetTarget(ResetKind.LATEST))
    if to_offset is not None:
        targets.append(ResetTarget(ResetKind.OFFSET, to_offset))
    if to_time is not None:
        try:
            start = parse_start_offset(f"@{to_time.removeprefix('@')}")
        except InvalidInput as problem:
            raise click.UsageError(f"--to-time: {problem}") from None
        targets.append(ResetTarget(ResetKind.TIME, start.value))
    if shift_by is not None:
        targets.append(ResetTarget(ResetKind.SHIFT, shift_by))
    if len(targets) != 1:
        raise click.UsageError("give one of --to-earliest, --to-latest, --to-offset, --to-time and --shift-by")
    return targets[0]
