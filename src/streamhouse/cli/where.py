"""Where a command looks: at a running cluster, through any address of one of its nodes, or into its database itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from streamhouse.cli.console import print_note
from streamhouse.cli.options import BOOTSTRAP_METAVAR, BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, as_nodes, run_async
from streamhouse.cli.settings import DEFAULT_SOURCE, flag_name
from streamhouse.cli.settings_options import effective_settings, settings_options
from streamhouse.cli.usage import refusing_as_usage
from streamhouse.model.errors import Unavailable
from streamhouse.model.settings import Settings

STORES = ("data_dir", "metadata", "objects")
"""The settings that say where a cluster keeps what it has: who gives one of them looks there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """`endpoint` is the URL of a node's HTTP port, or several with commas between, the others for when one is lost;
    "" to look into what `settings` name."""

    endpoint: str
    settings: Settings


def place_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a click function with --bootstrap and the settings named, of which it makes a `Place`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        option = click.option(
            "--bootstrap",
            default=None,
            callback=as_nodes,
            metavar=BOOTSTRAP_METAVAR,
            help="Node to ask, by its Kafka or HTTP address; several are separated by commas. Not with options that"
            f" name the stores.  [{BOOTSTRAP_VARIABLE}; default: {DEFAULT_BOOTSTRAP}]",
        )
        return option(settings_options(*names)(command))

    return decorate


def database_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For commands that only who has the database may give."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        option = click.option("--bootstrap", expose_value=False, hidden=True, callback=_refuse_bootstrap)
        return option(settings_options(*names)(command))

    return decorate


def place_of(bootstrap: str | None, config_file: str | None, given: Mapping[str, str | bool | None]) -> Place:
    """What flags name, else what variables or the settings file do, else the node of this machine; if none answers
    there, the data directory if there is one, as nobody said where to look."""
    stores = [name for name in given if name.removesuffix("_file") in STORES and given[name] is not None]
    if bootstrap is not None and stores:
        raise click.UsageError(
            f"give either --bootstrap, to ask a node, or {flag_name(stores[0])}, to look there without one"
        )
    effective = effective_settings(config_file, given)
    settings = effective.settings
    from streamhouse.client.node import check_bootstrap

    asked = bootstrap or (None if stores else os.environ.get(BOOTSTRAP_VARIABLE))
    if asked:
        with refusing_as_usage(BOOTSTRAP_VARIABLE):
            check_bootstrap(asked)
        return Place(endpoint=find_endpoint(asked), settings=settings)
    if any(effective.sources[name] != DEFAULT_SOURCE for name in STORES if name in given):
        return Place(endpoint="", settings=settings)
    try:
        return Place(endpoint=find_endpoint(DEFAULT_BOOTSTRAP), settings=settings)
    except Unavailable as problem:
        if not (Path(settings.data_dir) / "metadata.db").is_file():
            raise
        print_note(f"{problem.message}: this is what {settings.data_dir} holds")
        return Place(endpoint="", settings=settings)


def database_of(config_file: str | None, given: Mapping[str, str | bool | None]) -> Settings:
    """For a command of `database_options`. Who has said which cluster, but not where its database is, does not mean
    the one that happens to be in this directory."""
    effective = effective_settings(config_file, given)
    names_store = any(effective.sources[name] != DEFAULT_SOURCE for name in STORES if name in given)
    if os.environ.get(BOOTSTRAP_VARIABLE) and not names_store:
        raise _no_node_does_it(click.get_current_context(), f"{BOOTSTRAP_VARIABLE} names nodes only")
    return effective.settings


def find_endpoint(bootstrap: str) -> str:
    """URLs of the HTTP ports of nodes, the first of which answers."""
    from streamhouse.client.node import http_endpoints

    return run_async(http_endpoints(bootstrap))


def _refuse_bootstrap(ctx: click.Context, param: click.Parameter, text: str | None) -> None:
    if text is not None:
        raise _no_node_does_it(ctx, "not --bootstrap")


def _no_node_does_it(ctx: click.Context, but: str) -> click.UsageError:
    return click.UsageError(
        f"`{ctx.command_path}` is for who has the database, and no node does it: give --metadata or --data-dir; {but}",
        ctx=ctx,
    )
