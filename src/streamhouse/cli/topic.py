"""`streamhouse topic …`: make topics, look at them, change their configuration, delete them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from streamhouse.cli.console import print_facts, print_json, print_line, print_table
from streamhouse.cli.options import bootstrap_option, json_option, parse_assignments, run_async
from streamhouse.cli.settings_options import effective_settings, settings_options
from streamhouse.model.settings import Settings

if TYPE_CHECKING:
    from streamhouse.client.admin import PartitionDescription, TopicDescription, TopicSummary


@click.group(short_help="Create, list, describe, alter and delete topics.")
def topic() -> None:
    """Create, list, describe, alter and delete topics.

    \b
    Examples:
      streamhouse topic create orders --partitions 8 --config retention.ms=86400000
      streamhouse topic list
      streamhouse topic describe orders
    """


@topic.command(short_help="Make a topic.")
@click.argument("name")
@click.option("--partitions", type=click.IntRange(min=1), help="Number of partitions; default: the broker's.")
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", help="Topic config; may be repeated.")
@click.option("--if-not-exists", is_flag=True, help="Succeed when the topic is already there.")
@json_option
@bootstrap_option
def create(
    name: str, partitions: int | None, configs: tuple[str, ...], if_not_exists: bool, as_json: bool, bootstrap: str
) -> None:
    """Make a topic. Partitions can be added later, and not taken away.

    \b
    Examples:
      streamhouse topic create orders
      streamhouse topic create orders --partitions 8 --config retention.ms=86400000 --config segment.bytes=8388608
    """
    assigned = parse_assignments(configs, "topic config")
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster
    from streamhouse.model.errors import AlreadyExists

    async def work() -> tuple[bool, TopicDescription]:
        async with Cluster.connect(bootstrap) as cluster:
            admin = Admin(cluster)
            try:
                await admin.create_topic(name, partition_count=partitions, configs=assigned)
                created = True
            except AlreadyExists:
                if not if_not_exists:
                    raise
                created = False
            return created, await admin.describe_topic(name)

    created, description = run_async(work())
    if as_json:
        print_json({"created": created, **_topic_as_json(description)})
    else:
        verb = "created" if created else "already there:"
        count = len(description.partitions)
        print_line(f"{verb} {description.name} with {count} partition{'s' if count != 1 else ''}")


@topic.command("list", short_help="List the topics.")
@json_option
@bootstrap_option
def list_topics(as_json: bool, bootstrap: str) -> None:
    """List the topics.

    \b
    Examples:
      streamhouse topic list
      streamhouse topic list --json
    """
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster

    async def work() -> list[TopicSummary]:
        async with Cluster.connect(bootstrap) as cluster:
            return await Admin(cluster).list_topics()

    topics = run_async(work())
    if as_json:
        print_json([{"name": t.name, "topic_id": str(t.topic_id), "partitions": t.partition_count} for t in topics])
    elif topics:
        print_table(("topic", "partitions", "id"), [(t.name, t.partition_count, str(t.topic_id)) for t in topics])
    else:
        print_line("no topics yet; `streamhouse topic create NAME` makes one")


@topic.command(short_help="Show a topic's partitions, offsets and configuration.")
@click.argument("name")
@json_option
@bootstrap_option
@settings_options("metadata")
def describe(name: str, as_json: bool, bootstrap: str, config_file: str | None, **given: str | bool | None) -> None:
    """Show a topic's partitions with their leaders and offsets, and its configuration.

    A broker does not say why a partition has no leader; the metadata store does, if it is given.

    \b
    Examples:
      streamhouse topic describe orders
      streamhouse topic describe orders --metadata postgresql://user@host/db
      streamhouse topic describe orders --json
    """
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster

    async def work() -> TopicDescription:
        async with Cluster.connect(bootstrap) as cluster:
            return await Admin(cluster).describe_topic(name)

    description = run_async(work())
    waiting = _find_waiting(description, effective_settings(config_file, given).settings)
    if as_json:
        print_json(_topic_as_json(description, waiting))
    else:
        _print_description(description, waiting)


@topic.command(short_help="Change a topic's configuration, or add partitions.")
@click.argument("name")
@click.option("--partitions", type=click.IntRange(min=1), help="Number of partitions, more than there are.")
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", help="Config to set; may be repeated.")
@click.option("--delete-config", "deleted", multiple=True, metavar="NAME", help="Config to put back to its default.")
@json_option
@bootstrap_option
def alter(
    name: str,
    partitions: int | None,
    configs: tuple[str, ...],
    deleted: tuple[str, ...],
    as_json: bool,
    bootstrap: str,
) -> None:
    """Change a topic's configuration, or add partitions; what is not named stays as it is.

    With more partitions most keys go to another one than before, so that the records of a key are no longer in order
    with those that are there already. A topic with the config streamhouse.partitions.fixed=true does not grow.

    \b
    Examples:
      streamhouse topic alter orders --config retention.ms=3600000
      streamhouse topic alter orders --delete-config retention.ms
      streamhouse topic alter orders --partitions 16
    """
    assigned = parse_assignments(configs, "topic config")
    if not assigned and not deleted and partitions is None:
        raise click.UsageError("nothing to change; give --config NAME=VALUE, --delete-config NAME or --partitions N")
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster
    from streamhouse.model.topic import CONFIG_KEYS, unknown_config

    for misspelt in sorted(set(deleted) - CONFIG_KEYS.keys()):
        raise unknown_config(misspelt)  # a broker would say nothing: there is nothing to delete

    async def work() -> TopicDescription:
        async with Cluster.connect(bootstrap) as cluster:
            admin = Admin(cluster)
            if assigned or deleted:
                await admin.alter_topic(name, set_configs=assigned, delete_configs=deleted)
            if partitions is not None:
                await admin.create_partitions(name, partitions)
            return await admin.describe_topic(name)

    description = run_async(work())
    if as_json:
        print_json(_topic_as_json(description))
        return
    if partitions is not None:
        print_line(f"{description.name} has {len(description.partitions)} partitions")
    if assigned or deleted:
        _print_configs(description)


@topic.command(short_help="Delete a topic and its records.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@bootstrap_option
def delete(name: str, yes: bool, as_json: bool, bootstrap: str) -> None:
    """Delete a topic and all of its records. There is no way back.

    \b
    Examples:
      streamhouse topic delete orders
      streamhouse topic delete orders --yes
    """
    if not yes:
        from streamhouse.cli.escape import escape_text

        click.confirm(f"Delete topic {escape_text(name)} and all of its records?", abort=True, err=True)
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster

    async def work() -> None:
        async with Cluster.connect(bootstrap) as cluster:
            await Admin(cluster).delete_topic(name)

    run_async(work())
    if as_json:
        print_json({"deleted": name})
    else:
        print_line(f"deleted {name}")


def _find_waiting(description: TopicDescription, settings: Settings) -> dict[int, str]:
    """The agent that each partition without a leader waits for, as far as the metadata store is known to us."""
    if not settings.metadata or all(partition.leader >= 0 for partition in description.partitions):
        return {}
    from streamhouse.cli.metadata_store import with_metadata
    from streamhouse.cluster.state import waits_for

    return {
        placement.partition.partition: missing
        for placement in with_metadata(settings, lambda store: store.list_placements())
        if placement.partition.topic_id == description.topic_id and (missing := waits_for(placement)) is not None
    }


def _topic_as_json(
    description: TopicDescription, waiting: Mapping[int, str] = MappingProxyType({})
) -> dict[str, object]:
    return {
        "name": description.name,
        "topic_id": str(description.topic_id),
        "partitions": [
            {
                "partition": partition.partition,
                "leader": partition.leader if partition.leader >= 0 else None,
                "leader_epoch": partition.leader_epoch if partition.leader >= 0 else None,
                "waits_for": waiting.get(partition.partition),
                "start_offset": partition.start_offset,
                "end_offset": partition.end_offset,
            }
            for partition in description.partitions
        ],
        "configs": {
            config.name: {"value": config.value, "is_default": config.is_default} for config in description.configs
        },
    }


def _print_description(description: TopicDescription, waiting: Mapping[int, str]) -> None:
    known = [p for p in description.partitions if p.start_offset is not None and p.end_offset is not None]
    records = sum((p.end_offset or 0) - (p.start_offset or 0) for p in known)
    print_facts(
        [
            ("topic", description.name),
            ("id", str(description.topic_id)),
            ("partitions", len(description.partitions)),
            ("offsets held", records),
        ]
    )
    print_line("")
    _print_partitions(description.partitions, waiting)
    print_line("")
    _print_configs(description)


def _print_partitions(partitions: Sequence[PartitionDescription], waiting: Mapping[int, str]) -> None:
    from streamhouse.cli.partition_report import waiting_note

    headings = ("partition", "leader", "epoch", "start offset", "end offset")
    rows: list[tuple[object, ...]] = []
    for p in partitions:
        if p.leader >= 0:
            rows.append((p.partition, p.leader, p.leader_epoch, p.start_offset, p.end_offset, ""))
        else:
            missing = waiting.get(p.partition)
            note = "no leader" if missing is None else waiting_note(missing)
            rows.append((p.partition, None, None, p.start_offset, p.end_offset, note))
    if any(row[-1] for row in rows):
        print_table((*headings, "note"), rows)
    else:
        print_table(headings, [row[:-1] for row in rows])


def _print_configs(description: TopicDescription) -> None:
    rows = [(config.name, config.value, "default" if config.is_default else "topic") for config in description.configs]
    print_table(("config", "value", "source"), rows)
