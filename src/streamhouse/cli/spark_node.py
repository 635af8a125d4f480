"""The node that a command on Spark works with: found and asked before a JVM is started, so that who named a wrong one,
or a topic that there is not, hears of it at once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import click

from streamhouse.cli.options import BOOTSTRAP_METAVAR, BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, as_nodes, run_async
from streamhouse.cli.suggestion import no_such_topic

if TYPE_CHECKING:
    from streamhouse.wire.http.planning import TopicAnswer

ENDPOINT_VARIABLE = "STREAMHOUSE_ENDPOINT"
_DEFAULT_ENDPOINT = "http://127.0.0.1:8080"


def spark_node_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--endpoint is what it was called when it had to be the HTTP port."""
    return click.option(
        "--bootstrap",
        "--endpoint",
        "bootstrap",
        envvar=[ENDPOINT_VARIABLE, BOOTSTRAP_VARIABLE],
        default=None,
        callback=as_nodes,
        metavar=BOOTSTRAP_METAVAR,
        help="Node to work with, by its Kafka or HTTP address; others, separated by commas, are for when it is lost."
        f"  [{ENDPOINT_VARIABLE}, {BOOTSTRAP_VARIABLE}; default: {default}]",
    )


def endpoints_of(bootstrap: str | None) -> str:
    """URLs of HTTP ports, one of which answers; of the node of this machine, if no address is given."""
    from streamhouse.client.node import http_endpoint, http_endpoints

    if bootstrap is not None:
        return run_async(http_endpoints(bootstrap))
    return run_async(http_endpoint(f"{DEFAULT_BOOTSTRAP},{_DEFAULT_ENDPOINT}"))


def topics_of(endpoint: str, names: Collection[str]) -> list[TopicAnswer]:
    """Those named, or all; NotFound if one is not there."""
    from streamhouse.spark.connections import first_client
    from streamhouse.spark.jobs.logs import find_topics

    with first_client(endpoint) as client:
        known = [topic.name for topic in client.topics()]
        for name in names:
            if name not in known:
                raise no_such_topic(name, known)
        return find_topics(client, names)
