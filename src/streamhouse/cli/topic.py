"""`streamhouse topic …`: make topics, look at them, change their configuration, delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streamhouse.cli.completing import complete_topics
from streamhouse.cli.console import print_json, print_line, print_table
from streamhouse.cli.options import as_topic_name, bootstrap_option, json_option, parse_assignments, run_async
from streamhouse.cli.settings_options import effective_settings, settings_options
from streamhouse.cli.topic_report import print_configs, print_description, topic_as_json
from streamhouse.cli.usage import refusing_as_usage
from streamhouse.model.config_units import check_topic_configs
from streamhouse.model.errors import Unavailable
from streamhouse.model.settings import Settings
from streamhouse.model.topic import CONFIG_KEYS, unknown_config

if TYPE_CHECKING:
    from streamhouse.client.admin import TopicDescription, TopicSummary


@click.group(short_help="Create, list, describe, alter and delete topics.")
def topic() -> None:
    """Create, list, describe, alter and delete topics.

    \b
    Examples:
      streamhouse topic create orders --partitions 8 --config retention.ms=7d
      streamhouse topic list
      streamhouse topic describe orders
    """


@topic.command(short_help="Make a topic.")
@click.argument("name", callback=as_topic_name)
@click.option("--partitions", type=click.IntRange(min=1), help="Number of partitions; default: the broker's.")
@click.option("--config", "configs", multiple=True, metavar="NAME=VALUE", help="Topic config; may be repeated.")
@click.option("--if-not-exists", is_flag=True, help="Succeed when the topic is already there.")
@json_option
@bootstrap_option
def create(
    name: str, partitions: int | None, configs: tuple[str, ...], if_not_exists: bool, as_json: bool, bootstrap: str
) -> None:
    """Make a topic. Partitions can be added later, and not taken away.

    Durations and sizes may have units (retention.ms=7d, segment.bytes=8MiB); without, they are milliseconds and bytes.

    \b
    Examples:
      streamhouse topic create orders
      streamhouse topic create orders --partitions 8 --config retention.ms=7d --config segment.bytes=8MiB
    """
    with refusing_as_usage():
        assigned = check_topic_configs(parse_assignments(configs, "topic config"))
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
        print_json({"created": created, **topic_as_json(description)})
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
@click.argument("name", callback=as_topic_name, shell_complete=complete_topics)
@click.option("--all", "shows_all", is_flag=True, help="Also the configs that have no effect here.")
@json_option
@bootstrap_option
@settings_options("metadata")
def describe(
    name: str, shows_all: bool, as_json: bool, bootstrap: str, config_file: str | None, **given: str | bool | None
) -> None:
    """Show a topic's partitions with their leaders and offsets, and its configuration: what is set or has an effect.

    Kafka's other configs are taken and told for the sake of its tools, and do nothing; --all and --json show them too.

    Of a partition without a leader it says why, if a node's HTTP port is open, or the metadata store is given.

    \b
    Examples:
      streamhouse topic describe orders
      streamhouse topic describe orders --all
      streamhouse topic describe orders --metadata postgresql://user@host/db
      streamhouse topic describe orders --json
    """
    settings = effective_settings(config_file, given).settings
    from streamhouse.cli.topic_lookup import find_topic
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster

    async def work() -> TopicDescription:
        async with Cluster.connect(bootstrap) as cluster:
            await find_topic(cluster, name)
            return await Admin(cluster).describe_topic(name)

    description = run_async(work())
    waiting = _find_waiting(description, bootstrap, settings)
    if as_json:
        print_json(topic_as_json(description, waiting))
    else:
        print_description(description, waiting, shows_all=shows_all)


@topic.command(short_help="Change a topic's configuration, or add partitions.")
@click.argument("name", callback=as_topic_name, shell_complete=complete_topics)
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
      streamhouse topic alter orders --config retention.ms=12h
      streamhouse topic alter orders --delete-config retention.ms
      streamhouse topic alter orders --partitions 16
    """
    with refusing_as_usage():
        assigned = check_topic_configs(parse_assignments(configs, "topic config"))
        for misspelt in sorted(set(deleted) - CONFIG_KEYS.keys()):
            raise unknown_config(misspelt)  # a broker would say nothing: there is nothing to delete
    for name_of_both in sorted(set(deleted) & assigned.keys()):
        raise click.UsageError(f"--config and --delete-config both name {name_of_both}")
    if not assigned and not deleted and partitions is None:
        raise click.UsageError("nothing to change; give --config NAME=VALUE, --delete-config NAME or --partitions N")
    from streamhouse.cli.topic_lookup import find_topic
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster

    async def work() -> TopicDescription:
        async with Cluster.connect(bootstrap) as cluster:
            await find_topic(cluster, name)
            admin = Admin(cluster)
            if assigned or deleted:
                await admin.alter_topic(name, set_configs=assigned, delete_configs=deleted)
            if partitions is not None:
                await admin.create_partitions(name, partitions)
            return await admin.describe_topic(name)

    description = run_async(work())
    if as_json:
        print_json(topic_as_json(description))
        return
    if partitions is not None:
        print_line(f"{description.name} has {len(description.partitions)} partitions")
    if assigned or deleted:
        print_configs(description)


@topic.command(short_help="Delete a topic and its records.")
@click.argument("name", callback=as_topic_name, shell_complete=complete_topics)
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
    from streamhouse.cli.topic_lookup import find_topic
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster

    async def work() -> None:
        async with Cluster.connect(bootstrap) as cluster:
            await find_topic(cluster, name)
            await Admin(cluster).delete_topic(name)

    run_async(work())
    if as_json:
        print_json({"deleted": name})
    else:
        print_line(f"deleted {name}")


def _find_waiting(description: TopicDescription, bootstrap: str, settings: Settings) -> dict[int, str]:
    """The agent that each partition without a leader waits for, if a node says so, or the database that was named."""
    if all(partition.leader >= 0 for partition in description.partitions):
        return {}
    from streamhouse.cli.cluster_source import with_cluster
    from streamhouse.cli.where import Place, find_endpoint

    try:
        place = Place(endpoint="" if settings.metadata else find_endpoint(bootstrap), settings=settings)
    except Unavailable:
        return {}  # a Kafka broker that is no node, or a node without an HTTP port
    return {
        placement.partition: placement.waits_for
        for placement in with_cluster(place, lambda source: source.placements())
        if placement.topic_id == description.topic_id and placement.waits_for is not None
    }
